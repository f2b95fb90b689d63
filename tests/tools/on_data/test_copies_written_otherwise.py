"""Held-out rows that have all the numbers of a training row, and another text."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d113_copies as d113

Seen = Callable[[ModuleType, Path], list[Finding]]


def molecules(folder: Path, again: int, digits: int = 3, text: str = "smiles") -> Path:
    """Two files; so many rows of the second are those of the first, written from another atom on."""
    rng = np.random.default_rng(0)
    rows = [[f"M{i:05d}", "".join(rng.choice(list("CNOSF()=1"), 24)), round(float(rng.uniform(60, 500)), digits),
             int(rng.integers(0, 6)), round(float(rng.normal()), digits)] for i in range(700)]
    held = [[f"M9{i:04d}", r[1][7:] + r[1][:7], *r[2:]] for i, r in enumerate(rows[:again])] + rows[500:700 - again]
    for name, part in (("train", rows[:500]), ("test", [held[i] for i in rng.permutation(len(held))])):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["compound", text, "weight", "donors", "target"], *part])
    return folder


def told(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def test_molecules_that_are_written_from_another_atom_on(tmp_path: Path, seen_by: Seen) -> None:
    (one,) = told(seen_by(d113, molecules(tmp_path, again=50)))
    assert (one.severity, one.measured["texts"], one.measured["kind"]) == (Severity.MEDIUM, "smiles", "across-splits")
    assert "50 of 200 rows" in one.statement


@pytest.mark.parametrize(("again", "digits"), [(0, 3), (0, 0)])
def test_rows_that_share_no_more_numbers_than_chance_gives_are_quiet(again: int, digits: int, tmp_path: Path,
                                                                     seen_by: Seen) -> None:
    assert told(seen_by(d113, molecules(tmp_path, again, digits))) == []


def transactions(folder: Path, again: int, *, change: str = "", columns: int = 5) -> Path:
    """Held-out rows that are training rows with another number, time and currency; `change`: what else they are."""
    rng = np.random.default_rng(1)
    train, held = rng.normal(size=(600, columns)).round(6), rng.normal(size=(300, columns)).round(6)
    held[:again] = train[:again]
    if change == "measured anew":
        held[:again] += rng.normal(size=(again, columns)).round(6) / 1000
    if change == "of a few kinds":
        train, held = (np.take(rng.normal(size=(40, columns)).round(6), rng.integers(0, 40, n), axis=0)
                       for n in (600, 300))
    for name, part, start in (("train", train, 0), ("valid", held, 900)):
        lines = [",".join(["txn", "ts", "amount", *(f"v{k}" for k in range(columns)), "fraud"])]
        for i, row in enumerate(part):
            said = [f"T{start + i}", str(1_700_000_000 + 7 * (start + i)), f"{rng.uniform(1, 99):.2f}"]
            lines.append(",".join([*said, *map(repr, row.tolist()), str(int(rng.random() < 0.1))]))
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_rows_with_another_number_time_and_amount(tmp_path: Path, seen_by: Seen) -> None:
    (one,) = told(seen_by(d113, transactions(tmp_path, again=60)))
    assert one.severity is Severity.HIGH
    assert "60 of 300 rows" in one.statement
    assert "txn, ts, amount, fraud" in one.statement


@pytest.mark.parametrize(("again", "change", "columns"), [
    (0, "", 5), (2, "", 5), (60, "measured anew", 5), (60, "", 2), (60, "of a few kinds", 5),
])
def test_other_rows_and_numbers_that_tell_none_apart(again: int, change: str, columns: int, tmp_path: Path,
                                                     seen_by: Seen) -> None:
    assert not told(seen_by(d113, transactions(tmp_path, again, change=change, columns=columns)))
