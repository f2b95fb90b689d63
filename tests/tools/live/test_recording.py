"""The recorder: bounded, findings kept, readable after a kill, silent when the disk refuses."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.live import notice
from traindx_tools.live.reading import read_file, read_files, read_folder
from traindx_tools.live.recording import FileRecorder


def finding(rule: str = "T101", step: int = 3, line: int = 4) -> Finding:
    return Finding(rule, "t", Severity.CRITICAL, Bearing.CAUSE, f"step {step}: it broke",
                   Location(file="/job/train.py", line=line, step=step), "here", {"value": math.inf})


def test_ten_thousand_steps_stay_below_the_bound_and_findings_stay(tmp_path: Path) -> None:
    recorder = FileRecorder(tmp_path, bound=200_000)
    recorder.finding(finding())
    for step in range(10_000):
        recorder.metrics(step, {"loss": 1 / (step + 1), "grad_norm": math.nan})
    recorder.end("ok")
    path = tmp_path / "rank00000.jsonl"
    assert path.stat().st_size <= 200_000
    read = read_file(path)
    assert read is not None
    assert (read.last_step, read.ended, [f.rule for f in read.findings]) == (9_999, "ok", ["T101"])
    steps = [r["step"] for r in map(json.loads, path.read_text().splitlines()) if r.get("kind") == "metrics"]
    assert steps == list(range(steps[0], 10_000))


def test_a_repeated_finding_is_counted(tmp_path: Path) -> None:
    recorder = FileRecorder(tmp_path)
    for step in range(5):
        recorder.finding(finding(step=step))
    recorder.finding(finding(line=9))
    assert [f.where.line for f in recorder.findings] == [4, 9]
    summary = json.loads((tmp_path / "rank00000.summary.json").read_text())
    assert [f["count"] for f in summary["findings"]] == [5, 1]


def test_what_was_withdrawn_is_neither_read_nor_summed_up_and_may_come_again(tmp_path: Path) -> None:
    recorder = FileRecorder(tmp_path)
    early = replace(finding(), measured={"variable": "ring"})
    recorder.finding(early)
    recorder.finding(replace(finding(line=9), measured={"variable": "losses"}))
    recorder.withdraw(early.rule, "variable", "ring")
    recorder.withdraw(early.rule, "variable", "unknown")
    assert [f.measured["variable"] for f in recorder.findings] == ["losses"]
    read = read_file(tmp_path / "rank00000.jsonl")
    assert read is not None
    assert [f.measured["variable"] for f in read.findings] == ["losses"]
    recorder.finding(early)
    read = read_file(tmp_path / "rank00000.jsonl")
    assert read is not None
    assert [f.measured["variable"] for f in read.findings] == ["losses", "ring"]


def test_nothing_is_written_before_there_is_something_to_write(tmp_path: Path) -> None:
    recorder = FileRecorder(tmp_path / "run")
    recorder.metrics(1, {})
    recorder.end("ok")
    assert not (tmp_path / "run").exists()


def test_two_processes_of_one_rank_do_not_share_a_file(tmp_path: Path) -> None:
    for _ in range(2):
        FileRecorder(tmp_path).metrics(1, {"loss": 1.0})
    assert len(list(tmp_path.glob("rank00000*.jsonl"))) == 2


def test_a_folder_that_cannot_be_made_switches_it_off_with_one_line(tmp_path: Path,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    notice._said.clear()
    (tmp_path / "file").write_text("in the way")
    recorder = FileRecorder(tmp_path / "file" / "run")
    for step in range(3):
        recorder.metrics(step, {"loss": 1.0})
    assert capsys.readouterr().err.count("traindx:") == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from traindx_tools.finding import *
from traindx_tools.live.recording import FileRecorder
r = FileRecorder(Path(sys.argv[1]))
r.metrics(1, {"loss": 1.0})
r.finding(Finding("T101", "t", Severity.HIGH, Bearing.CAUSE, "it broke", Location(step=1), "here"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_does_not_lose_a_finding(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    (read,) = read_folder(tmp_path).files
    assert (read.ended, [f.rule for f in read.findings]) == (None, ["T101"])
    assert json.loads((tmp_path / "rank00000.summary.json").read_text())["findings"]


def test_damaged_and_foreign_files_are_left_out(tmp_path: Path) -> None:
    recorder = FileRecorder(tmp_path)
    recorder.finding(finding())
    with (tmp_path / "rank00000.jsonl").open("ab") as file:
        file.write(b'{"kind": "finding", "finding": {"rule": "nonsense"}}\n\xff\xfe{"kind": "fin')
    (tmp_path / "other.jsonl").write_text('{"loss": 1}\n')
    assert [f.rule for f in read_folder(tmp_path).findings] == ["T101"]
    assert read_file(tmp_path / "missing.jsonl") is None


def test_files_are_named_as_seen_from_where_the_command_ran(tmp_path: Path) -> None:
    recorder = FileRecorder(tmp_path)
    own = os.path.join(os.getcwd(), "train.py")
    recorder.finding(Finding("T101", "t", Severity.HIGH, Bearing.CAUSE, f"log at {own}:3 broke",
                             Location(file=own, line=3), "here"))
    (found,) = read_folder(tmp_path).findings
    assert (found.where.file, found.statement) == ("train.py", "log at train.py:3 broke")


def test_of_several_runs_the_last_one_counts(tmp_path: Path) -> None:
    for name, rule in (("a", "T101"), ("b", "T102")):
        recorder = FileRecorder(tmp_path / name)
        recorder._started = {"a": 1.0, "b": 2.0}[name]
        recorder.finding(finding(rule))
    assert [f.rule for f in read_files(tmp_path.rglob("*.jsonl")).findings] == ["T102"]


def failed(recorder: FileRecorder) -> None:
    def broken() -> None:
        raise RuntimeError("expected Long but got Float")

    try:
        broken()
    except RuntimeError as error:
        recorder.failed(error)
        recorder.end("RuntimeError: expected Long but got Float")


def test_the_error_that_ends_a_program_is_kept_with_its_traceback_and_read_as_one(tmp_path: Path) -> None:
    from traindx_tools.on_logs import read_run

    recorder = FileRecorder(tmp_path)
    recorder.metrics(1, {"loss": 0.5})
    failed(recorder)
    (event,) = read_run([tmp_path]).errors
    assert (event.type, event.message) == ("RuntimeError", "expected Long but got Float")
    assert event.frames[-1].file == __file__


def test_an_error_before_the_first_step_is_kept_as_well(tmp_path: Path) -> None:
    failed(FileRecorder(tmp_path))
    assert "expected Long" in json.loads((tmp_path / "rank00000.jsonl").read_text().splitlines()[-1])["trace"]


def test_an_exception_whose_text_cannot_be_made_ends_nothing(tmp_path: Path) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    recorder = FileRecorder(tmp_path)
    recorder.failed(Odd())
    recorder.end("Odd")
    assert json.loads((tmp_path / "rank00000.jsonl").read_text().splitlines()[-1])["kind"] == "end"


CLOSING = """
import os, sys
from pathlib import Path
from traindx_tools.live.recording import FileRecorder
recorder = FileRecorder(Path(sys.argv[1]))
recorder.metrics(1, {"loss": 0.5})
recorder.metrics(2, {"loss": 0.25})
os.closerange(3, 64)
own = [open(Path(sys.argv[2]) / f"own{n}.txt", "w") for n in range(int(sys.argv[3]))]
recorder.metrics(3, {"loss": 0.125})
recorder.flush()
recorder.end("ok")
for file in own:
    file.write("mine")
    file.close()
print("fine")
"""


@pytest.mark.parametrize("opened", [0, 1, 8])
def test_a_program_that_closes_every_descriptor_keeps_its_own_files_clean(tmp_path: Path, opened: int) -> None:
    (tmp_path / "own").mkdir()
    done = subprocess.run([sys.executable, "-c", CLOSING, str(tmp_path / "run"), str(tmp_path / "own"), str(opened)],
                          capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "fine\n"
    assert "nothing more is recorded" in done.stderr
    assert "Exception ignored" not in done.stderr
    assert [p.read_text() for p in (tmp_path / "own").iterdir()] == ["mine"] * opened


def test_a_folder_that_is_gone_raises_nothing(tmp_path: Path) -> None:
    code = ("import os, sys\nfrom pathlib import Path\nfrom traindx_tools.live.recording import FileRecorder\n"
            "os.mkdir(sys.argv[1] + '/gone')\nos.chdir(sys.argv[1] + '/gone')\nos.rmdir(sys.argv[1] + '/gone')\n"
            "r = FileRecorder(Path(sys.argv[1]) / 'run')\nr.metrics(1, {'loss': 0.5})\nr.end('ok')\n")
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60, check=True)
    assert len((tmp_path / "run" / "rank00000.jsonl").read_text().splitlines()) == 3
