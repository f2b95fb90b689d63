"""A training loss far above the validation loss is told, and is never a fault by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from traindx_tools.examine import examine
from traindx_tools.finding import Severity


def table(folder: Path, train: Sequence[float], held_out: Sequence[float]) -> Path:
    path = folder / "history.csv"
    path.write_text("epoch,train_loss,val_loss\n" + "".join(
        f"{k},{t},{v}\n" for k, (t, v) in enumerate(zip(train, held_out, strict=True))))
    return path


FALLING = [4.07, 3.77, 3.19, 2.8, 2.6, 2.45, 2.36, 2.31, 2.28, 2.26]
BESIDE = [2.12, 1.7, 1.19, 0.95, 0.84, 0.78, 0.73, 0.7, 0.66, 0.62]


def test_a_training_loss_that_stays_above_is_remarked(tmp_path: Path) -> None:
    found = examine([table(tmp_path, FALLING, BESIDE)])
    (remark,) = [f for f in found.findings if f.rule == "L225"]
    assert remark.severity is Severity.INFO
    assert "3.6452 times the validation loss of 0.62" in remark.statement
    assert found.verdict.status == "healthy"


@pytest.mark.parametrize(("train", "held_out"), [
    (BESIDE, BESIDE), ([0.9 * v for v in BESIDE], BESIDE), ([1.5 * v for v in BESIDE], BESIDE),
    (FALLING, [2.1] * 10), (FALLING[:3], BESIDE[:3]), (FALLING, [*BESIDE[:5], 3.0, *BESIDE[6:]]),
    (FALLING, [-v for v in BESIDE]), ([float("nan")] * 10, BESIDE),
])
def test_what_is_near_rises_or_cannot_be_compared_is_not(tmp_path: Path, train: Sequence[float],
                                                        held_out: Sequence[float]) -> None:
    assert "L225" not in [f.rule for f in examine([table(tmp_path, train, held_out)]).findings]
