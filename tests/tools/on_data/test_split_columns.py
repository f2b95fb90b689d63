"""Manifests that name the split of each row in a column."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine

WORDS = ("train", "val", "test")


def manifest(rng: np.random.Generator, *, by_group: bool = False, own: bool = True) -> list[dict[str, Any]]:
    """Scans of 80 patients. `by_group`: no patient is in two splits. `own`: the label is the patient's."""
    patients, split = rng.integers(0, 80, 900), rng.choice(3, 900, p=[0.7, 0.15, 0.15])
    split = np.where(by_group, (patients % 10 > 6).astype(int) + (patients % 10 > 8), split)
    label = np.where(own, patients % 3 == 0, rng.integers(0, 2, 900))
    ages = rng.integers(20, 90, 900)
    return [{"path": f"scans/{i:05d}.png", "patient_id": f"p{patients[i]:03d}", "age": int(ages[i]),
             "label": int(label[i]), "split": WORDS[split[i]]} for i in range(900)]  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(r) + "\n" for r in rows))
        return
    with path.open("w", newline="") as stream:
        out = csv.DictWriter(stream, rows[0])
        out.writeheader()
        out.writerows(rows)


def found(folder: Path) -> list[Finding]:
    report = examine([folder])
    assert not report.notes
    return [f for f in report.findings if f.rule == "D115" and f.severity is not Severity.INFO]


@pytest.mark.parametrize("name", ["manifest.csv", "manifest.jsonl"])
def test_a_group_is_in_both_splits_of_a_manifest(name: str, tmp_path: Path) -> None:
    rows = manifest(np.random.default_rng(0))
    write(tmp_path / name, rows)
    told = found(tmp_path)
    assert len(told) == 2
    assert {f"the {s} rows of {name}" in f.statement for f in told for s in ("validation", "test")} == {True, False}
    assert all(rows[i]["split"] in ("val", "test") for f in told for i in f.measured["rows"])


def _other_words(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**r, "split": "abc"[i % 3]} for i, r in enumerate(rows)]


@pytest.mark.parametrize("rows", [
    manifest(np.random.default_rng(1), by_group=True),
    manifest(np.random.default_rng(2), own=False),
    _other_words(manifest(np.random.default_rng(3))),
    [{**r, "split": "train"} for r in manifest(np.random.default_rng(4))],
])  # fmt: skip
def test_splits_by_patient_patients_who_are_not_alike_and_other_columns(rows: Any, tmp_path: Path) -> None:
    write(tmp_path / "manifest.csv", rows)
    assert not found(tmp_path)


def test_cells_of_the_split_that_are_empty_or_broken(tmp_path: Path) -> None:
    rows = manifest(np.random.default_rng(5))
    for r in rows[:50]:
        r["split"] = ""
    write(tmp_path / "manifest.csv", rows)
    assert len(found(tmp_path)) == 2
    write(tmp_path / "manifest.csv", [{**r, "split": f"\x00{i}"} for i, r in enumerate(rows)])
    assert not found(tmp_path)


@pytest.mark.slow
def test_false_alarms_are_rare(tmp_path: Path) -> None:
    alarms = 0
    for seed in range(40):
        write(tmp_path / "manifest.csv", manifest(np.random.default_rng(100 + seed), own=False))
        alarms += len(found(tmp_path))
    assert alarms <= 1


def test_empty_cells_are_no_group(tmp_path: Path) -> None:
    """Copies name the picture that they were made of, originals name none; held-out rows are originals."""
    rng = np.random.default_rng(1)
    rows = manifest(rng, by_group=True)
    for i, row in enumerate(rows):
        row["source"] = rows[int(rng.integers(0, 40))]["path"] if row["split"] == "train" and i % 3 else ""
        del row["patient_id"]
    write(tmp_path / "manifest.csv", rows)
    assert found(tmp_path) == []
    for row in [r for r in rows if r["split"] == "test"][:40]:
        row["source"] = rows[int(rng.integers(0, 40))]["path"]
    write(tmp_path / "manifest.csv", rows)
    assert any("values of source" in f.statement for f in examine([tmp_path]).findings)


def test_a_column_of_splits_is_no_label_and_optional_text_no_padding(tmp_path: Path) -> None:
    rows = manifest(np.random.default_rng(2), by_group=True)
    for i, row in enumerate(rows):
        row["site"] = "ab"[i % 2]
        row["split"] = "train" if i % 2 else row["split"]
        row["copied_from"] = f"scans/x{i}.png" if i % 3 == 0 else ""
    write(tmp_path / "manifest.csv", rows)
    told = examine([tmp_path]).findings
    assert not [f for f in told if "split of" in f.statement or f.rule == "D152"]
    assert [f.severity for f in told if f.rule == "D119"] == [Severity.INFO]
