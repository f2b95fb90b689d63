"""What is told of an epoch lies at the epoch's end, whether epochs are counted from 0 or from 1."""

from __future__ import annotations

import numpy as np
import pytest

from traindx_tools.on_logs.run import Run, Series
from traindx_tools.plots.axis import axis_of


def run(epochs: list[float]) -> Run:
    steps, at = np.arange(1.0, 121.0), np.array(epochs)
    none = np.full(120, np.nan)
    train = Series("loss", "loss", "train", "live.jsonl", 2 - steps / 100, steps, none, none, np.arange(1, 121))
    held = Series("loss", "val_loss", "validation", "history.csv", 2 - at / 10, np.full(len(at), np.nan), at,
                  np.full(len(at), np.nan), np.arange(2, len(at) + 2))
    return Run(series=(train, held))


@pytest.mark.parametrize(("epochs", "first"), [
    ([float(e) for e in range(12)], 10.0),
    ([float(e) for e in range(1, 13)], 10.0),
    ([0.5 * e for e in range(1, 13)], 10.0),
], ids=["from 0", "from 1", "fractions"])
def test_the_first_epoch_ends_after_its_steps(epochs: list[float], first: float) -> None:
    made = run(epochs)
    at = axis_of(made).place(made.series[1])
    assert at is not None
    assert (at[0], at[-1]) == (pytest.approx(first), pytest.approx(120.0))
