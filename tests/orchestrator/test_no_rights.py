"""Folders and files without rights, and commands typed at the root of the file system: what is said, and that nothing
is left."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from click.testing import CliRunner
from scripted import Scripted, diagnosis, examined

from traindx import session_folder
from traindx.group import traindx
from traindx.model import NeedsData
from traindx.session import run_debug_session_sync
from traindx.session_folder import NoPlaceForSession
from traindx.typed_commands import from_here
from traindx_tools.on_logs import artifacts


def test_a_folder_that_cannot_be_written_says_that_no_session_was_begun(workspace: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(session_folder.unlinked, "made", refuse)
    with pytest.raises(NoPlaceForSession, match=r"no session was begun.*Permission denied.*copy of the folder") as said:
        run_debug_session_sync("x", workspace, investigator=Scripted([diagnosis()]), examine=examined)
    assert "resume" not in str(said.value)


def test_a_log_without_rights_is_named_on_the_first_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "train.log").write_text("step 1 loss 2.3\n")
    may = artifacts.os.access
    monkeypatch.setattr(artifacts.os, "access", lambda p, mode: "train.log" not in str(p) and may(p, mode))
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(traindx, ["diagnose", "."]).output
    assert "Not read, as you have no permission to: ./train.log" in shown.replace(" train.log", " ./train.log")


def test_what_is_read_from_the_root_is_named_in_full(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert from_here(workspace) == str(workspace.resolve())
    monkeypatch.chdir(workspace.parent)
    assert from_here(workspace) == workspace.name


def test_nothing_is_to_be_given_where_nothing_is_asked_for(workspace: Path) -> None:
    empty = run_debug_session_sync("x", workspace, investigator=Scripted([NeedsData(reason="more")]), examine=examined,
                                   report=False)
    assert not any("--give" in c for c in empty.commands)
    asked = run_debug_session_sync("x", workspace, investigator=Scripted([
        NeedsData(reason="more", artifacts=("the log",))]), examine=examined, report=False)
    assert any("--give" in c for c in asked.commands)
