"""What a run showed is told as soon as it ended, before experiments and verdict."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from traindx.rerun import run_in_copy
from traindx.seen_at_once import FINDINGS, LINES, seen_at_once
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.live.reading import LiveRun, read_folder


def recorded(folder: Path, facts: str, root: Path, read: list[str] | None = None) -> LiveRun:
    folder.mkdir()
    rows = [{"traindx": "live", "kind": "start", "version": 1, "rank": 0, "pid": 1, "mode": "watch", "cwd": str(root),
             "argv": ["train.py"], "started": 1.0},
            {"kind": "files", "read": [{"path": p, "file": str(root / "train.py"), "line": 3} for p in read or []]},
            {"kind": "facts", "text": facts}]
    (folder / "rank00000.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return read_folder(folder)


def finding(severity: Severity, statement: str = "the weight of head never moved") -> Finding:
    return Finding("T203", "t", severity, Bearing.SIGN, statement, Location(step=3), "live")


def test_findings_come_first_then_facts_then_files(tmp_path: Path) -> None:
    (tmp_path / "data.npz").write_bytes(b"x")
    told = recorded(tmp_path / "live", "backward at train.py:4\nmodel Net: trained", tmp_path,
                    [str(tmp_path / "data.npz")])
    said = list(seen_at_once(told, [finding(Severity.HIGH)], tmp_path))
    assert said[0].startswith("seen in this run, not weighed yet: T203 the weight of head never moved")
    assert said[1:] == ["fact: backward at train.py:4", "fact: model Net: trained", "fact: it read data.npz"]


def test_remarks_of_a_healthy_run_are_not_told_as_something_seen(tmp_path: Path) -> None:
    told = recorded(tmp_path / "live", "model Net: trained", tmp_path)
    assert list(seen_at_once(told, [finding(Severity.INFO), finding(Severity.LOW)], tmp_path)) == [
        "fact: model Net: trained"]


def test_many_are_counted_and_no_line_breaks_out(tmp_path: Path) -> None:
    told = recorded(tmp_path / "live", "\n".join(f"loss {i}: {'x' * 900}\x1b[31m" for i in range(LINES + 4)), tmp_path)
    said = list(seen_at_once(told, [finding(Severity.HIGH, f"a\nb {i}") for i in range(FINDINGS + 2)], tmp_path))
    assert len(said) == FINDINGS + 1 + LINES + 1
    assert "2 more" in said[FINDINGS]
    assert "4 more facts" in said[-1]
    assert not any("\n" in s or "\x1b" in s for s in said)
    assert max(map(len, said)) <= 440


def test_a_run_without_training_tells_nothing(tmp_path: Path) -> None:
    assert list(seen_at_once(LiveRun(()), [], tmp_path)) == []


TRAINS = '''import numpy as np, torch
x = torch.from_numpy(np.load("rows.npz")["x"])
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    torch.nn.functional.mse_loss(net(x), torch.zeros(4, 1)).backward()
    opt.step()
'''


def test_a_run_in_a_copy_says_it_when_the_command_has_ended(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    project = tmp_path / "project"
    project.mkdir()
    np.savez(project / "rows.npz", x=np.ones((4, 3), np.float32))
    (project / "train.py").write_text(TRAINS)
    said: list[str] = []
    rerun = run_in_copy(f"{sys.executable} train.py", project, tmp_path / "rerun", 60, said.append)
    assert rerun.outcome.exit_code == 0
    assert "runs in a copy" in said[0]
    assert "fact: backward at train.py:7" in said
    assert any(s.startswith("fact: optimizer SGD: 3 steps") for s in said)
    assert said[-1] == "fact: it read rows.npz"
    said.clear()
    run_in_copy(f"{sys.executable} train.py", project, tmp_path / "rerun", 60, said.append)
    assert said == []


def test_they_stand_in_the_json_and_in_the_report(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from traindx.diagnose import diagnose
    from traindx.rerun import with_rerun

    project = tmp_path / "project"
    project.mkdir()
    np.savez(project / "rows.npz", x=np.ones((4, 3), np.float32))
    (project / "train.py").write_text(TRAINS)
    (project / "train.log").write_text("".join(f"step {n} loss {1 / (n + 1):.4f}\n" for n in range(20)))
    report = with_rerun(diagnose([project]), f"{sys.executable} train.py", project, tmp_path / "rerun", 60, 0.0)
    facts = report.to_json()["analysis_artifacts"]["program_facts"]
    assert "first inputs of Linear: forward: float32[4, 3] all 1" in facts
    assert "usual order up to a step" in facts
    page = Path(report.write(tmp_path / "out")["report"]).read_text()
    assert "What the program is and did" in page
    assert "first inputs of Linear" in page
    assert not diagnose([project]).facts
