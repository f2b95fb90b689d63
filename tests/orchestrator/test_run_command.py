"""`traindx run` on the command line, and `--run` with the instruments attached."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from pathlib import Path

import pytest

from traindx.cli import run as traindx
from traindx.diagnose import diagnose
from traindx.rerun import with_rerun
from traindx.sandbox import find_sandbox


def test_the_exit_code_passes_through_and_the_summary_goes_to_standard_error(
        tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = traindx(["run", "--out", str(tmp_path / "run"), "--", sys.executable, "-c",
                    "import sys; print('trained'); sys.exit(3)"])
    said = capfd.readouterr()
    assert (code, said.out) == (3, "trained\n")
    assert "nothing was observed: the command ended with exit code 3" in said.err


@pytest.mark.slow
@pytest.mark.parametrize(("code", "said"), [
    ("pass", "nothing was observed: no Python process trained"),
    ("import torch; raise ImportError('broken')", "nothing was observed: the command ended with exit code 1"),
    ("import os, torch; torch.nn.Linear(1, 1)(torch.ones(1, 1)).sum().backward(); raise SystemExit(4)",
     "but the command ended with exit code 4"),
])  # fmt: skip
def test_a_command_that_could_not_be_observed_is_not_called_clean(
        code: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    traindx(["run", "--out", str(tmp_path / "run"), "--", sys.executable, "-c", code])
    err = capfd.readouterr().err
    assert said in err
    assert "nothing wrong was seen;" not in err


def test_where_no_records_can_be_kept_nothing_is_started_and_out_is_named(
        tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traindx-run").write_text("no folder")  # holds for root too, whom rights do not stop
    code = traindx(["run", "--", sys.executable, "-c", "open('started', 'w')"])
    assert (code, (tmp_path / "started").exists()) == (2, False)
    assert re.search(r"cannot be kept in .*traindx-run.*--out FOLDER", capfd.readouterr().err)


def closed(project: Path, monkeypatch: pytest.MonkeyPatch, number: int = errno.EACCES) -> None:
    """The project may not be written outside of scratch/debug: rights alone would not stop root."""
    from traindx.commands import run
    from traindx_tools.unlinked import made

    def held(folder: Path) -> Path:
        if not folder.is_relative_to(project / "scratch" / "debug"):
            raise OSError(number, os.strerror(number), str(folder))
        return made(folder)

    monkeypatch.setattr(run, "made", held)


@pytest.mark.parametrize("below", ["", "src"])
def test_where_the_project_is_held_the_records_go_to_its_probes(
        below: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path.resolve()
    for folder in ("scratch/debug", "src"):
        (project / folder).mkdir(parents=True)
    closed(project, monkeypatch)
    monkeypatch.chdir(project / below)
    assert traindx(["run", "--", sys.executable, "-c", "print('trained')"]) == 0
    (folder,) = (project / "scratch" / "debug" / "probes" / "traindx-run").iterdir()
    assert str(folder) in capfd.readouterr().err
    assert json.loads((folder / "run.json").read_text())["exit_code"] == 0


@pytest.mark.parametrize(("there", "number", "words"), [
    (False, errno.EACCES, ()), (True, errno.ENOSPC, ()), (True, errno.EACCES, ("--out", "here"))],
    ids=["no scratch", "a full disk", "a folder that is named"])
def test_another_place_is_taken_only_where_the_default_one_is_held(
        there: bool, number: int, words: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if there:
        (tmp_path / "scratch" / "debug").mkdir(parents=True)
    closed(tmp_path.resolve(), monkeypatch, number)
    assert traindx(["run", *words, "--", sys.executable, "-c", "open('started', 'w')"]) == 2
    assert not (tmp_path / "started").exists()
    assert "cannot be kept in" in capfd.readouterr().err


@pytest.mark.slow
def test_a_jax_program_without_numbers_is_not_called_clean_without_reserve(
        tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax")
    code = "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: x + 1)\nfor i in range(30): f(jnp.ones(3))"
    traindx(["run", "--out", str(tmp_path / "run"), "--", sys.executable, "-c", code])
    err = capfd.readouterr().err
    assert "nothing wrong was seen in what was computed, but no loss, gradient norm or other number was recorded" in err


KILLED = """
import os, time, torch
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
began = time.monotonic()
while time.monotonic() - began < {seconds}:
    net(torch.ones(3, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_a_killed_run_tells_how_far_its_records_reach(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(KILLED.format(seconds=0.6))
    assert traindx(["run", "--out", str(tmp_path / "run"), "--", sys.executable, str(script)]) == 137
    err = capfd.readouterr().err
    told = re.search(r"in the records in .*, which end with step ([\d,]+)", err)
    assert told is not None, err
    (file,) = (tmp_path / "run").glob("rank*.jsonl")
    steps = [json.loads(line)["step"] for line in file.read_text().splitlines() if '"metrics"' in line]
    assert int(told[1].replace(",", "")) == max(steps) > 3
    assert "up to step" not in err


def test_a_run_that_is_killed_at_once_holds_no_step(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from traindx.commands.run import _nothing
    from traindx_tools.live.reading import LiveFile, LiveRun

    seen = LiveRun((LiveFile(tmp_path / "rank00000.jsonl", last_step=0.0),), {"exit_code": 137})
    assert "which hold no step" in _nothing(seen, "run")
    clean = LiveRun((LiveFile(tmp_path / "rank00000.jsonl", last_step=9.0, ended="ok"),), {"exit_code": 0})
    assert "up to step 9; the records" in _nothing(clean, "run")


@pytest.mark.parametrize(("last", "code", "said"), [
    (12.0, 7, "end with step 12, and what came after is not known; the command ended with exit code 7"),
    (None, 7, "hold no step: what came is not known"), (12.0, 137, "before a kill may be missing"),
])
def test_records_that_break_off_are_not_called_a_kill(last: float | None, code: int, said: str, tmp_path: Path) -> None:
    """A full disk ends the records and not the command."""
    from traindx.commands.run import _nothing
    from traindx_tools.live.reading import LiveFile, LiveRun

    head = LiveFile(tmp_path / "rank00000.jsonl", last_step=last, findings=())
    ended = LiveFile(tmp_path / "rank00001.jsonl", last_step=0.0 if last is None else last, ended="ok")
    assert said in _nothing(LiveRun((head, ended), {"exit_code": code}), "run")


FULL = """
import resource, signal, sys, torch
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(400):
    net(torch.ones(3, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
sys.exit(7)
"""


@pytest.mark.slow
def test_a_disk_that_is_full_ends_the_records_and_nothing_else(tmp_path: Path,
                                                               capfd: pytest.CaptureFixture[str]) -> None:
    """The limit on file sizes gives the same kind of error as a full disk, in the program's own writes alone."""
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(FULL)
    code = traindx(["run", "--out", str(tmp_path / "run"), "--", sys.executable, str(script)])
    out, err = capfd.readouterr()
    assert (code, out) == (7, "trained\n")
    assert err.count("nothing more is recorded in") == 1
    assert "the training goes on" in err
    assert "what came after is not known; the command ended with exit code 7" in err
    assert "Traceback" not in err


def test_a_disk_that_is_full_before_the_start_is_told_and_nothing_is_started(
        tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from traindx_tools.live import runner

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(runner, "_note", full)
    words = [sys.executable, "-c", f"open({str(tmp_path / 'started')!r}, 'w')"]
    assert traindx(["run", "--out", str(tmp_path / "run"), "--", *words]) == 2
    err = capfd.readouterr().err
    assert re.search(r"cannot be kept in .*No space left on device\. The command was not started", err)
    assert not (tmp_path / "started").exists()


def test_options_of_the_command_are_the_command_s(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = traindx(["run", "--out", str(tmp_path / "run"), sys.executable, "-c", "import sys; print(sys.argv[1:])",
                    "--out", "x", "--probe"])
    assert (code, capfd.readouterr().out) == (0, "['--out', 'x', '--probe']\n")


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "after --"),
    (["--origin", "nowhere"], "no run.json"),
    (["--probe", "no-such-probe", "--", "true"], "no probe 'no-such-probe'"),
])  # fmt: skip
def test_wrong_usage_is_one_line(arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert traindx(["run", *arguments]) == 2
    err = capfd.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_folder_that_holds_another_run_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old.txt").write_text("")
    assert traindx(["run", "--out", str(tmp_path), "--", "true"]) == 2
    assert "not empty" in capfd.readouterr().err


def test_the_probes_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert traindx(["run", "--list"]) == 0
    assert "nonfinite " in capfd.readouterr().out


TRAIN = """import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    points = model(torch.randn(8, 4)) * (0.0 if step == 20 else 1.0)
    loss = points.pow(2).sum().sqrt()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_rerun_names_the_operation_that_a_log_cannot(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "train.py").write_text(TRAIN)
    (workspace / "log.txt").write_text("\n".join(
        f"step {s} loss {'nan' if s > 20 else round(1.5 - s / 100, 4)}" for s in range(30)))
    before = {p.name for p in workspace.iterdir()}
    old = diagnose([workspace / "log.txt"], root=workspace)
    report = with_rerun(old, f"{sys.executable} train.py", workspace, tmp_path / "rerun", 120)
    first = report.seen.verdict.hypotheses[0]
    assert first.mode.id == "grad.sqrt-at-zero"
    assert report.to_json()["hypotheses"][0]["location"] == "train.py:7"
    assert {"T101", "L101"} <= {f.rule for f in report.seen.findings}
    assert {p.name for p in workspace.iterdir()} == before
    assert "TRAINDX_LIVE" not in os.environ


def test_what_is_stated_is_looked_up_in_the_new_run_where_there_is_no_log(tmp_path: Path) -> None:
    """Seen: the run printed 300 losses, and the answer was that no metric had been recorded."""
    (tmp_path / "train.py").write_text("for i in range(60):\n    print(f'step {i} loss {2.3 + 0.001 * (i % 3):.4f}')\n")
    old = diagnose([tmp_path], symptom="the loss does not go down")
    assert not old.seen.records
    report = with_rerun(old, f"{sys.executable} train.py", tmp_path, tmp_path / "scratch" / "rerun", 60, budget=0)
    assert report.seen.records == 60
    (answer,) = report.seen.symptom_answers
    assert answer.to_json()["answer"] == "seen"


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_write_that_the_protection_refuses_is_no_fault_of_the_program(
        tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, elsewhere: bool) -> None:
    """Seen on a program that saves to /tmp: the error of our own protection was its first hypothesis."""
    if find_sandbox().program is None:
        pytest.skip("nothing on this machine refuses a write")
    target = tmp_path_factory.mktemp("outside") / "last.txt" if elsewhere else Path("nowhere") / "last.txt"
    rows = [f"step {i} loss {2.0 / (1 + i):.4f}" for i in range(40)]
    program = f"print({chr(10).join(rows)!r}, flush=True)\nopen({str(target)!r}, 'w').write('x')\n"
    (tmp_path / "train.py").write_text(program)
    (tmp_path / "log.txt").write_text("\n".join(rows))
    old = diagnose([tmp_path])
    report = with_rerun(old, f"{sys.executable} train.py", tmp_path, tmp_path / "scratch" / "rerun", 60, budget=0)
    errors = {f.rule for f in report.seen.findings if f.rule.startswith("L5")}
    assert ("refused a write" in report.remarks[-1]) is elsewhere
    assert bool(errors) is not elsewhere
    assert not target.exists()


def test_a_command_that_does_not_exist_is_told_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = traindx(["run", "--out", str(tmp_path / "run"), "--", "no-such-program"])
    said = capfd.readouterr()
    assert code == 127
    assert said.err.count("traindx:") == 1
    assert "cannot be started" in said.err
    assert "no-such-program" in said.err
