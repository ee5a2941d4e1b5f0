"""A page with a bench in it and a session behind it: what the page asks is answered, without a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.extension.lab import browser_page
from tilebench.plain import to_plain
from tilebench.workbench.front.answers import answer
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.front.gutters import plain_gutters
from tilebench.workbench.front.picture_tabs import picture_blocks
from tilebench.workbench.front.script import script
from tilebench.workbench.front.widget import measured_plain, packed_other
from tilebench.workbench.live import Workbench
from tilebench.workbench.packed import pack

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
    held = {"record": to_plain(picture.record), "runs": []}
    if picture.record is not None:
        held["gutters"] = plain_gutters(picture.record)
    record = pack(held) if picture.record is not None else ""
    return {
        "state": state,
        "record": record,
        "status": state["status"],
        "measured": measured_plain(picture),
        "apart": pack(to_plain(picture_blocks(picture.pictures))),
        "other": packed_other(picture.compared.record if picture.compared is not None else None),
    }


@contextmanager
def bench_page(bench: Workbench, chromium: str, folder: Path, *, dark: bool = False) -> Iterator[Any]:
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
        page.locator(".tbx .tbx-row").first.wait_for()
        yield page
        assert page.console_errors == []
