"""Lists of row numbers beside their tables: a cache that is older than its table, and lists that are meant so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d193_list_ends_early as d193

Seen = Callable[[ModuleType, Path], list[Finding]]
Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def table(folder: Path, rows: int = 1000) -> None:
    (folder / "cache").mkdir()
    text = "".join(f"{a:.4f},{b:.4f},{'xyz'[i % 3]}\n" for i, (a, b) in enumerate(RNG.normal(size=(rows, 2))))
    (folder / "rows.csv").write_text(f"a,b,site\n{text}")


def some(until: int, share: float, start: int = 0) -> Array:
    return start + np.flatnonzero(RNG.random(until - start) < share)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_list_that_was_made_when_the_table_was_shorter(shuffled: bool, tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path)
    rows = some(600, 0.85)
    np.save(tmp_path / "cache" / "usable.npy", RNG.permutation(rows) if shuffled else rows)
    (one,) = seen_by(d193, tmp_path)
    assert (one.measured["end"], one.measured["rows"], one.measured["other"]) == (int(rows.max()) + 1, 1000, "rows.csv")


@pytest.mark.parametrize("lists", [
    {"usable": some(1000, 0.85)}, {"train": np.arange(700)}, {"train": some(600, 0.85), "valid": some(1000, 0.9, 600)},
    {"few": np.arange(0, 600, 20)}, {"early": np.concatenate([some(200, 0.9), [599]])},
    {"labels": RNG.integers(0, 9, 600)}, {"usable": some(980, 0.85)},
])
def test_whole_lists_splits_and_other_numbers_are_quiet(lists: dict[str, Array], tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path)
    for name, rows in lists.items():
        np.save(tmp_path / "cache" / f"{name}.npy", rows)
    assert seen_by(d193, tmp_path) == []


def test_a_file_of_splits_may_name_the_rest(tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path)
    np.save(tmp_path / "cache" / "usable.npy", some(600, 0.85))
    told = {"train": list(range(600)), "val": list(range(600, 1000))}
    (tmp_path / "splits.json").write_text(json.dumps(told))
    assert seen_by(d193, tmp_path) == []


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{"])
def test_damaged_lists_are_left_alone(data: bytes, tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path)
    (tmp_path / "cache" / "usable.npy").write_bytes(data)
    assert seen_by(d193, tmp_path) == []
