"""What is said where a run that was run again does not show what the first one showed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from traindx.diagnose import diagnose
from traindx.rerun import with_rerun

BROKEN = "".join(f"step {i} loss {2 * 0.97**i:.4f}\\n" for i in range(60)) + "".join(
    f"step {i} loss nan\\n" for i in range(60, 64))
HEALTHY = BROKEN.replace("nan", "0.3")


def said(project: Path, log: str, again: str, *, weights: bool) -> str:
    (project / "run.log").write_text(log.replace("\\n", "\n"))
    (project / "train.py").write_text(f'print("{again}")\n')
    if weights:
        np.savez(project / "ckpt.npz", layer_weight=np.ones((4, 4), np.float32))
    old = diagnose([project / "run.log"], root=project)
    report = with_rerun(old, f"{sys.executable} train.py", project, project.parent / "rerun", 60,
                        budget=0, screens=False)
    return " ".join(report.notes)


@pytest.mark.parametrize("weights", [True, False])
def test_one_run_more_does_not_tell_that_a_fault_is_intermittent(tmp_path: Path, *, weights: bool) -> None:
    note = said(tmp_path, BROKEN, HEALTHY, weights=weights)
    assert "not reproduced, L101" in note
    assert "intermittent" not in note
    assert "depends on the state that this run began with" in note
    assert ("from ckpt.npz" in note) is weights


def test_what_comes_again_is_reproduced(tmp_path: Path) -> None:
    assert "reproduced, L101" in said(tmp_path, BROKEN, BROKEN, weights=True)


def test_a_run_that_says_nothing_tells_nothing(tmp_path: Path) -> None:
    assert "depends on" not in said(tmp_path, BROKEN, "", weights=True)
