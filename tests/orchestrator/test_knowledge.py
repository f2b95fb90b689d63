"""The project's notes: read as bounded data, added to only where they belong."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.knowledge import (
    CONSTRAINTS,
    MEMORY,
    READ_AT_MOST,
    Addition,
    Knowledge,
    add_knowledge,
    next_number,
    read_knowledge,
)
from traindx.workspace import PathRefused


def test_a_project_without_notes_has_empty_ones(workspace: Path):
    assert read_knowledge(workspace) == Knowledge()


def test_what_is_there_is_read(workspace: Path):
    (workspace / ".agents/knowledge/failure_modes").mkdir(parents=True)
    (workspace / ".agents/knowledge/constraints.md").write_text("1. ü")
    (workspace / ".agents/knowledge/failure_modes/a.toml").write_text('id = "a"')
    (workspace / "MEMORY.md").write_bytes(b"bad \xff bytes")
    found = read_knowledge(workspace)
    assert (found.constraints, found.failure_modes) == ("1. ü", (("a.toml", 'id = "a"'),))
    assert found.memory == "bad \ufffd bytes"


def test_a_huge_file_is_cut_and_a_link_out_is_skipped_and_both_are_said(workspace: Path):
    (workspace.parent / "secret.md").write_text("secret")
    (workspace / ".agents").mkdir()
    (workspace / "MEMORY.md").write_text("x" * (READ_AT_MOST + 5))
    (workspace / ".agents/knowledge").symlink_to(workspace.parent)
    (workspace.parent / "constraints.md").write_text("secret")
    found = read_knowledge(workspace)
    assert len(found.memory) == READ_AT_MOST
    assert found.constraints == ""
    assert any("only the first 64 KiB" in s for s in found.skipped)
    assert any("outside the workspace" in s for s in found.skipped)


def test_adding_appends_and_is_done_once_a_session(workspace: Path):
    (workspace / "MEMORY.md").write_text("# Memory\nno newline at the end")
    for _ in range(2):
        add_knowledge(workspace, "s1", [Addition(path=MEMORY, text="- learned")])
    add_knowledge(workspace, "s2", [Addition(path=MEMORY, text="- more")])
    text = (workspace / "MEMORY.md").read_text()
    assert text.startswith("# Memory\nno newline at the end\n\n<!-- traindx session s1 -->\n- learned\n")
    assert text.count("- learned") == 1
    assert text.endswith("<!-- traindx session s2 -->\n- more\n")


@pytest.mark.parametrize("path", ["train.py", "../MEMORY.md", ".agents/knowledge/failure_modes/a.toml", "CLAUDE.md"])
def test_nothing_else_is_written(workspace: Path, path: str):
    with pytest.raises(PathRefused):
        add_knowledge(workspace, "s", [Addition(path=path, text="x")])


def test_notes_that_lead_out_of_the_workspace_are_not_written(workspace: Path):
    (workspace.parent / "elsewhere.md").write_text("theirs")
    (workspace / "MEMORY.md").symlink_to(workspace.parent / "elsewhere.md")
    with pytest.raises(PathRefused):
        add_knowledge(workspace, "s", [Addition(path=MEMORY, text="x")])
    assert (workspace.parent / "elsewhere.md").read_text() == "theirs"


@pytest.mark.parametrize(("text", "number"),
                         [("", 1), ("1. a\n2. b\n", 3), ("# head\n  7) x\n3. y", 8), ("no numbers", 1)])
def test_the_next_constraint_takes_the_next_number(text: str, number: int):
    assert next_number(text) == number


def test_the_constraints_file_has_its_place():
    assert CONSTRAINTS == ".agents/knowledge/constraints.md"
