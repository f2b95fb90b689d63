"""`traindx run` around ordinary commands: exit codes, signals, the user's own start-up code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.live.launch import launch
from traindx_tools.live.runner import Job, arms, came_in, run
from traindx_tools.live.settings import VARIABLE, Settings, environment_for, settings_here


def job(folder: Path, code: str) -> Job:
    return Job((sys.executable, "-c", code), folder / "run")


@pytest.mark.parametrize(("code", "expected"), [
    ("pass", 0),
    ("raise SystemExit(7)", 7),
    ("raise ValueError", 1),
    ("import os; os.kill(os.getpid(), 9)", 128 + 9),
])
def test_the_exit_code_is_the_command_s_own(code: str, expected: int, tmp_path: Path) -> None:
    assert run(job(tmp_path, code)).exit_code == expected


def test_a_command_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Job(("no-such-program",), tmp_path / "run")).exit_code == 127
    assert "no-such-program" in capsys.readouterr().err


def test_settings_travel_through_the_environment() -> None:
    settings = Settings("/runs/1", ("always", "x"), options={"arm": 3})
    assert settings_here({VARIABLE: settings.to_text()}) == settings
    assert settings_here({VARIABLE: "not json"}) is None
    assert settings_here({}) is None


def test_the_user_s_own_path_and_sitecustomize_stay(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['OWN'] = 'ran'\n")
    (tmp_path / "mine.py").write_text("value = 5\n")
    code = "import os, mine, sitecustomize; raise SystemExit(mine.value + (os.environ.get('OWN') == 'ran'))"
    done = run(job(tmp_path, code), {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.exit_code == 6


def test_a_signal_is_handed_on(tmp_path: Path) -> None:
    script = ("import signal, sys, time, pathlib\n"
              "signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\n"
              f"pathlib.Path({str(tmp_path / 'ready')!r}).touch()\n"
              "time.sleep(60)\n")
    runner = ("import os, sys\nfrom traindx_tools.live.launch import launch\n"
              f"sys.exit(launch([sys.executable, '-c', {script!r}], os.environ))")
    process = subprocess.Popen([sys.executable, "-c", runner])
    deadline = time.monotonic() + 30
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        os.sched_yield()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 42


def test_launch_gives_the_code_of_the_shell() -> None:
    assert launch(["/bin/sh", "-c", "exit 9"], os.environ) == 9


def test_tracing_begins_a_little_before_and_then_at_the_start() -> None:
    assert arms([40, 37]) == (35, 0)
    assert arms([1]) == (0,)
    assert arms([]) == ()


def test_what_came_in_from_before_the_traced_steps_is_looked_for_from_the_start() -> None:
    def origin(kind: str) -> Finding:
        return Finding("T101", "t", Severity.CRITICAL, Bearing.CAUSE, "s", Location(module="m"), "here",
                       measured={"kind": kind})

    assert came_in([origin("outside"), origin("batch")])
    assert not came_in([origin("outside"), origin("made")])


def test_an_empty_entry_of_pythonpath_is_the_current_folder_with_and_without_instruments() -> None:
    given = environment_for(Settings("/runs/1"), {"PYTHONPATH": os.pathsep + "src"})["PYTHONPATH"]
    assert given.split(os.pathsep)[1:] == ["", "src"]
    alone = environment_for(Settings("/runs/1"), {"PYTHONPATH": ""})["PYTHONPATH"]
    assert os.pathsep not in alone


@pytest.mark.parametrize("harm", ["shutil.rmtree(RUN)", "shutil.rmtree(RUN); open(RUN, 'w').close()"])
def test_a_run_folder_that_went_away_does_not_change_the_exit_code(harm: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = run(job(tmp_path, f"import shutil, sys; RUN = {str(folder)!r}; {harm}; sys.exit(7)"))
    assert result.exit_code == result.seen.run["exit_code"] == 7
    assert "not complete" in result.remarks[0]


def test_a_command_that_removes_the_current_folder_keeps_its_exit_code(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert run(job(tmp_path, "import os; os.rmdir(os.getcwd()); raise SystemExit(7)")).exit_code == 7
    monkeypatch.chdir(tmp_path)
