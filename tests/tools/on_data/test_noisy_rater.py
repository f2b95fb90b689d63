"""Labels of one annotator, site or device that are partly drawn at random, for short texts and for numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d190_noisy_rater as d190

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]
Table = dict[str, list[Any]]
COMMON = ["pump", "valve", "seen", "at", "line", "the", "checked", "again", "morning", "shift", "unit", "near"]
OWN = [["leak", "wet", "drip", "seal", "puddle", "oil"], ["noise", "hum", "rattle", "loud", "shake", "grind"],
       ["hot", "smoke", "burn", "heat", "glow", "scorch"], ["stuck", "jam", "block", "stop", "halt", "slow"]]


def notes(rng: np.random.Generator, rows: int) -> Table:
    """Short notes of four kinds: of their six words about two tell the kind."""
    kind = rng.integers(0, 4, rows)
    text = [" ".join(rng.choice(OWN[k]) if rng.random() < 0.35 else rng.choice(COMMON) for _ in range(6)) for k in kind]
    return {"note": text, "label": kind.tolist()}


def numbers(rng: np.random.Generator, rows: int) -> Table:
    """Columns of few whole numbers that tell the label."""
    x = rng.integers(1, 6, (rows, 5))
    y = (x @ np.array([1.0, 0.8, -0.7, 0.5, 0]) + rng.normal(size=rows) > 4.8).astype(int)
    return {**{f"q{k}": x[:, k].tolist() for k in range(5)}, "label": y.tolist()}


Make = Callable[[np.random.Generator, int], Table]
Edit = Callable[[np.random.Generator, Table, list[int]], None]
OTHER_SEEDS = [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))]


@cache
def begun(make: Make, rows: int, seed: int) -> tuple[Table, Any]:
    """A table, and where its generator stands then: many tests begin with the same one."""
    rng = np.random.default_rng(seed)
    return make(rng, rows), rng.bit_generator.state


def write(path: Path, make: Make, edit: Edit | None, rows: int = 2400, raters: int = 8, by: str = "annotator",
          seed: int = 0, odd: int = 5) -> None:
    table, state = begun(make, rows, seed)
    table, rng = {k: [*v] for k, v in table.items()}, np.random.default_rng()
    rng.bit_generator.state = state
    who = rng.integers(0, raters, rows)
    if edit is not None:
        edit(rng, table, np.flatnonzero(who == odd).tolist())
    table = {by: [f"r{w}" for w in who], **table}
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(table)
        out.writerows(zip(*table.values(), strict=True))


def guessed(share: float) -> Edit:
    def edit(rng: np.random.Generator, table: Table, rows: list[int]) -> None:
        kinds = max(table["label"]) + 1
        for row in rows:
            if rng.random() < share:
                table["label"][row] = int(rng.integers(0, kinds))

    return edit


@pytest.mark.parametrize("make", [notes, numbers])
@pytest.mark.parametrize("seed", OTHER_SEEDS)
def test_labels_of_one_annotator_that_are_partly_random(make: Make, seed: int, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path / "rows.csv", make, guessed(0.55), seed=seed)
    (found,) = seen_by(d190, tmp_path)
    assert found.severity is Severity.MEDIUM
    assert (found.measured["field"], found.measured["by"], found.measured["part"]) == ("label", "annotator", "'r5'")
    assert 0.3 < float(str(found.measured["share"])) < 0.85


@pytest.mark.parametrize("share", [0.6, 0.0], ids=["partly drawn", "as the others"])
def test_a_label_that_no_name_tells_behind_columns_of_many_numbers(share: float, tmp_path: Path, seen_by: Seen) -> None:
    def wards(rng: np.random.Generator, rows: int) -> Table:
        table = notes(rng, rows)
        ward = ["surgery", "neurology", "cardiology", "urology"]
        return {"age": rng.integers(18, 95, rows).tolist(), "pulse": rng.integers(50, 120, rows).tolist(),
                "spo2": rng.integers(80, 101, rows).tolist(), "note": table["note"], "label": table["label"],
                "department": [ward[k] for k in table["label"]]}

    def edit(rng: np.random.Generator, table: Table, rows: list[int]) -> None:
        for row in rows:
            if rng.random() < share:
                table["department"][row] = str(rng.choice(["surgery", "neurology", "cardiology", "urology"]))
        del table["label"]

    write(tmp_path / "notes.csv", wards, edit, by="rater")
    found = seen_by(d190, tmp_path / "notes.csv")
    assert [(f.measured["field"], f.measured["part"]) for f in found] == [("department", "'r5'")] * (share > 0)


def test_of_a_column_that_is_no_origin_it_is_low(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path / "rows.csv", notes, guessed(0.6), by="colour")
    (found,) = seen_by(d190, tmp_path)
    assert found.severity is Severity.LOW


def stricter(rng: np.random.Generator, table: Table, rows: list[int]) -> None:
    """A standard of his own: a sharp one, on another weight of the questions."""
    for row in rows:
        table["label"][row] = int(table["q0"][row] + table["q3"][row] > 7)


def exchanged(rng: np.random.Generator, table: Table, rows: list[int]) -> None:
    for row in rows:
        table["label"][row] = [1, 0, 2, 3][table["label"][row]]


def mostly_exchanged(rng: np.random.Generator, table: Table, rows: list[int]) -> None:
    """Two kinds that one rater takes for each other, four times of five."""
    exchanged(rng, table, [r for r in rows if rng.random() < 0.8])


@pytest.mark.parametrize("edit", [exchanged, mostly_exchanged])
@pytest.mark.parametrize("raters", [4, 8])
def test_two_kinds_that_stand_for_each_other(edit: Edit, raters: int, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path / "rows.csv", notes, edit, raters=raters, odd=2)
    (found,) = seen_by(d190, tmp_path)
    assert found.measured["confused"] == ("0", "1")


def of_one_kind(rng: np.random.Generator, table: Table, rows: list[int]) -> None:
    """A site that sees hardly anything but one kind."""
    for row in rows:
        if rng.random() < 0.8:
            table["label"][row] = 2
            table["note"][row] = " ".join(rng.choice(OWN[2]) if rng.random() < 0.35 else rng.choice(COMMON)
                                          for _ in range(6))


def terse(rng: np.random.Generator, table: Table, rows: list[int]) -> None:
    """Notes of two words: harder ones."""
    for row in rows:
        table["note"][row] = " ".join(table["note"][row].split()[:2])


@pytest.mark.parametrize(("make", "edit"), [
    (notes, None), (numbers, None), (numbers, stricter), (notes, of_one_kind), (notes, terse), (notes, guessed(0.08)),
    (numbers, guessed(0.08))])
@pytest.mark.parametrize("seed", OTHER_SEEDS)
def test_harder_groups_and_other_standards_are_quiet(make: Make, edit: Edit | None, seed: int, tmp_path: Path,
                                                     seen_by: Seen) -> None:
    write(tmp_path / "rows.csv", make, edit, seed=seed)
    assert seen_by(d190, tmp_path) == []


def test_labels_that_nothing_tells_and_few_groups_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    def unrelated(rng: np.random.Generator, rows: int) -> Table:
        return {**notes(rng, rows), "label": rng.integers(0, 4, rows).tolist()}

    write(tmp_path / "a.csv", unrelated, guessed(0.6))
    assert seen_by(d190, tmp_path) == []
    write(tmp_path / "a.csv", notes, guessed(0.6), raters=4)
    assert seen_by(d190, tmp_path) == []


def test_empty_cells_and_notes_without_words_are_read(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path / "a.csv", notes, guessed(0.6))
    lines = (tmp_path / "a.csv").read_text().splitlines()
    lines[3:6] = [",,", "r1,,2", "r2,...,1"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    assert len(seen_by(d190, tmp_path)) <= 1


def spots(rng: np.random.Generator, rows: int, hard: Array | None = None) -> tuple[Array, Array]:
    """Pictures with none to three dark spots anywhere; `hard` ones have faint spots and more noise."""
    count = rng.integers(0, 4, rows)
    hard = np.zeros(rows, bool) if hard is None else hard
    y, x = np.mgrid[:32, :32]
    pictures = 150 + rng.normal(size=(rows, 32, 32)) * np.where(hard, 14, 6)[:, None, None]
    for row in range(rows):
        for _ in range(count[row]):
            at = rng.uniform(4, 28, 2)
            pictures[row] -= (20 if hard[row] else 50) * np.exp(-((y - at[0]) ** 2 + (x - at[1]) ** 2) / 4)
    return np.clip(pictures, 0, 255).astype(np.uint8), count


def _graded(folder: Path, form: str, seed: int, fault: str = "") -> None:
    rng = np.random.default_rng(seed)
    who = rng.integers(0, 5, 700)
    pictures, grade = spots(rng, 700, who == 2 if fault == "hard" else None)
    if fault == "random":
        wrong = (who == 2) & (rng.random(700) < 0.6)
        grade[wrong] = rng.integers(0, 4, int(wrong.sum()))
    if form == "npz":
        np.savez(folder / "graded.npz", image=pictures, grade=grade, grader=who)
        return
    images = pytest.importorskip("PIL.Image")
    (folder / "images").mkdir()
    for row, picture in enumerate(pictures):
        images.fromarray(picture).save(folder / "images" / f"{row:04d}.png")
    body = "".join(f"{row:04d}.png,{grade[row]},g{who[row]}\n" for row in range(700))
    (folder / "labels.csv").write_text(f"image,grade,grader\n{body}")


@pytest.mark.parametrize("form", ["npz", "png"])
@pytest.mark.parametrize("seed", OTHER_SEEDS[:2])
def test_grades_of_pictures_that_are_partly_random(seed: int, form: str, tmp_path: Path, seen_by: Seen) -> None:
    _graded(tmp_path, form, seed, "random")
    (found,) = seen_by(d190, tmp_path)
    assert found.severity is Severity.MEDIUM
    assert (found.measured["field"], found.measured["by"]) == ("grade", "grader")
    assert str(found.measured["part"]) in ("2", "'g2'")


@pytest.mark.parametrize("form", ["npz", "png"])
@pytest.mark.parametrize("fault", ["", "hard"])
@pytest.mark.parametrize("seed", OTHER_SEEDS[:2])
def test_graders_of_pictures_that_are_harder_are_quiet(seed: int, fault: str, form: str, tmp_path: Path, seen_by: Seen
                                                       ) -> None:
    _graded(tmp_path, form, seed, fault)
    assert seen_by(d190, tmp_path) == []


def test_pictures_that_are_missing_or_broken_are_read(tmp_path: Path, seen_by: Seen) -> None:
    _graded(tmp_path, "png", 0, "random")
    for row in range(0, 700, 2):
        (tmp_path / "images" / f"{row:04d}.png").unlink()
    (tmp_path / "images" / "0001.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert seen_by(d190, tmp_path) == []
