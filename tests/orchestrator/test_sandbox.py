"""The sandbox of commands that a person agreed to: how it is found, said, and what it holds back."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from bubblewrap_here import needs_bubblewrap
from scripted import Scripted, approve, diagnosis, examined

from traindx import cli
from traindx import sandbox as module
from traindx.model import Verify
from traindx.runner import bubblewrap, landlock
from traindx.sandbox import Sandbox, find_sandbox, refused_a_write
from traindx.session import run_debug_session_sync
from traindx_tools.errors import BadUsage

REAL = find_sandbox()
needs_one = pytest.mark.skipif(REAL.program is None, reason=REAL.why)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    for name in (".ssh", ".cache", ".aws"):
        (made / name).mkdir(parents=True)
    (made / ".netrc").write_text("machine x password y")
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("TRAINDX_RUNS", str(tmp_path / "runs"))
    return made


def ran(sandbox: Sandbox, script: str, workspace: Path, *writable: Path) -> subprocess.CompletedProcess[str]:
    words = sandbox.around(["/bin/sh", "-c", script], workspace, writable)
    return subprocess.run(words, cwd=workspace, capture_output=True, text=True, check=False, timeout=60)


@needs_one
@pytest.mark.parametrize("way", [pytest.param("bubblewrap", marks=needs_bubblewrap), "Landlock"])
def test_really_nothing_but_the_workspace_changes(way: str, home: Path, workspace: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "Landlock":
        monkeypatch.setenv("TRAINDX_BUBBLEWRAP", "off")
    outside, more, session = home / "outside", home / "more", workspace / "scratch" / "debug" / "s"
    for folder in (outside, more, session):
        folder.mkdir(parents=True)
    (home / ".ssh" / "id").write_text("key of nobody")
    done = ran(Sandbox(way), f"echo x > {workspace}/made; echo x > {home}/.cache/made; echo x > {outside}/made; "
               f"echo x > {more}/made; chmod 600 {workspace}/made; chmod 600 {home}/.netrc; "
               f"echo x > {session}/journal.jsonl; cat {home}/.netrc {home}/.ssh/*; exit 7", workspace, more)
    assert done.returncode == 7, done.stderr
    assert stat.S_IMODE((workspace / "made").stat().st_mode) == 0o600
    assert (more / "made").exists()
    assert list((home / ".cache").iterdir()) == list(outside.iterdir()) == []
    assert stat.S_IMODE((home / ".netrc").stat().st_mode) != 0o600
    if way == "bubblewrap":
        assert list(session.iterdir()) == []
        assert "password" not in done.stdout
        assert "key of nobody" not in done.stdout


def test_without_either_the_command_stays_as_it_is_and_that_is_said(monkeypatch: pytest.MonkeyPatch,
                                                                   tmp_path: Path) -> None:
    monkeypatch.delenv("TRAINDX_BUBBLEWRAP", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(landlock, "version", lambda: 0)
    found = find_sandbox()
    assert found.around(["true"], tmp_path) == ["true"]
    assert "no Landlock, and bubblewrap is not installed" in found.said
    assert "as you wished" in find_sandbox(wanted=False).said
    assert find_sandbox(wanted=False).warning.endswith("the command runs in a copy, and can write wherever you can")


def test_a_bubblewrap_that_is_not_permitted_is_left_aside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = tmp_path / "bwrap"
    made.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    made.chmod(0o755)
    monkeypatch.delenv("TRAINDX_BUBBLEWRAP", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert find_sandbox().program != "bubblewrap"
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert "bubblewrap is not permitted here" in find_sandbox().said


def test_bubblewrap_is_named_by_a_variable_found_in_path_or_left_aside(tmp_path: Path) -> None:
    for name in ("a", "b", "work"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bwrap").write_text("#!/bin/sh\n")
        (tmp_path / name / "bwrap").chmod(0o755)
    work, a, b = (str(tmp_path / n) for n in ("work", "a", "b"))

    def found(named: str) -> str | None:
        return bubblewrap.find({"PATH": f"{work}:relative:{a}", "TRAINDX_BUBBLEWRAP": named}, work)

    assert found("") == f"{a}/bwrap"
    assert found(f"{b}/bwrap") == f"{b}/bwrap"
    assert found("relative/bwrap") == f"{a}/bwrap"
    assert found("off") is found(f"{work}/bwrap") is found(f"{b}/none") is None


def test_what_was_not_run_of_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    import bubblewrap_here as here

    monkeypatch.setattr(here, "WHY_NOT", "bubblewrap is not installed")
    skipped = [SimpleNamespace(longrepr=("f", 1, f"Skipped: {why}")) for why in (here.WHY_NOT, here.WHY_NOT, "no GPU")]
    assert here.not_run(skipped) == "2 tests of the sandbox with bubblewrap were not run: bubblewrap is not installed"
    assert here.not_run(skipped[2:]) == ""


@needs_one
def test_a_verification_runs_in_it_and_says_so(workspace: Path, home: Path) -> None:
    verify = Verify(command="grep -q 'learning_rate = 0.1' train.py && ! touch ../outside", timeout=60)
    result = run_debug_session_sync("the loss explodes", workspace, verify=verify, allow_run=True, report=False,
                                    investigator=Scripted([diagnosis()]), approve=approve(), examine=examined)
    assert result.status == "fixed", result.reason
    assert not (workspace.parent / "outside").exists()
    notes = result.attempts[-1].verification.notes
    assert any(f"run in a {REAL.program} sandbox" in n for n in notes)


def test_on_another_system_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "darwin has neither" in find_sandbox().said


@needs_one
def test_what_the_sandbox_refused_is_told_apart_from_the_fault(tmp_path: Path, workspace: Path, home: Path) -> None:
    result = run_debug_session_sync("the loss explodes", workspace, verify=f"touch {home}/out", allow_run=True,
                                    report=False, investigator=Scripted([diagnosis()]), approve=approve(),
                                    examine=examined)
    assert any("--writable DIR" in n for a in result.attempts if a.verification for n in a.verification.notes)
    assert not refused_a_write(tmp_path / "no-such-output")


def test_the_runner_stands_where_the_sandbox_looks_for_it() -> None:
    assert module.START.is_file()


def test_a_run_without_a_sandbox_is_told_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []

    def started(*_: object, **__: object) -> None:
        heard.append(capsys.readouterr().err)
        raise BadUsage("it would start now")

    monkeypatch.setattr("traindx.rerun.with_rerun", started)
    (tmp_path / "log.txt").write_text("step 1 loss 2.0\nstep 2 loss nan\n")
    (tmp_path / "train.py").write_text("print(1)\n")
    for found in (Sandbox(None, "this kernel has no Landlock"), Sandbox("Landlock")):
        monkeypatch.setattr("traindx.sandbox.find_sandbox", lambda wanted=True, found=found: found)
        assert cli.run(["diagnose", str(tmp_path / "log.txt"), "--run", "python train.py"]) == 2
    assert "there is no sandbox (this kernel has no Landlock)" in heard[0]
    assert "sandbox" not in heard[1]


def test_of_a_crowded_folder_what_the_command_needs_stays_readable(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path("/tmp") / f"zz-{tmp_path.parent.parent.name}-{os.getpid()}"
    place.mkdir()
    try:
        monkeypatch.setattr(bubblewrap, "ENTRIES_OF_TMP", 1)
        kept = bubblewrap.kept_of_tmp(str(tmp_path), ["/usr/bin/python3", str(place / "venv" / "bin" / "python")])
        assert list(kept) == [str(place)]
        (tmp_path / place.name).mkdir()
        (tmp_path / place.name / "own").touch()
        assert list(bubblewrap.kept_of_tmp(str(tmp_path), [str(place)])) == []
    finally:
        place.rmdir()
