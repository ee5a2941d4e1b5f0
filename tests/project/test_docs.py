"""README and its neighbours say what is true: commands, links, code, and no unfinished places."""

from __future__ import annotations

import importlib
import itertools
import json
import linecache
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "README.md"
RUN = 'python3 -m venv .venv && .venv/bin/pip install -q ".[lab,cuda]" && .venv/bin/tilebench lab'
TEST = 'python3 -m venv .venv && .venv/bin/pip install -q -e ".[test]" && .venv/bin/python tests/run.py'
DOCUMENTS = sorted(ROOT.glob("*.md"))


def blocks(text: str, language: str) -> list[tuple[int, str]]:
    """Line (from 1) and text of each fenced block marked `language`."""
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in found]


def test_readme_has_exactly_the_two_commands() -> None:
    found = blocks(README.read_text(encoding="utf-8"), "(?:bash|sh|shell|console)")
    shell = [text.strip() for _, text in found]
    assert shell == [RUN, TEST]


def test_ci_runs_the_test_command_of_readme_and_the_workflow_runs_ci() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    pattern = re.search(r"command=\$\(grep -m1 '(.*)' README\.md\)", script)
    assert pattern is not None
    lines = [line for line in README.read_text(encoding="utf-8").splitlines() if re.search(pattern[1], line)]
    assert lines == [TEST]
    assert 'bash -euo pipefail -c "$command"' in script
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"run: (.*)", workflow) == [".ci/run"]


def test_readme_code_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All Python blocks in one namespace, from one file whose lines are README's own."""
    text = README.read_text(encoding="utf-8")
    found = blocks(text, "python")
    assert found, "README shows no kernel"
    lines = [""] * (text.count("\n") + 1)
    for first, block in found:
        for at, line in enumerate(block.splitlines()):
            lines[first - 1 + at] = line
    path = str(tmp_path / "readme.py")
    source = "\n".join(lines) + "\n"
    Path(path).write_text(source, encoding="utf-8")
    # The front end reads a kernel's text from its file, or from here.
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    monkeypatch.setenv("TILEBENCH_TARGET", "cpu")
    try:
        exec(compile(source, path, "exec"), {"__name__": "readme", "__file__": path})
    finally:
        linecache.cache.pop(path, None)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_are_finished_and_their_links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"\b(?:TODO|TBD|FIXME|XXX|lorem ipsum|coming soon)\b", text, re.IGNORECASE) == []
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}, which is not there"


def test_commands_of_readmes_table_are_commands_of_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tilebench import cli

    told = set(re.findall(r"^\| `tilebench (\w+)", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert told
    for name in sorted(told):
        monkeypatch.setattr("sys.argv", ["tilebench", name, "--help"])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 0
        assert name in capsys.readouterr().out


def prose(path: Path) -> str:
    """What a document or notebook says outside of its blocks of code."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


TOLD = [*DOCUMENTS, *sorted((ROOT / "notebooks").glob("*.ipynb"))]
# Files that a reader is to make, or that are named as what there is none of.
NOT_HERE = {"tests/passes/texts/PASS.CASE.txt", "jit.py", "gemm.toml", "kernels.py", "report.html"}


@pytest.mark.parametrize("path", TOLD, ids=lambda path: path.name)
def test_files_that_documents_name_are_there(path: Path) -> None:
    """A name that begins at the checkout, at the package or at the tests, or that one file ends in."""
    files = {
        found.relative_to(ROOT).as_posix()
        for found in ROOT.rglob("*")
        if not {"node_modules", ".venv", ".git"} & set(found.parts)
    }
    named = re.findall(r"`((?:[\w.-]+/)*[\w.-]+(?:\.(?:py|toml|md|ts|json|txt|ipynb|yml)|/))`", prose(path))
    missing = [
        name
        for name in dict.fromkeys(named)
        if name not in NOT_HERE and not any(f"/{file}".endswith(f"/{name.rstrip('/')}") for file in files)
    ]
    assert missing == []


@pytest.mark.parametrize("path", TOLD, ids=lambda path: path.name)
def test_options_commands_and_settings_that_documents_name_are_there(path: Path) -> None:
    from tilebench import cli, settings
    from tilebench.workbench.options import WORDS

    text = prose(path)
    spans = re.findall(r"`([^`\n]+)`", text)
    commands = {span.split()[1] for span in spans if re.match(r"tilebench [a-z]+\b", span)}
    assert commands <= {*cli.COMMANDS}, path.name
    options = {word.partition("=")[0] for span in spans for word in re.findall(r"(?<!\S)--[a-z][\w-]*", span)}
    shown = {"--help", "--update-golden"}
    for name in cli.COMMANDS:
        module = importlib.import_module(cli.COMMANDS[name][0], "tilebench.cli")
        shown |= set(
            re.findall(r"\"(--[a-z][\w-]*)\"", Path(module.__file__ or "").read_text(encoding="utf-8"))
        )
    assert options - shown - set(WORDS) == set(), path.name
    variables = set(re.findall(r"TILEBENCH_[A-Z_]+", text))
    assert variables <= {setting.name for setting in settings.all_settings()}, path.name


def test_stages_that_the_quickstart_asks_for_are_its_targets() -> None:
    """The magic's lines name stages of their target, and the text beside them speaks of no others."""
    from tilebench.passes.pipeline import COMMON
    from tilebench.targets import manifest, stage_names
    from tilebench.workbench.options import parse_line

    cells = json.loads((ROOT / "notebooks" / "quickstart.ipynb").read_text(encoding="utf-8"))["cells"]
    seen = 0
    for before, cell in itertools.pairwise(cells):
        line = "".join(cell["source"]).partition("\n")[0]
        found = re.match(r"%%?tile\s+(.*)", line) if cell["cell_type"] == "code" else None
        if found is None:
            continue
        options = parse_line(found[1])
        target = manifest((options.target or "cpu").partition(":")[0])
        road = {"source", "tile", *(row.name for row in (*COMMON, *target.road, *target.steps))}
        assert set(options.stages) <= road, line
        beside = "".join(before["source"])
        told = set(re.findall(r"`(\w+)`", beside)) & set(stage_names())
        assert told <= road or "of its target" in beside, beside
        seen += 1
    assert seen >= 6


def test_the_licence_is_the_whole_apache_licence() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert [f"\n   {n}. " in text for n in range(1, 10)] == [True] * 9
    assert "END OF TERMS AND CONDITIONS" in text
    assert "limitations under the License." in text
