"""A page with one bench in it, from real pictures, with a model that takes what it asks for: no notebook."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tilebench.plain import to_plain
from tilebench.record import CompileRecord
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.front.gutters import plain_gutters
from tilebench.workbench.front.script import script
from tilebench.workbench.front.widget import measured_plain
from tilebench.workbench.packed import pack
from tilebench.workbench.picture import Picture
from tilebench.workbench.subject import Wish

PAGE = """<!doctype html><meta charset="utf-8"><body><div id="here"></div><script type="module">
const code = new Blob([__SCRIPT__], {type: 'text/javascript'});
const module = await import(URL.createObjectURL(code));
const pictures = __PICTURES__;
const held = {...pictures[0]};
const called = {};
window.asked = [];
const model = {
  get: name => held[name], on: (event, f) => (called[event] = f), off: () => undefined,
  send: what => window.asked.push(what)
};
window.move = at => {
  Object.assign(held, pictures[at]);
  ['change:record', 'change:status', 'change:state', 'change:measured'].forEach(event => called[event]?.());
};
module.default.render({model, el: document.getElementById('here')});
</script>"""


def page_of(records: Sequence[CompileRecord], shown: Sequence[str], path: Path) -> Path:
    """Write a page that shows the first of the records; `move(1)` in it goes to the second."""
    pictures: list[dict[str, object]] = []
    for record in records:
        names = tuple(stage.name for stage in record.stages)
        wish = Wish(record.parameters, target=record.target, stages=tuple(shown))
        picture = Picture(wish, record=record, stage_names=names, shown=tuple(shown))
        state = to_plain(bench_state(picture, "tb1", record.kernel, (), live=True))
        packed = pack({"record": to_plain(record), "runs": [], "gutters": plain_gutters(record)})
        parts = {"state": state, "record": packed, "status": state["status"]}
        pictures.append({**parts, "measured": measured_plain(picture), "apart": "", "other": ""})
    text = PAGE.replace("__SCRIPT__", json.dumps(script())).replace("__PICTURES__", json.dumps(pictures))
    path.write_text(text, encoding="utf-8")
    return path
