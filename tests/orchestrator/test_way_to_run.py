"""Where reading does not prove the cause and the folder holds a program, the way to the run that does is plain."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from traindx import offering
from traindx.diagnose import Report, diagnose
from traindx.in_brief import lasted
from traindx.offering import accepted_run
from traindx_tools.on_logs import read_run

TRAINS = "import torch\nfrom net import Net\nfor step in range(9):\n    print('step', step, 'loss', 1.0)\n"
FLAT = "".join(f"step {i} loss 2.3026 lr 0.1\n" for i in range(60))
FALLS = "".join(f"step {i} loss {0.2 + 2 * 0.9 ** i:.4f}\n" for i in range(60))


def project(folder: Path, log: str, **more: str) -> Path:
    (folder / "run.log").write_text(log, encoding="utf-8")
    (folder / "fit.py").write_text(TRAINS, encoding="utf-8")
    (folder / "net.py").write_text("import torch\nclass Net: ...\nif __name__ == '__main__':\n    Net()\n",
                                   encoding="utf-8")
    for name, text in more.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def told(folder: Path) -> tuple[Report, str]:
    report = diagnose([folder])
    return report, report.terminal(width=80)


def test_the_next_command_runs_the_entry_point_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project(tmp_path, "$ python3 fit.py --lr 0.1 --name 'a b'\n" + FLAT))
    report, text = told(Path())
    assert report.status == "needs_more_data"
    assert report.places.training_command == "python fit.py --lr 0.1 --name 'a b'"
    run = f"traindx diagnose . --run {shlex.quote(report.places.training_command)}"
    assert "runs it again with instruments" in " ".join(text.split())
    assert run in text
    assert run in report.next_checks


@pytest.mark.parametrize(("shown", "command"), [
    ("$ torchrun --nproc_per_node 2 fit.py --lr 1", "python fit.py"), ("$ python fit.py --out $HOME", "python fit.py"),
    ("$ bash run.sh fit.py", "python fit.py"), ("running: 'python fit.py --lr 1'", "python fit.py --lr 1"),
    ("+ /opt/conda/bin/python3.11 fit.py --lr 1 > run.log 2>&1", "python fit.py --lr 1"),
])
def test_of_a_log_what_stands_for_itself_is_taken(tmp_path: Path, shown: str, command: str) -> None:
    assert told(project(tmp_path, f"{shown}\n{FLAT}"))[0].places.training_command == command


def test_a_module_that_can_be_started_too_does_not_hide_the_entry_point(tmp_path: Path) -> None:
    report, _ = told(project(tmp_path, FLAT, other=TRAINS))
    assert report.places.training_command is None  # two scripts, and nothing says which
    report, _ = told(project(tmp_path, "fit.py:3: UserWarning: x\n" + FLAT, other="import torch\n"))
    assert report.places.training_command == "python fit.py"


def test_a_healthy_log_beside_its_program_names_the_run_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project(tmp_path, FALLS))
    report, text = told(Path())
    assert (report.status, report.exit_code) == ("healthy", 0)
    assert "if it is wrong all the same" in text
    assert "traindx diagnose . --run 'python fit.py'" in text


def test_without_a_program_nothing_is_to_be_run(tmp_path: Path) -> None:
    for log in (FLAT, FALLS):
        (tmp_path / "run.log").write_text(log, encoding="utf-8")
        assert " --run " not in told(tmp_path / "run.log")[1]


@pytest.mark.parametrize(("seconds", "words"), [(1, "59 s"), (20, "20 min"), (400, "6.6 h")])
def test_a_log_with_a_clock_says_how_long_a_run_takes(tmp_path: Path, seconds: int, words: str) -> None:
    rows = (f"2026-03-{1 + i * seconds // 86400:02d} {i * seconds // 3600 % 24:02d}:{i * seconds // 60 % 60:02d}:"
            f"{i * seconds % 60:02d} step {i} loss 2.3026 lr 0.1\n" for i in range(60))
    _, text = told(project(tmp_path, "".join(rows)))
    assert f"a run takes about {words}" in " ".join(text.split())
    assert lasted(read_run(["-"], stdin=FLAT.encode())) == ""


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    monkeypatch.setattr("traindx.at_terminal.interactive", lambda: True)
    monkeypatch.setattr("traindx.sandbox.find_sandbox", lambda: type("Found", (), {"warning": ""})())
    monkeypatch.setattr("traindx.at_terminal.agreed", lambda question: not asked.append(question))
    for name in offering.CI:
        monkeypatch.delenv(name, raising=False)
    return asked


def test_at_a_terminal_the_run_is_offered(tmp_path: Path, at_terminal: list[str]) -> None:
    report, _ = told(project(tmp_path, FLAT))
    assert accepted_run(report) == "python fit.py"
    assert at_terminal == ["Prove it now: run `python fit.py` in a protected copy?"]


@pytest.mark.parametrize("log", [FALLS, ""])
def test_where_nothing_is_open_nobody_is_asked(tmp_path: Path, at_terminal: list[str], log: str) -> None:
    folder = project(tmp_path, log or FLAT)
    if not log:
        for name in ("fit.py", "net.py"):
            (folder / name).unlink()
    assert accepted_run(told(folder)[0]) is None
    assert at_terminal == []


def test_in_a_pipe_in_ci_and_without_protection_nobody_is_asked(tmp_path: Path, at_terminal: list[str],
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = told(project(tmp_path, FLAT))
    with monkeypatch.context() as here:
        here.setenv("CI", "true")
        assert accepted_run(report) is None
    with monkeypatch.context() as here:
        here.setattr("traindx.at_terminal.interactive", lambda: False)
        assert accepted_run(report) is None
    with monkeypatch.context() as here:
        here.setattr("traindx.sandbox.find_sandbox", lambda: type("Found", (), {"warning": "none here"})())
        assert accepted_run(report) is None
    assert at_terminal == []
