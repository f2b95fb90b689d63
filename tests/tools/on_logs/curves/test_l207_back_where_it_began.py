"""A resume after which the loss is that of the untrained model speaks for weights that did not come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import Examination, examine

WEIGHTS = {"ckpt.missing-keys-silent", "ckpt.weights-not-used"}


def resumed(folder: Path, after: float, lr: float = 0.00153) -> Examination:
    """A run from 0.86 down to about 0.12, resumed at step 750."""
    lines = [f"step {s} | loss {0.12 + 0.74 * 0.95 ** (s / 10):.5f} | lr 0.00153" for s in range(0, 750, 10)]
    lines += ["resumed from ckpt.pt at step 750"]
    lines += [f"step {s} | loss {0.12 + (after - 0.12) * 0.9 ** ((s - 750) / 10):.5f} | lr {lr}"
              for s in range(750, 1500, 10)]
    (folder / "run.log").write_text("\n".join(lines) + "\n")
    return examine([folder / "run.log"], root=folder)


def step_of(seen: Examination) -> tuple[object, str]:
    found = next(f for f in seen.findings if f.rule == "L207")
    return found.measured["lost"], found.statement


def test_back_at_the_level_of_the_untrained_model(tmp_path: Path) -> None:
    seen = resumed(tmp_path, 0.864)
    lost, said = step_of(seen)
    assert isinstance(lost, float)
    assert lost == pytest.approx(1.0, abs=0.03)
    assert "back where it began (0.86)" in said
    assert seen.verdict.hypotheses[0].mode.id in WEIGHTS


def test_part_of_the_way_is_not(tmp_path: Path) -> None:
    seen = resumed(tmp_path, 0.3)
    lost, said = step_of(seen)
    assert isinstance(lost, float)
    assert lost < 0.5
    assert "began" not in said
    assert seen.verdict.hypotheses[0].mode.id not in WEIGHTS


def test_where_nothing_was_gained_nothing_is_lost(tmp_path: Path) -> None:
    lines = [f"step {s} | loss 1.00{s % 3}" for s in range(0, 300, 10)] + ["resumed from ckpt.pt at step 300"]
    lines += [f"step {s} | loss 1.50{s % 3}" for s in range(300, 600, 10)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    assert step_of(examine([tmp_path / "run.log"], root=tmp_path))[0] is None


def test_a_resume_without_records_is_no_step(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("step 0 | loss 1\nresumed from ckpt.pt at step 0\nstep 1 | loss nan\n")
    assert not any(f.rule == "L207" for f in examine([tmp_path / "run.log"], root=tmp_path).findings)
