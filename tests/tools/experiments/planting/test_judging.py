"""Rows of two runs: what is a leak, what is a lag, a scale of all rows, a target relative to its own input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.planting.judging import Together, apart, compared, together
from traindx_tools.live.batch_rows import EVALUATED, TRAINED, BatchRows, fits, read, write

N = 3000
RNG = np.random.default_rng(5)
SERIES = np.cumsum(RNG.normal(size=N)) * 0.05 + RNG.normal(size=N)
PLANTED = SERIES.copy()
AT = np.arange(40, N - 40, 60)
PLANTED[AT] += 1.0


def rows_of(inputs: NDArray[np.float64], targets: NDArray[np.float64], role: int = TRAINED) -> BatchRows:
    n = len(inputs)
    sums = np.stack([inputs.mean(1), inputs.std(1), np.abs(inputs).max(1)], 1)
    return BatchRows(np.arange(n) // 32, np.arange(n) % 32, np.full(n, role),
                     np.concatenate([sums, inputs], 1).astype(np.float32), targets[:, None].astype(np.float32),
                     inputs.shape[1])


def windows(x: NDArray[np.float64], lags: int = 5, ahead: int = 3) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    at = np.arange(lags, len(x) - ahead)
    return np.stack([x[at - k] for k in range(lags)], 1), x[at + ahead]


def seen(control: tuple[NDArray[np.float64], NDArray[np.float64]],
         planted: tuple[NDArray[np.float64], NDArray[np.float64]]) -> Together:
    told = compared(rows_of(*control), rows_of(*planted), TRAINED)
    assert told.why == ""
    return together(told)


def test_lags_are_no_leak() -> None:
    told = seen(windows(SERIES), windows(PLANTED))
    assert (told.targets, told.both, told.leaks) == (len(AT), 0, False)
    assert told.base > 0.05


def centred(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    inputs, targets = windows(x)
    smooth = np.convolve(x, np.ones(7) / 7, "same")[5:len(x) - 3]
    return np.concatenate([inputs, smooth[:, None]], 1), targets


def test_a_centred_window_is_one_and_its_column_is_named() -> None:
    told = seen(centred(SERIES), centred(PLANTED))
    assert (told.leaks, told.columns) == (True, (5,))


def test_the_column_is_found_below_a_scale_of_all_rows() -> None:
    def scaled(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        inputs, targets = centred(x)
        return (inputs - inputs.mean(0)) / inputs.std(0), (targets - targets.mean()) / targets.std()

    assert seen(scaled(SERIES), scaled(PLANTED)).columns == (5,)
    without = [(x[:, :5], y) for x, y in (scaled(SERIES), scaled(PLANTED))]
    assert not seen(*without).leaks


def test_a_difference_to_the_present_value_is_no_leak() -> None:
    told = [(x, y - x[:, 0]) for x, y in (windows(SERIES), windows(PLANTED))]
    assert not seen(*told).leaks


def test_a_target_in_units_of_its_own_window_is_no_leak() -> None:
    told = [((x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), (y - x.mean(1)) / x.std(1))
            for x, y in (windows(SERIES, lags=12), windows(PLANTED, lags=12))]
    assert not seen(*told).leaks


def test_an_average_of_labels_by_group_is_a_leak() -> None:
    group = RNG.integers(0, 400, N)

    def encoded(y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        mean = np.bincount(group, y, 400) / np.maximum(np.bincount(group, minlength=400), 1)
        return np.stack([RNG2, mean[group]], 1), y

    RNG2 = RNG.normal(size=N)
    assert seen(encoded(SERIES), encoded(PLANTED)).leaks


def test_a_target_that_is_computed_of_the_input_is_no_leak() -> None:
    told = [(x, x.max(1)) for x, _ in (windows(SERIES, lags=20), windows(PLANTED, lags=20))]
    assert not seen(*told).leaks


@pytest.mark.parametrize(("values", "may"), [
    (RNG.normal(size=(8, 4)), True), (RNG.normal(size=(8, 24)), True), (RNG.normal(size=(8, 65)), False),
    (RNG.integers(0, 99, (8, 24)), False), (RNG.integers(0, 9, (8, 1)), True), (RNG.normal(size=(8, 60)), False),
])
def test_which_values_can_be_the_targets_of_a_row(values: NDArray[np.float64], may: bool) -> None:
    assert fits(values.astype(np.float32), 100) is may


def test_a_batch_that_goes_into_the_model_with_its_target_is_no_leak() -> None:
    told = [(np.concatenate([x, 2 * y[:, None] + 1], 1), y) for x, y in (windows(SERIES), windows(PLANTED))]
    assert not seen(*told).leaks


def test_nothing_is_said_of_other_batches() -> None:
    inputs, targets = windows(SERIES)
    order = RNG.permutation(len(inputs))
    assert "other batches" in compared(rows_of(inputs, targets), rows_of(inputs[order], targets[order]), TRAINED).why
    assert "sizes" in compared(rows_of(inputs, targets), rows_of(inputs[:, :2], targets), TRAINED).why
    assert "no rows" in compared(rows_of(inputs, targets), rows_of(inputs, targets), EVALUATED).why


@pytest.mark.parametrize("sorted_apart", [False, True])
def test_whole_rows_that_arrive_apart(sorted_apart: bool) -> None:
    x, y = RNG.normal(size=(N, 4)), RNG.integers(0, 5, N).astype(float)
    other, label = x.copy(), y.copy()
    other[AT], label[AT] = x[AT + 7], (y[AT] + 1) % 5
    order = RNG.permutation(N) if sorted_apart else np.arange(N)
    told = compared(rows_of(x[order], y), rows_of(other[order], label), TRAINED)
    assert apart(told) is sorted_apart


def test_rows_are_kept_in_a_file_and_read_back(tmp_path: Path) -> None:
    made = rows_of(*windows(SERIES))
    write(tmp_path / "rows" / "rank00000.npz", made)
    back = read(tmp_path / "rows" / "rank00000.npz")
    assert (back.inputs == made.inputs).all()
    assert back.per_row == 5
    for data in (b"", b"PK", (tmp_path / "rows" / "rank00000.npz").read_bytes()[:500]):
        (tmp_path / "broken.npz").write_bytes(data)
        with pytest.raises(UnreadableInput, match="holds no rows of batches"):
            read(tmp_path / "broken.npz")
