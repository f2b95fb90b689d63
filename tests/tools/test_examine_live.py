"""A folder of `traindx run` is an artifact like any other: its findings join the triage, its metrics are read."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from traindx_tools.examine import examine
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.live.reading import workspace_of
from traindx_tools.live.recording import FileRecorder


def folder_of_a_run(root: Path, losses: list[float], *findings: Finding) -> Path:
    folder = root / "traindx-run" / "1"
    recorder = FileRecorder(folder)
    for step, loss in enumerate(losses, 1):
        recorder.metrics(step, {"loss": loss})
    for finding in findings:
        recorder.finding(finding)
    recorder.end("ok")
    (folder / "run.json").write_text(json.dumps({"traindx": "live-run", "cwd": str(root), "command": ["python"]}))
    return folder


def log_of_zero(file: Path) -> Finding:
    return Finding("T101", "origin", Severity.CRITICAL, Bearing.CAUSE,
                   f"step 3: log at {file}:2: the logarithm of zero",
                   Location(file=str(file), line=2, step=3), "the traced step",
                   {"reason": "log-of-zero", "op": "log", "dtype": "float32"})


def test_the_origin_of_a_nan_is_the_cause_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nloss = -torch.log(p).mean()\n")
    folder = folder_of_a_run(tmp_path, [1.0, 0.9, math.inf, math.nan], log_of_zero(tmp_path / "train.py"))
    seen = examine([folder], root=tmp_path)
    first = seen.verdict.hypotheses[0]
    assert (first.mode.id, first.strength.value) == ("loss.log-of-zero", "ran")
    assert first.location is not None
    assert first.location.code == "train.py:2"
    assert seen.code == (tmp_path / "train.py",)


def test_a_log_and_a_run_folder_are_weighed_in_one_triage(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("\n".join(f"step {s} loss {'nan' if s > 20 else 1.0 - s / 100}" for s in range(1, 41)))
    alone = examine([log], root=tmp_path)
    assert alone.verdict.status == "needs_more_data"
    folder = folder_of_a_run(tmp_path, [1.0, 0.9], log_of_zero(tmp_path / "train.py"))
    joined = examine([log, folder], root=tmp_path)
    first = joined.verdict.hypotheses[0]
    assert {w.finding.rule for w in first.speaks_for} >= {"T101", "L101"}
    assert alone.joined([f for f in joined.findings if f.rule == "T101"]).verdict.hypotheses[0].mode.id == first.mode.id


def test_an_objective_that_does_not_fall_is_no_fault(tmp_path: Path) -> None:
    """What `backward` is called on need not be a loss: here the two of an adversarial pair, mixed."""
    folder = folder_of_a_run(tmp_path, [1.0 + 0.05 * math.sin(s) for s in range(400)])
    seen = examine([folder], root=tmp_path)
    assert (seen.verdict.status, seen.findings) == ("healthy", ())
    assert seen.run.loss is not None


def test_a_healthy_run_folder_is_healthy_and_a_damaged_one_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    folder = folder_of_a_run(tmp_path, [2.0 / (s + 1) for s in range(50)])
    with (folder / "rank00000.jsonl").open("ab") as file:
        file.write(b'{"kind": "finding", "finding": 3}\n{"kind": "metr')
    assert examine([folder], root=tmp_path).verdict.status == "healthy"


FAULTY = (Path(__file__).parent / "on_code/fixtures/c276/bad_head_forgotten.py").read_text()


def recorded(root: Path, script: str = "fit.py", **start: object) -> Path:
    """A folder as a Monitor leaves it: records of one process, and no record of a runner."""
    folder = root / "traindx-run" / "1"
    folder.mkdir(parents=True)
    first = {"traindx": "live", "kind": "start", "version": 1, "rank": 0, "mode": "watch", "cwd": str(root),
             "argv": [script], "started": 1.0, **start}
    lines = [first, *({"kind": "metrics", "step": s, "loss": 1.0 / s} for s in range(1, 30))]
    (folder / "rank00000.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    return folder


def test_the_program_of_a_record_is_read_with_it(tmp_path: Path) -> None:
    (tmp_path / "fit.py").write_text("from net import go\ngo()\n")
    (tmp_path / "net.py").write_text(FAULTY)
    folder = recorded(tmp_path)
    seen = examine([folder], root=workspace_of([folder]))
    assert [p.name for p in seen.code] == ["fit.py", "net.py"]
    assert [f.where.file for f in seen.findings if f.rule == "C276"] == ["net.py"]


@pytest.mark.parametrize("start", [
    {"argv": ["-c"]},
    {"argv": []},
    {"argv": [7]},
    {"argv": "fit.py"},
    {"argv": ["../fit.py"]},
    {"argv": ["gone.py"]},
    {"argv": ["fit.py\0"]},
    {"cwd": "/nowhere"},
    {"cwd": ""},
])  # fmt: skip
def test_a_program_that_is_not_below_the_workspace_is_left_alone(tmp_path: Path, start: dict[str, object]) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "fit.py").write_text(FAULTY)
    folder = recorded(root, **start)
    assert examine([folder], root=workspace_of([folder])).code == ()


def test_code_that_is_given_is_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "fit.py").write_text(FAULTY)
    (tmp_path / "other.py").write_text("x = 1\n")
    folder = recorded(tmp_path)
    assert [p.name for p in examine([folder, tmp_path / "other.py"], root=tmp_path).code] == ["other.py"]


def test_a_file_is_read_once_that_a_record_names_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import torch\nloss = -torch.log(p).mean()\n")
    folder_of_a_run(tmp_path, [1.0, 0.9, math.inf, math.nan], log_of_zero(tmp_path / "train.py"))
    assert examine(["."], root=tmp_path).code == (Path("train.py"),)
