"""Groups that no name tells: a field of many values of a few rows, each of one class, on both sides of a split."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d115_groups_split as d115

Seen = Callable[[ModuleType, Path], list[Finding]]
FIELDS, EACH, CLASSES = 160, 6, 5


def chips(folder: Path, shared: int, kinds: str = "own") -> Path:
    """Chips of fields with a crop each; `shared`: fields that are in both files. `kinds`: "own", or "many" crops."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(9000)[:FIELDS] + 1000
    crop = rng.integers(0, CLASSES, FIELDS)
    form = rng.normal(size=(CLASSES, 12))
    split: dict[str, list[dict[str, object]]] = {"train": [], "val": []}
    for i in range(FIELDS):
        for k in range(EACH):
            y = int(crop[i]) if kinds == "own" else int(rng.integers(0, CLASSES))
            parts = ("train", "val") if i < shared else ("train" if i < 120 else "val",)
            row = {"field": int(ids[i]), "label": y, "x": (form[y] + rng.normal(size=12)).round(3).tolist()}
            split[parts[k % len(parts)]].append(row)
    for part, rows in split.items():
        order = rng.permutation(len(rows))
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(rows[i]) + "\n" for i in order))
    return folder


def serious(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def test_fields_with_chips_in_both_files_are_named(tmp_path: Path, seen_by: Seen) -> None:
    (one,) = serious(seen_by(d115, chips(tmp_path, shared=24)))
    assert (one.measured["field"], one.measured["kind"]) == ("field", "groups")
    assert "24 of 64 values of field" in one.statement


@pytest.mark.parametrize(("shared", "kinds"), [(0, "own"), (24, "many"), (FIELDS, "own")])
def test_a_split_by_field_and_ids_that_say_nothing_of_the_class_are_quiet(
        shared: int, kinds: str, tmp_path: Path, seen_by: Seen) -> None:
    """Values that are all on both sides are a category: whether that leaks is a matter of the task."""
    assert serious(seen_by(d115, chips(tmp_path, shared, kinds))) == []
