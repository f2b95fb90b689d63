"""Which column the target is made of, and which values of it are changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.experiments.planting.choosing import plantable, rows_to_plant, swaps_for, targets_among
from traindx_tools.experiments.planting.tables import Column, Table, tables

N = 900
RNG = np.random.default_rng(8)


def column(name: str, values: object) -> Column:
    if isinstance(values, np.ndarray):
        return Column("d.csv", name, values.astype(np.float64))
    return Column("d.csv", name, None, tuple(values))  # type: ignore[arg-type]


PRICE = np.exp(RNG.normal(size=N))
TABLE = Table(N, (column("when", np.arange(N) * 3600.0), column("size", RNG.uniform(size=N)), column("p", PRICE),
                  column("rooms", RNG.integers(1, 6, N)), column("kind", [("a", "b", "b")[i % 3] for i in range(N)]),
                  column("split", ["train" if i % 5 else "test" for i in range(N)])))


def test_the_column_of_a_scaled_logarithm_is_found_by_its_distribution() -> None:
    targets = ((np.log(PRICE) - 0.1) / 1.1)[RNG.permutation(N)[:600]].astype(np.float32)
    assert targets_among(TABLE, targets)[0].name == "p"


def test_classes_are_found_by_how_often_they_occur() -> None:
    targets = np.array([0, 1, 1] * 150, np.float32)
    assert targets_among(TABLE, targets)[0].name == "kind"
    assert targets_among(TABLE, np.full(10, 1, np.float32)) == []


@pytest.mark.parametrize(("values", "may"), [
    (np.arange(N), False), (RNG.permutation(N), False), (np.full(N, 2.0), False), (RNG.normal(size=N), True),
    (np.sort(RNG.integers(0, 4, N)), True), (["train", "val"] * (N // 2), False), (["cat", "dog"] * (N // 2), True),
    ([f"id-{i}" for i in range(N)], False), ([f"some words of row {i}" for i in range(N)], True),
    (np.full(N, np.nan), False),
])
def test_what_orders_names_or_splits_rows_stays(values: object, may: bool) -> None:
    assert plantable(column("c", values)) is may


def test_values_are_those_of_other_rows_and_larger() -> None:
    rows = rows_to_plant(TABLE, 1)
    assert 40 <= len(rows) <= 48
    assert np.diff(rows).min() >= 1
    swaps = swaps_for(TABLE.columns[2], rows, 1)
    assert len(swaps) >= 40
    assert all(PRICE[donor] > PRICE[row] for row, donor in swaps.items())
    kinds = TABLE.columns[4].keys()
    assert all(kinds[donor] != kinds[row] for row, donor in swaps_for(TABLE.columns[4], rows, 1).items())


def test_few_rows_are_no_table(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(30.0))
    assert tables(["x.npy"], tmp_path) == ()
