"""A loss that is NaN at every n-th record: a remark, for it may be a record in which none was measured."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.finding import Severity

RULE = "l101_nonfinite"
LOSS = 2 / (1 + np.arange(60.0)) ** 0.3


def with_nan(where: list[int]) -> list[float]:
    values = LOSS.copy()
    values[where] = np.nan
    return list(values)


def test_it_is_told_as_a_remark() -> None:
    (found,) = findings(run(series("loss", with_nan(list(range(4, 60, 5))))), RULE)
    assert found.severity is Severity.INFO
    assert "nan at one record in 5 (12 of 60, the first step 5)" in found.statement


@pytest.mark.parametrize("where", [[], [7], list(range(4, 60, 2)) + list(range(5, 60, 2))[:-1]],
                         ids=["none", "one", "nearly all"])
def test_no_beat_is_no_remark(where: list[int]) -> None:
    assert all("one record in" not in f.statement for f in findings(run(series("loss", with_nan(where))), RULE))


def test_rows_of_the_evaluation_alone_leave_the_training_loss_blank() -> None:
    """Where most are blank, they are the rows of something else."""
    rare = [np.nan if i % 5 else float(v) for i, v in enumerate(LOSS[:56])]
    assert findings(run(series("loss", rare)), RULE) == []


def test_irregular_ones_are_a_finding() -> None:
    (found,) = findings(run(series("loss", with_nan([3, 11, 12, 30, 47]))), RULE)
    assert found.severity is Severity.MEDIUM
