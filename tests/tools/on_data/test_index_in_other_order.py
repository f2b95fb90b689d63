"""D227: villages with a number each, roads between villages, and a file of what they look like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d227_index_in_other_order as d227

Seen = Callable[[ModuleType, Path], list[Finding]]
COUNT = 700


def write(folder: Path, order: str, alike: bool = True, texts: bool = False, roads: int = 3000) -> None:
    rng = np.random.default_rng(6)
    keys = np.sort(rng.choice(np.arange(8, 40_000), COUNT, replace=False))
    region = rng.integers(0, 5, COUNT)
    look = rng.normal(size=(COUNT, 8)) + 2 * np.eye(8)[region]
    np.savez(folder / "villages.npz", look=look.astype(np.float32), region=region, village=keys)
    by = {"text": sorted(range(COUNT), key=lambda i: str(keys[i])), "rows": list(range(COUNT)),
          "reversed": list(range(COUNT))[::-1]}[order]
    lines = [f"{keys[i]},{at}" for at, i in enumerate(by)]
    (folder / "numbers.csv").write_text("\n".join(["village,number", *lines]))
    ends = rng.integers(0, COUNT, (roads * 4, 2))
    ends = (ends[region[ends[:, 0]] == region[ends[:, 1]]] if alike else ends)[:roads]
    (folder / "roads.csv").write_text("\n".join(["one,other", *(f"{keys[a]},{keys[b]}" for a, b in ends)]))


@pytest.mark.parametrize("order", ["text", "reversed"])
def test_numbers_in_another_order_than_the_rows(order: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, order)
    (found,) = seen_by(d227, tmp_path)
    assert (found.severity, found.measured["shard"], found.measured["to"]) == (
        Severity.HIGH, "numbers.csv", "villages.npz")
    assert ("text" if order == "text" else "reverse") in str(found.measured["order"])


@pytest.mark.parametrize(("order", "alike"), [("rows", True), ("text", False)], ids=["places", "strangers"])
def test_places_of_rows_and_pairs_that_say_nothing(order: str, alike: bool, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, order, alike)
    assert seen_by(d227, tmp_path) == []


def test_a_table_without_pairs_says_nothing(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "text")
    (tmp_path / "roads.csv").unlink()
    assert seen_by(d227, tmp_path) == []


def test_numbers_that_are_missing(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "text")
    lines = (tmp_path / "numbers.csv").read_text().split("\n")
    (tmp_path / "numbers.csv").write_text("\n".join([*lines[:5], "17,", *lines[5:]]))
    assert seen_by(d227, tmp_path) == []
