"""Labels of one part that are counted from another number than all others, and labels that only look so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from data_making import NEEDS, Rows, classes, series
from part_making import write_csv
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d165_counted_from

Seen = Callable[[ModuleType, Path], list[Finding]]
SHARES = np.array([0.3, 0.22, 0.16, 0.12, 0.1, 0.06, 0.04])


def untold(rows: int, rng: np.random.Generator) -> Rows:
    """Labels that the inputs say nothing of."""
    return {"x": rng.normal(size=(rows, 12)).astype(np.float32), "y": rng.choice(7, rows, p=SHARES)}


def from_one(odd: int | None, less: int = 1) -> Callable[[int, Rows, np.random.Generator], Rows]:
    def edit(i: int, made: Rows, rng: np.random.Generator) -> Rows:
        return {**made, "y": made["y"] + 1 - (less if i == odd else 0)}

    return edit


@pytest.mark.parametrize("form", ["tfrecord", "csv", "npz", "parquet"])
@pytest.mark.parametrize("make", [untold, classes])
def test_a_file_that_counts_from_zero(form: str, make: Any, tmp_path: Path) -> None:
    if form in NEEDS:
        pytest.importorskip(NEEDS[form])
    series(tmp_path, form, from_one(3), make=make)
    (told,) = [f for f in examine([tmp_path]).findings if f.severity is not Severity.INFO]
    assert told.rule == ("D165" if make is untold else "D108")
    assert "part_003" in told.source
    assert told.measured["shift"] == (1 if make is untold else -1)


def test_a_file_that_counts_from_one(seen_by: Seen, tmp_path: Path) -> None:
    def edit(i: int, made: Rows, rng: np.random.Generator) -> Rows:
        return {**made, "y": made["y"] + (i == 2)}

    series(tmp_path, "npy", edit, make=untold)
    (told,) = seen_by(d165_counted_from, tmp_path)
    assert "counts from 1 to 7 where all others count from 0 to 6: minus 1" in told.statement


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_rows_of_one_annotator(form: str, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    who, grade = rng.integers(0, 5, 1500), rng.choice(7, 1500, p=SHARES) + 1
    table(tmp_path / "grades", form, {"annotator": [f"a{k}" for k in who], "length": rng.normal(size=1500).round(2),
                                      "grade": np.where(who == 3, grade - 1, grade)})
    (told,) = seen_by(d165_counted_from, tmp_path)
    assert "grade of the rows of annotator 'a3' counts from 0 to 6" in told.statement


def test_held_out_labels_that_count_from_zero(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for name, rows, less in (("train", 900, 0), ("val", 300, 1)):
        made = untold(rows, rng)
        np.savez(tmp_path / f"{name}.npz", x=made["x"], y=made["y"] + 1 - less)
    (told,) = seen_by(d165_counted_from, tmp_path)
    assert told.measured["part"] == "validation"


@pytest.mark.parametrize("said", [{str(k + 1): f"bird {'abcdefg'[k]}" for k in range(7)},
                                  [{"id": k + 1, "name": f"bird {'abcdefg'[k]}"} for k in range(7)]])
def test_a_map_of_classes_that_begins_with_one(said: Any, seen_by: Seen, tmp_path: Path) -> None:
    series(tmp_path, "npz", make=untold)
    (tmp_path / "classes.json").write_text(json.dumps(said))
    (told,) = seen_by(d165_counted_from, tmp_path)
    assert told.severity is Severity.MEDIUM
    assert "label 0 has no name, and 7 ('bird g') never occurs" in told.statement


def another_class(i: int, made: Rows, rng: np.random.Generator) -> Rows:
    """One file has a background that is 0, and no row of the last class."""
    y = made["y"] + 1
    if i == 3:
        y = np.where(y == 7, 0, y)
    return {**made, "y": y}


def lower_grades(i: int, made: Rows, rng: np.random.Generator) -> Rows:
    return {**made, "y": np.maximum(made["y"] - (i == 3), 0)}


def without_the_first(i: int, made: Rows, rng: np.random.Generator) -> Rows:
    return {**made, "y": np.where((made["y"] == 0) & (i == 3), 1, made["y"])}


def a_map_with_background(folder: Path) -> None:
    series(folder, "npz", from_one(None), make=untold)
    (folder / "classes.json").write_text(json.dumps({str(k): f"bird {'abcdefgh'[k]}" for k in range(8)}))


def a_map_of_other_things(folder: Path) -> None:
    series(folder, "npz", make=untold)
    (folder / "stations.json").write_text(json.dumps({str(k + 1): f"hall {'abcd'[k]}" for k in range(4)}))


def a_map_that_agrees(folder: Path) -> None:
    series(folder, "npz", from_one(None), make=untold)
    (folder / "classes.json").write_text(json.dumps({str(k + 1): f"bird {'abcdefg'[k]}" for k in range(7)}))


@pytest.mark.parametrize("edit", [None, from_one(None), another_class, lower_grades, without_the_first])
def test_labels_that_only_look_so(edit: Any, seen_by: Seen, tmp_path: Path) -> None:
    series(tmp_path, "npz", edit, make=untold)
    assert seen_by(d165_counted_from, tmp_path) == []


@pytest.mark.parametrize("make", [a_map_with_background, a_map_of_other_things, a_map_that_agrees])
def test_maps_that_only_look_so(make: Any, seen_by: Seen, tmp_path: Path) -> None:
    make(tmp_path)
    assert seen_by(d165_counted_from, tmp_path) == []


def test_a_part_that_another_field_tells(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    who, grade = rng.integers(0, 5, 1500), rng.choice(7, 1500, p=SHARES) + 1
    write_csv(tmp_path / "grades.csv", {"site": [f"s{k}" for k in who], "base": (who != 3).astype(int).tolist(),
                                        "size": rng.normal(size=1500).round(2).tolist(),
                                        "grade": np.where(who == 3, grade - 1, grade).tolist()})
    assert {f.severity for f in seen_by(d165_counted_from, tmp_path)} == {Severity.INFO}


def test_labels_that_are_no_numbers(seen_by: Seen, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,\n2,a\n" * 30)
    (tmp_path / "b.csv").write_text("x,y\n")
    np.savez(tmp_path / "c.npz", y=np.full(60, -100))
    assert seen_by(d165_counted_from, tmp_path) == []


def test_counts_with_a_longer_tail(seen_by: Seen, tmp_path: Path) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        region = rng.integers(0, 5, 700)
        write_csv(tmp_path / "visits.csv", {"region": [f"r{k}" for k in region], "size": rng.normal(size=700).tolist(),
                                            "count": rng.poisson(2.5 + 0.6 * region).tolist()})
        assert seen_by(d165_counted_from, tmp_path) == [], seed


def inputs(folder: Path, change: Callable[[int, Any], Any]) -> None:
    """A grade of 0 to 4 that is no label, in five files of other mixes."""
    rng = np.random.default_rng(5)
    for i in range(5):
        shares = np.array([0.3, 0.25, 0.2, 0.15, 0.1]) + 0.05 * rng.normal(size=5)
        grade = rng.choice(5, 500, p=np.abs(shares) / np.abs(shares).sum())
        np.savez(folder / f"part_{i}.npz", x=rng.normal(size=(500, 9)), grade=change(i, grade),
                 target=rng.integers(0, 2, 500))


def of_grade(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.measured["field"] == "grade"]


@pytest.mark.parametrize("by", [1, 0])
def test_an_input_that_one_file_counts_from_another_number(by: int, seen_by: Seen, tmp_path: Path) -> None:
    inputs(tmp_path, lambda i, grade: grade + (by if i == 2 else 1 - by))
    (told,) = of_grade(seen_by(d165_counted_from, tmp_path))
    assert (told.severity, told.measured["shift"]) == (Severity.MEDIUM, 1 - 2 * by)


@pytest.mark.parametrize("change", [
    lambda i, g: g, lambda i, g: g + i, lambda i, g: np.minimum(g + 1, 4) if i == 2 else g,
    lambda i, g: g + 1 if i in (1, 2) else g, lambda i, g: (g[::-1] * 7 + 1) if i == 2 else g,
    lambda i, g: np.zeros_like(g),
])
def test_inputs_that_differ_otherwise_are_quiet(change: Callable[[int, Any], Any], seen_by: Seen, tmp_path: Path
                                                ) -> None:
    inputs(tmp_path, change)
    assert of_grade(seen_by(d165_counted_from, tmp_path)) == []
