"""README and its neighbours say what is true: commands, links, code, and no unfinished places."""

from __future__ import annotations

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


def test_the_licence_is_the_whole_apache_licence() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert [f"\n   {n}. " in text for n in range(1, 10)] == [True] * 9
    assert "END OF TERMS AND CONDITIONS" in text
    assert "limitations under the License." in text
