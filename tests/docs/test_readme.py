"""README and docs are true: the output is printed, commands and options exist, files, links and Python are there."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from traindx import cli
from traindx.group import traindx
from traindx.session import run_debug_session

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LONGEST = 110
"""Lines of the README: what it is and where to read on. The rest stands in docs/."""
DOCS = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").glob("*.md"))]
PAGES = ["README.md", *DOCS, "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md", "examples/README.md",
         *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "examples").glob("*/README.md")))]


def block(language: str, after: str = "", page: str = "README.md") -> str:
    """The first fenced block of a language after some words."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"```{language}\n(.*?)```", text[text.index(after):], re.DOTALL)
    assert found is not None
    return found[1]


def test_the_readme_is_short_and_has_a_picture_and_every_page_of_docs_is_linked() -> None:
    assert len(README.splitlines()) <= LONGEST
    assert re.search(r"!\[[^]]{20,}\]\(docs/[\w-]+\.png\)", README)
    assert [page for page in DOCS if f"({page})" not in README] == []


def test_the_output_in_the_readme_is_printed_by_the_command_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                      capsys: pytest.CaptureFixture[str]) -> None:
    named = re.search(r"<!-- the output of: traindx (.*) -->", README)
    assert named is not None
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)  # as wide as where nobody says how wide it is
    assert cli.run([*shlex.split(named[1]), "--out", str(tmp_path / "out")]) == 1
    printed = [row for row in capsys.readouterr().out.splitlines() if row.strip()]
    shown = [row for row in block("text", named[0]).splitlines() if row.strip()]
    assert len(shown) > 10
    assert shown[-1] == "..."  # in place of the last line, which names a folder of this run
    assert printed[:len(shown) - 1] == shown[:-1]
    assert printed[len(shown) - 1].startswith("Report")


def commands_of(text: str) -> list[list[str]]:
    """Everything that is written as a `traindx ...` command: in code spans, fenced blocks and indented lines."""
    spans = re.findall(r"`(traindx [^`]+)`", text)
    rows = [row.strip().removeprefix("$ ") for row in text.splitlines()]
    rows = [row.split("  #")[0] for row in rows if row.startswith("traindx ") and "`" not in row]
    return [shlex.split(re.sub(r"[\[\]]|\\?\|", " ", re.sub(r"\s+", " ", c))) for c in [*spans, *rows]]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_is_named_exists_with_its_options(page: str) -> None:
    group = traindx
    for _, name, *arguments in commands_of((ROOT / page).read_text(encoding="utf-8")):
        command = group.get_command(click.Context(group), name)
        assert command is not None, f"{page}: traindx {name}"
        if isinstance(command, click.Group) and arguments:
            part = command.get_command(click.Context(command), arguments[0])
            command = part if part is not None else command
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
        own = arguments[: arguments.index("--")] if "--" in arguments else arguments  # after it stands another program
        assert [a for a in own if a.startswith("--") and a not in known] == [], f"{page}: traindx {name}"


def test_every_command_has_its_place_in_the_readme() -> None:
    group = traindx
    names = [n for n in group.list_commands(click.Context(group)) if not re.search(rf"`(traindx )?{n}\b", README)]
    assert names == []


@pytest.mark.parametrize("page", PAGES)
def test_links_and_make_targets_exist(page: str) -> None:
    text, targets = (ROOT / page).read_text(encoding="utf-8"), (ROOT / "Makefile").read_text(encoding="utf-8")
    links = [x for x in re.findall(r"\]\(([^)#]+)", text) if "://" not in x]
    assert [x for x in links if not (ROOT / page).parent.joinpath(x).exists()] == []
    made = re.findall(r"`make\s+([a-z-]+)", text)
    assert [t for t in made if not re.search(rf"^{t}:", targets, re.MULTILINE)] == []


def test_every_file_and_folder_that_contributing_names_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tools|orchestrator|tests|docs|\.ci|benchmarks|skills|templates)/[\w./-]*)`", text)
    assert named
    assert [x for x in named if not (ROOT / x).exists()] == []


def test_the_python_in_the_docs_has_names_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import inspect

    script = block("python", "## From a script", "docs/python.md")
    tree = ast.parse(script, mode="exec")
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {a.name: getattr(importlib.import_module(node.module), a.name) for a in node.names}
    call = next(n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") ==
                "run_debug_session_sync")
    accepted = inspect.signature(run_debug_session).parameters  # which it passes all options on to
    assert [k.arg for k in call.keywords if k.arg not in accepted] == []
    assert callable(names["Decision"].approve)


def test_the_monitor_in_the_docs_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    script = block("python", "In a program, the same", "docs/live.md")
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train_step(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        (model(x) - y).square().mean().log().backward()
        optimizer.step()

    monkeypatch.chdir(tmp_path)
    x = torch.zeros(4, 2)
    exec(script, {"model": model, "optimizer": optimizer, "train_step": train_step,
                  "loader": [(x, model(x).detach())]})
    said = capsys.readouterr()
    assert "the loss is -inf in step" in said.out
    assert "finding: traindx diagnose " in said.err
    assert len(list(tmp_path.glob("traindx-run/*/rank00000.jsonl"))) == 1


def test_the_context_package_in_the_docs_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = ROOT / "examples/numpy-lr"
    for name in ("log.txt", "train.py"):
        (tmp_path / name).write_bytes((example / name).read_bytes())
    (tmp_path / "package.json").write_text(block("json", page="docs/python.md"), encoding="utf-8")
    assert cli.run(["diagnose", "--context", str(tmp_path / "package.json"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["root_causes"][0]["location"] == "train.py:46"
    assert sorted(os.listdir(tmp_path)) == ["log.txt", "package.json", "train.py"]
