"""The sandbox of commands that a person agreed to: how it is built, tried, said, and what it holds back."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from scripted import Scripted, approve, diagnosis, examined

from traindx import sandbox as module
from traindx.model import Verify
from traindx.sandbox import Sandbox, find_sandbox, refused_a_write
from traindx.session import run_debug_session_sync

REAL = find_sandbox()
needs_bubblewrap = pytest.mark.skipif(REAL.program is None, reason=REAL.why)


def pretend(folder: Path, body: str) -> Path:
    """A program called bwrap."""
    folder.mkdir(exist_ok=True)
    made = folder / "bwrap"
    made.write_text(f"#!/bin/sh\n{body}\n")
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    return made


PASSES_ON = 'echo "$@" >> "$(dirname "$0")/said"\nwhile [ "$1" != "--" ]; do shift; done\nshift\nexec "$@"'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    for name in (".ssh", ".cache", ".aws"):
        (made / name).mkdir(parents=True)
    (made / ".netrc").write_text("machine x password y")
    monkeypatch.setenv("HOME", str(made))
    return made


def pairs(words: list[str], flag: str) -> list[tuple[str, str]]:
    return [(words[n + 1], words[n + 2]) for n, w in enumerate(words) if w == flag]


def test_the_command_may_write_its_workspace_and_caches_and_sees_no_keys(home: Path, workspace: Path, tmp_path: Path):
    data, more = tmp_path / "data", tmp_path / "hub"
    data.mkdir()
    more.mkdir()
    words = Sandbox("/usr/bin/bwrap").around(["python", "train.py"], workspace, {"HF_HOME": str(more)}, [data])
    assert words[0] == "/usr/bin/bwrap"
    assert words[words.index("--"):] == ["--", "python", "train.py"]
    assert words[words.index("--chdir") + 1] == str(workspace)
    assert {"--die-with-parent", "--unshare-pid"} <= set(words)
    assert "--unshare-net" not in words
    assert pairs(words, "--ro-bind")[0] == ("/", "/")
    writable = [a for a, b in pairs(words, "--bind") if a == b]
    assert {str(workspace), str(data), str(more), str(home / ".cache"), "/tmp"} <= set(writable)
    assert str(home) not in writable
    assert [words[n + 1] for n, w in enumerate(words) if w == "--tmpfs"] == [str(home / ".ssh"), str(home / ".aws")]
    assert ("/dev/null", str(home / ".netrc")) in pairs(words, "--ro-bind")
    sessions = str(workspace / "scratch" / "debug")
    assert words.index("--ro-bind-try") > words.index(str(workspace)), "the later mount counts"
    assert (sessions, sessions) in pairs(words, "--ro-bind-try")


def test_without_bubblewrap_the_command_stays_as_it_is_and_that_is_said(monkeypatch: pytest.MonkeyPatch,
                                                                        tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_sandbox()
    assert found.around(["true"], tmp_path, {}) == ["true"]
    assert "without a sandbox (bubblewrap is not installed)" in found.said
    assert "as you wished" in find_sandbox(wanted=False).said


def test_a_bubblewrap_that_is_not_permitted_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    pretend(tmp_path / "bin", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    found = find_sandbox()
    assert found.program is None
    assert "not permitted here: bwrap: No permissions" in found.said


def test_a_verification_runs_in_it_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workspace: Path):
    bin_ = tmp_path / "bin"
    pretend(bin_, PASSES_ON)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
    verify = Verify(command="grep -q 'learning_rate = 0.1' train.py", timeout=60)
    result = run_debug_session_sync("the loss explodes", workspace, verify=verify, allow_run=True, report=False,
                                    investigator=Scripted([diagnosis()]), approve=approve(), examine=examined)
    assert result.status == "fixed", result.reason
    assert f"--bind {workspace} {workspace}" in (bin_ / "said").read_text()
    notes = result.attempts[-1].verification.notes
    assert any("run in a bubblewrap sandbox" in n for n in notes)


def test_without_it_the_verification_says_so_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workspace: Path):
    monkeypatch.setattr(module, "PROGRAM", "no-such-program")
    result = run_debug_session_sync("the loss explodes", workspace, verify="true", allow_run=True, report=False,
                                    investigator=Scripted([diagnosis()]), approve=approve(), examine=examined)
    assert any("without a sandbox (bubblewrap is not installed)" in n
               for n in result.attempts[-1].verification.notes)


def test_what_the_sandbox_refused_is_told_apart_from_the_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                              workspace: Path):
    bin_ = tmp_path / "bin"
    pretend(bin_, PASSES_ON)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
    command = "echo \"OSError: [Errno 30] Read-only file system: '/data/out'\"; exit 1"
    result = run_debug_session_sync("the loss explodes", workspace, verify=command, allow_run=True, report=False,
                                    investigator=Scripted([diagnosis()]), approve=approve(), examine=examined)
    assert any("--writable DIR" in n for a in result.attempts if a.verification for n in a.verification.notes)
    assert not refused_a_write(tmp_path / "no-such-output")


@needs_bubblewrap
def test_really_nothing_but_the_workspace_changes(home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch):
    outside = home / "outside"
    outside.mkdir()
    session = workspace / "scratch" / "debug" / "s"
    session.mkdir(parents=True)
    script = (f"echo x > {workspace}/made; echo x > {home}/.cache/made; echo x > {outside}/made; "
              f"echo x > {session}/journal.jsonl; cat {home}/.netrc {home}/.ssh/*; ls /proc | grep -c '^[0-9]'; exit 7")
    (home / ".ssh" / "id").write_text("key of nobody")
    monkeypatch.setattr(module, "TEMPORARY", ())  # this test lives below /tmp
    done = subprocess.run(REAL.around(["/bin/sh", "-c", script], workspace, os.environ), capture_output=True, text=True,
                          check=False)
    assert done.returncode == 7, done.stderr
    assert (workspace / "made").exists()
    assert (home / ".cache" / "made").exists()
    assert list(outside.iterdir()) == []
    assert list(session.iterdir()) == []
    assert "password" not in done.stdout
    assert "key of nobody" not in done.stdout
    assert int(done.stdout.split()[-1]) < 20, "it sees its own processes alone"
    assert shutil.which("bwrap")
