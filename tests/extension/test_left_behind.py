"""What is left in a page of benches that were there: a hundred, drawn with every tab and taken away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tilebench
from tests.extension.answered_page import data_of
from tests.extension.lab import browser_page
from tests.workbench.bench_kernels import functions
from tilebench.workbench.front.script import loader, script

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGE = """<!doctype html><meta charset=utf-8><body><script type=module>
const module = text => import(URL.createObjectURL(new Blob([text], {{type: 'text/javascript'}})));
const [loader, data] = [{loader}, {data}];
const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
window.asked = 0;
const shown = async () => {{
  const el = document.createElement('div');
  document.body.append(el);
  const heard = {{}};
  const model = {{
    get: name => data[name],
    on: (event, called) => (heard[event] = called), off: event => delete heard[event],
    send: what => what.kind === 'script' && (window.asked += 1) && heard['msg:custom'](
      {{kind: 'script', text: {script}}})
  }};
  const host = {{getModel: async () => ({{get: () => {shared}}})}};
  const end = await (await module(loader)).default.render({{model, el, host}});
  while (!el.querySelector('.tbx-row')) await frame();
  return {{el, heard, end}};
}};
// A bench whose record comes so many times more, as with moves.
window.moved = async count => {{
  const {{el, heard}} = await shown();
  for (let at = 0; at < count; at += 1) {{
    const row = el.querySelector('.tbx-row');
    heard['change:record']();
    while (row.isConnected) await frame();
  }}
}};
// What the header says of a state that a bench is in for so many seconds, and how high it is at each width.
window.says = async (text, elapsed) => {{
  const {{el, heard, end}} = await shown();
  data.status = {{...data.status, text, phase: elapsed === null ? 'done' : 'compiling', elapsed}};
  heard['change:status']();
  await frame();
  const heights = [];
  for (let width = 600; width <= 1400; width += 20) {{
    el.style.width = `${{width}}px`;
    heights.push(el.querySelector('.tbx-header').offsetHeight);
  }}
  const clock = el.querySelector('.tbx-clock').textContent;
  end();
  el.remove();
  return [clock, heights];
}};
window.benches = async count => {{
  for (let at = 0; at < count; at += 1) {{
    const {{el, heard, end}} = await shown();
    el.querySelectorAll('[role=tab]').forEach(tab => tab.click());
    await frame();
    // A run may go on while a cell is run again: its clock and what comes of it end with the view.
    data.status = {{...data.status, text: 'compiling', phase: 'compiling', elapsed: at}};
    heard['change:status']?.();
    heard['change:record']?.();
    end();
    window.left = [el.childElementCount, Object.keys(heard).length];
    // Jupyter's widgets keep the places of views for ever.
    (window.places ??= []).push(el);
    el.remove();
  }}
  await frame();
}};
window.ready = true;
</script>"""


class Held(NamedTuple):
    """What a page holds after a collection: nodes, listeners, bytes of scripts' values."""

    nodes: int
    listeners: int
    heap: int


def held(page: Any, session: Any) -> Held:
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
        page.wait_for_timeout(50)
    found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return Held(int(found["Nodes"]), int(found["JSEventListeners"]), int(found["JSHeapUsedSize"]))


def watched(page: Any) -> Any:
    """A session with the page's own tools, which count what `held` asks for."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("Performance.enable")
    return session


@pytest.fixture(scope="module")
def data() -> Iterator[dict[str, Any]]:
    bench = tilebench.workbench(
        functions()["gemm"], with_={"M": 256, "N": 256, "K": 128}, target="cuda:sm_80",
        sweep={"block_M": [64, 128]}, stages=["tile", "cuda"],
    )  # fmt: skip
    yield {**data_of(bench), "script": "IPY_MODEL_of_the_script"}
    bench.close()


@pytest.fixture
def opened(data: dict[str, Any], chromium: str, tmp_path: Path) -> Iterator[Any]:
    """A page with the front end and no bench yet."""
    place = tmp_path / "page.html"
    text = json.dumps(script())
    place.write_text(
        PAGE.format(loader=json.dumps(loader()), data=json.dumps(data), script=text, shared=text)
    )
    with browser_page(chromium) as page:
        page.goto(place.as_uri())
        page.wait_for_function("window.ready")
        yield page


def test_a_moved_bench_listens_to_its_keys_once(opened: Any) -> None:
    opened.evaluate("moved(5)")
    session = opened.context.new_cdp_session(opened)
    for group in (".tbx-stages", ".tbx-tabs"):
        asked = {"expression": f"document.querySelector('{group}')"}
        found = session.send("Runtime.evaluate", asked)["result"]["objectId"]
        listeners = session.send("DOMDebugger.getEventListeners", {"objectId": found})["listeners"]
        assert [each["type"] for each in listeners].count("keydown") == 1


def test_work_that_is_soon_over_leaves_the_header_as_high_as_it_was(opened: Any) -> None:
    still = opened.evaluate("says('up to date', null)")
    assert still[0] == ""
    assert len(set(still[1])) > 1  # narrow ones wrap
    assert opened.evaluate("says('compiling', 0.2)") == still
    clock, _ = opened.evaluate("says('compiling', 2)")
    assert clock == "2.0 s"


@pytest.mark.parametrize("shared", [True, False])
def test_a_hundred_benches_leave_nothing(
    data: dict[str, Any], shared: bool, chromium: str, tmp_path: Path
) -> None:
    """The front end stands in the page once, from the model that all name or else from the kernel."""
    text = json.dumps(script())
    place = tmp_path / "page.html"
    place.write_text(
        PAGE.format(
            loader=json.dumps(loader()), data=json.dumps(data), script=text, shared=text if shared else "''"
        )
    )
    with browser_page(chromium) as page:
        page.goto(place.as_uri())
        page.wait_for_function("window.ready")
        session = watched(page)
        page.evaluate("benches(5)")
        before = held(page, session)
        page.evaluate("benches(100)" if shared else "benches(5)")
        after = held(page, session)
        assert page.evaluate("window.left") == [0, 0]
        assert page.evaluate("window.asked") == (0 if shared else 1)
        assert after.nodes <= before.nodes + 105  # the places
        assert after.listeners <= before.listeners + 2
        print(f"{(after.heap - before.heap) / 1e3:.0f} kB more, {after.nodes - before.nodes} nodes")
        # One bench takes 1.2 MB; of a hundred remain their loaders and places.
        assert after.heap - before.heap < 1_200_000
        assert page.console_errors == []
