"""`traindx clean` removes what can be made again and nothing else; `traindx completion` is what each shell needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from traindx import cli
from traindx.cleaning import SESSIONS, leftovers
from traindx.model import Decision
from traindx.session import decide, run_debug_session_sync

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.run(arguments)
    said = capsys.readouterr()
    return code, said.out, said.err


def aged(path: Path, seconds: float) -> None:
    for at in (*path.rglob("*"), path):
        if not at.is_symlink():
            os.utime(at, (at.stat().st_atime, at.stat().st_mtime - seconds))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a report, kept runs, notes that stay, and a session that waits."""
    work = Path(shutil.copytree(EXAMPLE, tmp_path / "work"))
    run_debug_session_sync("loss is NaN", work, report=False)
    scratch = work / "scratch" / "debug"
    for name in ("diagnose-2026-2026-1", "experiments/runs", "baselines", "plots", "something-else"):
        (scratch / name).mkdir(parents=True)
        (scratch / name / "file").write_text("x" * 9000)
    (scratch / "strikes.jsonl").write_text("")
    aged(scratch, 3600)
    return work


def test_reports_and_kept_runs_go_and_sessions_strikes_and_what_is_not_ours_stay(
        work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scratch = work / "scratch" / "debug"
    session = {p.name for p in scratch.iterdir() if (p / "journal.jsonl").is_file()}
    before = sorted(p.relative_to(work) for p in work.rglob("*") if "scratch" not in p.parts)
    code, out, _ = run("clean", str(work), capsys=capsys)
    assert code == 0
    assert "nothing was removed" in out
    assert (scratch / "diagnose-2026-2026-1" / "file").is_file()
    code, out, _ = run("clean", str(work), "--yes", "--sessions", capsys=capsys)
    assert code == 0
    assert "removed 4 of 4 folders" in out
    assert {p.name for p in scratch.iterdir() if p.is_dir()} == session | {"something-else"}
    assert (scratch / "strikes.jsonl").is_file()
    assert sorted(p.relative_to(work) for p in work.rglob("*") if "scratch" not in p.parts) == before
    assert "nothing to remove" in run("clean", str(work), capsys=capsys)[1]


def test_a_session_goes_once_it_has_ended_and_only_where_that_was_asked_for(
        work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scratch = work / "scratch" / "debug"
    folder = next(p for p in scratch.iterdir() if (p / "journal.jsonl").is_file())
    assert [f for f in leftovers(work, sessions=True) if f.kind == SESSIONS] == []
    waiting = run_debug_session_sync("loss is NaN", work, report=False)
    assert waiting.diagnosis is not None
    ended = decide(folder, Decision.reject(waiting.diagnosis, "not that"))
    assert ended.status == "rejected"
    aged(folder, 3600)
    assert run("clean", str(work), "--yes", capsys=capsys)[0] == 0
    assert folder.is_dir()
    assert "removed 1 of 1" in run("clean", str(work), "--yes", "--sessions", capsys=capsys)[1]
    assert not folder.exists()
    assert Path(waiting.folder).is_dir()


def test_what_is_young_or_a_link_is_left_alone(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scratch = work / "scratch" / "debug"
    (scratch / "diagnose-2026-2").mkdir()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (scratch / "diagnose-2026-3").symlink_to(tmp_path / "precious")
    (scratch / "baselines" / "link").symlink_to(tmp_path / "precious")
    assert run("clean", str(work), "--yes", capsys=capsys)[0] == 0
    assert (scratch / "diagnose-2026-2").is_dir()
    assert (tmp_path / "precious" / "file").read_text() == "x"
    assert (scratch / "diagnose-2026-3").is_symlink()
    for days, kept in (("2", True), ("0.01", False)):
        (scratch / "diagnose-2026-4").mkdir(exist_ok=True)
        aged(scratch / "diagnose-2026-4", 3600)
        run("clean", str(work), "--yes", "--older-than", days, capsys=capsys)
        assert (scratch / "diagnose-2026-4").exists() == kept


def test_a_scratch_folder_that_leads_out_of_the_workspace_is_not_cleaned(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out" / "diagnose-2026-2026-1").mkdir(parents=True)
    aged(tmp_path / "out", 3600)
    (tmp_path / "work" / "scratch").mkdir(parents=True)
    (tmp_path / "work" / "scratch" / "debug").symlink_to(tmp_path / "out")
    assert "nothing to remove" in run("clean", str(tmp_path / "work"), "--yes", capsys=capsys)[1]
    assert (tmp_path / "out" / "diagnose-2026-2026-1").is_dir()
    assert run("clean", str(tmp_path / "gone"), capsys=capsys)[0] == 2


@pytest.mark.slow
def test_folders_as_deep_as_a_disk_allows_and_folders_of_ones_own_are_no_hindrance(
        work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scratch = work / "scratch" / "debug"
    (scratch / "isolate-mine").mkdir()
    (scratch / "isolate-config-0123abcd").mkdir()
    at = os.open(scratch / "experiments", os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=at)
        at, before = os.open("d", os.O_RDONLY, dir_fd=at), at
        os.close(before)
    os.close(at)
    try:
        aged(scratch / "isolate-mine", 3600)
        aged(scratch / "isolate-config-0123abcd", 3600)
        found = {f.path.name for f in leftovers(work)}
        assert "isolate-mine" not in found
        assert "isolate-config-0123abcd" in found
        assert run("clean", str(work), capsys=capsys)[0] == 0
    finally:
        subprocess.run(["rm", "-rf", str(scratch / "experiments")], check=True)


def test_a_folder_that_cannot_be_removed_is_named(work: Path, capsys: pytest.CaptureFixture[str],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", refused)
    code, _, err = run("clean", str(work), "--yes", capsys=capsys)
    assert code == 2
    assert err.count("is still there: Permission denied") == 4


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_own(shell: str, capsys: pytest.CaptureFixture[str],
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run("completion", shell, capsys=capsys)
    assert code == 0
    assert f"{shell}_complete" in out
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert run("completion", capsys=capsys)[1] == out


def test_a_shell_that_is_not_known_is_named(capsys: pytest.CaptureFixture[str],
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    code, out, err = run("completion", capsys=capsys)
    assert (code, out) == (2, "")
    assert "'tcsh'" in err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_and_options() -> None:
    script = ('eval "$(traindx completion bash)"; COMP_WORDS=(traindx "$1"); COMP_CWORD=1; '
              '_traindx_completion traindx; echo "${COMPREPLY[@]}"')
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", script, "bash", "diag"], capture_output=True, text=True, timeout=100,
                          env={**os.environ, "PATH": path}, check=True)
    assert done.stdout.split() == ["diagnose"]


def test_what_stays_and_why_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scratch = tmp_path / "scratch" / "debug"
    (scratch / "diagnose-2026-2026-1").mkdir(parents=True)
    (scratch / "diagnose-2026-2026-1" / "file").write_text("x")
    _, out, _ = run("clean", str(tmp_path), "--yes", capsys=capsys)
    assert "nothing to remove" in out
    assert "what is written to in the last minute stays" in out
    aged(scratch, 3600)
    _, out, _ = run("clean", str(tmp_path), "--older-than", "2", capsys=capsys)
    assert "what is newer stays" in out
    _, out, _ = run("clean", str(tmp_path), "--yes", capsys=capsys)
    assert "removed 1 of 1 folders" in out
    _, out, _ = run("clean", str(tmp_path), capsys=capsys)
    assert out.rstrip().endswith("scratch/debug")
