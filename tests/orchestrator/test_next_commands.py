"""What a session prints to be typed next: for every status, from every folder, and as the commands really are."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import get_args

import click
import pytest

from traindx import group
from traindx.at_terminal import describe
from traindx.cli import run
from traindx.session import run_debug_session_sync
from traindx.session_result import SessionResult
from traindx.standing import Status
from traindx.typed_commands import from_anywhere
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


@pytest.mark.parametrize("status", get_args(Status))
def test_what_a_result_holds_works_from_any_folder(status: str, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = standing(status, Path("my run")).commands
    monkeypatch.chdir("/")
    assert told == standing(status, tmp_path / "my run").commands
    assert all(f"--workspace '{tmp_path}/my run'" in c for c in told)


def test_commands_of_a_session_are_pasted_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    for folder in (work, elsewhere):
        folder.mkdir()
    (work / "log.txt").write_text("".join(f"step {i} loss 2.303 acc 0.1\n" for i in range(30)))
    (work / "train.py").write_text("import torch\nopt = torch.optim.SGD([], lr=0.1)\nopt.step()\n")
    monkeypatch.chdir(tmp_path)
    result = run_debug_session_sync("it does not learn", "work", artifacts=["work/log.txt", "work/train.py"],
                                    report=False)
    assert result.status == "needs_more_data"
    monkeypatch.chdir(elsewhere)
    ours = [shlex.split(c) for c in result.commands if c.startswith("traindx ")]
    assert len(ours) > 2
    named = [word for words in ours for word in words if "work" in word and not word.startswith("-")]
    assert named
    assert all(Path(word).is_absolute() and Path(word).exists() for word in named)
    assert run(next(words for words in ours if words[1] == "log")[1:]) == 0
    assert run(["show", result.session, *ours[-1][-2:]]) == 3


@pytest.mark.parametrize(("command", "kept"), [
    ("traindx log a.log --format table", "traindx log {here}/a.log --format table"),
    ("traindx diagnose a.log gone.py --against 'b c'", "traindx diagnose {here}/a.log gone.py --against '{here}/b c'"),
    ("traindx explain log", "traindx explain log"),
    ("cd 'b c' && python train.py", "cd '{here}/b c' && python train.py"),
    ("python train.py", "python train.py"), ("traindx", "traindx"), ("nvidia-smi", "nvidia-smi"),
])
def test_a_command_that_is_kept_names_its_paths_from_the_root(command: str, kept: str, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").touch()
    (tmp_path / "b c").mkdir()
    (tmp_path / "table").touch()
    assert from_anywhere(command) == kept.format(here=tmp_path)


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
