"""What a session prints to be typed next: for every status, from every folder, and as the commands really are."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import get_args

import click
import pytest

from traindx import group
from traindx.at_terminal import describe
from traindx.session_result import SessionResult, Status
from traindx.typed_next import COMMANDS, next_commands


def standing(status: str, workspace: Path) -> SessionResult:
    return SessionResult.model_validate({
        "session": "20260101-000000-abcdef", "folder": str(workspace / "scratch/debug/20260101-000000-abcdef"),
        "workspace": str(workspace), "status": status, "phase": "gate", "reason": "because", "next_step": "decide"})


@pytest.mark.parametrize("status", get_args(Status))
def test_every_command_that_is_printed_is_one_with_these_options(status: str, tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = next_commands(standing(status, tmp_path / "my run"))
    assert bool(shown) == (status != "healthy")
    for text in shown:
        program, name, *arguments = shlex.split(text)
        assert program == "traindx"
        command = group.traindx.get_command(click.Context(group.traindx), name)
        assert command is not None
        options = {o: p for p in command.params for o in (*p.opts, *p.secondary_opts)}
        assert [a for a in arguments if a.startswith("--") and a not in options] == []
        assert arguments[arguments.index("--workspace") + 1] == "my run"


def test_in_the_workspace_itself_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not any("--workspace" in c for s in COMMANDS for c in next_commands(standing(s, tmp_path)))


def test_a_waiting_session_offers_choices_and_one_that_was_interrupted_a_single_command(tmp_path: Path) -> None:
    waiting = list(describe(standing("awaiting_approval", tmp_path)))
    assert waiting[0].endswith(": awaiting approval")
    assert "  then one of:" in waiting
    interrupted = "\n".join(describe(standing("interrupted", tmp_path)))
    assert "  then: traindx resume 20260101-000000-abcdef --workspace" in interrupted



@pytest.mark.usefixtures("sure_figures")
def test_a_fix_without_a_place_in_code_still_says_what_to_change(tmp_path):
    from traindx.diagnose import diagnose

    log = tmp_path / "run.log"
    log.write_text("step 0 loss 10.8\nValueError: Attempting to unscale FP16 gradients.\n")
    said = diagnose([log]).diagnosis
    assert said is not None
    option = said.option("A")
    assert not option.instructions
    assert "float32" in option.change
    assert option.change in said.proposed_fix
    assert said.first_check
