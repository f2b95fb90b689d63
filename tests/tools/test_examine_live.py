"""A folder of `traindx run` is an artifact like any other: its findings join the triage, its metrics are read."""

from __future__ import annotations

import json
import math
from pathlib import Path

from traindx_tools.examine import examine
from traindx_tools.finding import Finding, Location, Severity, Strength
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
    return Finding("T101", "origin", Severity.CRITICAL, Strength.DIRECT,
                   f"step 3: log at {file}:2: the logarithm of zero",
                   Location(file=str(file), line=2, step=3), "the traced step",
                   {"reason": "log-of-zero", "op": "log", "dtype": "float32"})


def test_the_origin_of_a_nan_is_the_cause_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nloss = -torch.log(p).mean()\n")
    folder = folder_of_a_run(tmp_path, [1.0, 0.9, math.inf, math.nan], log_of_zero(tmp_path / "train.py"))
    seen = examine([folder], root=tmp_path)
    first = seen.verdict.hypotheses[0]
    assert (first.mode.id, first.strength.value) == ("loss.log-of-zero", "direct")
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
