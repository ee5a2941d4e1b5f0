"""Pages with one bench in them, without a notebook: of pictures that stand, or of a session that answers."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.extension.lab import browser_page
from tilebench.record import CompileRecord, to_plain
from tilebench.workbench.front.answers import answer
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.front.gutters import plain_gutters
from tilebench.workbench.front.picture_tabs import picture_blocks
from tilebench.workbench.front.widget import script
from tilebench.workbench.live import Workbench
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
  ['change:record', 'change:status', 'change:state'].forEach(event => called[event]?.());
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
        pictures.append({"state": state, "record": packed, "status": state["status"]})
    text = PAGE.replace("__SCRIPT__", json.dumps(script())).replace("__PICTURES__", json.dumps(pictures))
    path.write_text(text, encoding="utf-8")
    return path


# -- a session behind the page

_PAGE = """<!doctype html><meta charset=utf-8><body style="margin:0 40px"><div id=place></div>
<script type=module>
const from = text => URL.createObjectURL(new Blob([text], {{type: 'text/javascript'}}));
const front = await import(from({script}));
const data = {data}, heard = {{}};
const model = {{
  get: name => data[name], on: (event, called) => (heard[event] = called), off: () => 0,
  send: async message => window.told(await window.ask(message))
}};
window.told = next => {{
  const changed = Object.keys(next).filter(name => next[name] !== data[name]);
  Object.assign(data, next);
  changed.forEach(name => heard[`change:${{name}}`]?.());
}};
front.default.render({{model, el: document.getElementById('place')}});
</script>"""


def data_of(bench: Workbench) -> dict[str, Any]:
    """What the widget of a bench holds now."""
    picture = bench.session.picture
    state = to_plain(bench_state(picture, "tb1", bench.name, bench.session.subject.knobs, live=True))
    held = picture.record
    gutters = plain_gutters(held) if held is not None else []
    packed = pack({"record": to_plain(held), "runs": [], "gutters": gutters}) if held is not None else ""
    apart = pack(to_plain(picture_blocks(picture.pictures)))
    return {"state": state, "record": packed, "status": state["status"], "apart": apart}


@contextmanager
def bench_page(bench: Workbench, chromium: str, folder: Path, *, dark: bool = False) -> Generator[Any]:
    """A page of 1600 by 1000 pixels that shows a bench without threads."""
    place = folder / "bench.html"
    place.write_text(_PAGE.format(script=json.dumps(script()), data=json.dumps(data_of(bench))))

    def ask(message: dict[str, Any]) -> dict[str, Any]:
        answer(bench, message)
        return data_of(bench)

    with browser_page(chromium) as page:
        page.set_viewport_size({"width": 1600, "height": 1000})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.expose_function("ask", ask)
        page.goto(place.as_uri())
        page.locator(".tbx .tbx-row").first.wait_for(timeout=30_000)
        yield page
        assert page.console_errors == []
