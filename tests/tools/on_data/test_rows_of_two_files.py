"""D141: a table and vectors of as many rows each that belong together in another order, and tables that do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.other_order import reordered
from traindx_tools.on_data.rules import d141_fields_apart as d141
from traindx_tools.on_data.view import View

Seen = Callable[[ModuleType, Path], list[Finding]]
ROWS = 600


def write(folder: Path, order: str, score: bool = True, drift: float = 0.0, plain: str = "") -> None:
    """Compounds by number, with a measured score, and descriptors of them written in another order."""
    rng = np.random.default_rng(4)
    score_of = rng.normal(size=ROWS)
    look = rng.normal(size=(ROWS, 10))
    if score:
        look[:, :4] += score_of[:, None] * np.array([1.0, -0.8, 0.6, 1.2])
    stock = rng.permutation(ROWS * 3)[:ROWS]
    names = [f"B-{i + 1}" for i in range(ROWS)]
    by = {"own": range(ROWS), "text": sorted(range(ROWS), key=lambda i: names[i]),
          "falling": sorted(range(ROWS), key=lambda i: -stock[i]), "random": rng.permutation(ROWS)}[order]
    slow = drift * np.linspace(-1, 1, ROWS)
    vectors = look[list(by)] + slow[:, None]
    np.savez(folder / "descriptors.npz", look=vectors.astype(np.float32))
    rows = [f"{names[i]},{stock[i]},{score_of[i] + slow[i]:.4f}{plain}" for i in range(ROWS)]
    (folder / "assay.csv").write_text("\n".join([f"compound,stock,score{',x' if plain else ''}", *rows]) + "\n")


@pytest.mark.parametrize(("order", "by", "how"), [("text", "compound", "text"), ("falling", "stock", "falling")])
def test_vectors_that_were_written_in_another_order(order: str, by: str, how: str, tmp_path: Path,
                                                    seen_by: Seen) -> None:
    write(tmp_path, order)
    (found,) = seen_by(d141, tmp_path)
    assert (found.severity, found.measured["kind"]) == (Severity.MEDIUM, "order")
    assert (found.measured["by"], found.measured["how"], found.measured["field"]) == (by, how, "score")
    assert "assay.csv" in found.statement
    assert "descriptors.npz" in found.statement


def test_a_table_that_was_sorted_since(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "own")
    head, *rows = (tmp_path / "assay.csv").read_text().splitlines()
    (tmp_path / "assay.csv").write_text("\n".join([head, *sorted(rows)]) + "\n")
    (found,) = seen_by(d141, tmp_path)
    assert (found.measured["by"], found.measured["how"]) == ("compound", "numbers")


@pytest.mark.parametrize(("order", "score", "drift"), [
    ("own", True, 0.0), ("own", True, 3.0),  # they belong together as they lie
    ("text", False, 0.0),  # nothing goes along with anything
    ("own", False, 5.0), ("text", False, 5.0),  # both change slowly along the rows, and have nothing else in common
    ("random", True, 0.0),  # no column tells the order
], ids=["together", "together and slow", "strangers", "slow", "slow strangers", "lost"])
def test_files_of_as_many_rows_that_are_left_alone(order: str, score: bool, drift: float, tmp_path: Path,
                                                   seen_by: Seen) -> None:
    write(tmp_path, order, score, drift)
    assert seen_by(d141, tmp_path) == []


def test_other_numbers_of_rows_values_that_are_none_and_a_single_column(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "text")
    lines = (tmp_path / "assay.csv").read_text().splitlines()
    (tmp_path / "assay.csv").write_text("\n".join(lines[:-1]) + "\n")
    assert seen_by(d141, tmp_path) == []
    (tmp_path / "assay.csv").write_text("\n".join([lines[0], "B-1,,0.1", *lines[2:]]) + "\n")
    assert all(f.measured["how"] != "falling" for f in seen_by(d141, tmp_path))
    (tmp_path / "assay.csv").write_text("\n".join(x.split(",")[0] for x in lines) + "\n")
    assert seen_by(d141, tmp_path) == []
    write(tmp_path, "text")
    vectors = np.load(tmp_path / "descriptors.npz")["look"]
    vectors[3, 2] = np.nan
    np.savez(tmp_path / "descriptors.npz", look=vectors)
    assert seen_by(d141, tmp_path) == []


def test_nothing_to_look_at() -> None:
    assert list(reordered(View(()))) == []


def test_no_false_alarm_in_two_hundred_pairs_of_strangers(tmp_path: Path) -> None:
    from traindx_tools.on_data.column import Column
    from traindx_tools.on_data.shard import Shard
    from traindx_tools.on_data.table import DataSet

    rng = np.random.default_rng(11)
    for number in range(200):
        rows = int(rng.integers(100, 400))
        walk = number % 2
        look = rng.normal(size=(rows, 6))
        table = {n: rng.normal(size=rows) for n in ("a", "b", "c")}
        if walk:
            look, table = np.cumsum(look, axis=0), {n: np.cumsum(v) for n, v in table.items()}
        one = Shard("v.npy", "npy", {"look": Column("look", "number", look, "v.npy")}, rows, rows)
        other = Shard("t.csv", "csv", {n: Column(n, "number", v, "t.csv") for n, v in table.items()}, rows, rows)
        sets = tuple(DataSet(s.name, (s,)) for s in (one, other))
        assert list(reordered(View(sets))) == [], number
