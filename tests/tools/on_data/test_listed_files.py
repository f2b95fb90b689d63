"""Manifests beside the files that they list."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine


def made(folder: Path, count: int = 60) -> list[dict[str, Any]]:
    """Files of bytes that no reader takes, and a row for each."""
    rng = np.random.default_rng(0)
    (folder / "scans").mkdir()
    for i in range(count):
        (folder / "scans" / f"scan_{i}.dcm").write_bytes(rng.bytes(40))
    labels = rng.integers(0, 3, count)
    return [{"path": f"scans/scan_{i}.dcm", "label": int(labels[i]), "site": "abcd"[i % 4]} for i in range(count)]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as stream:
        out = csv.DictWriter(stream, rows[0])
        out.writeheader()
        out.writerows(rows)


def found(folder: Path) -> list[Finding]:
    report = examine([folder])
    assert not report.notes
    return [f for f in report.findings if f.rule == "D134" and f.severity is not Severity.INFO]


def test_a_manifest_that_agrees(tmp_path: Path) -> None:
    write(tmp_path / "manifest.csv", made(tmp_path))
    assert not found(tmp_path)


def test_files_that_are_listed_and_not_there(tmp_path: Path) -> None:
    write(tmp_path / "manifest.csv", made(tmp_path))
    for i in (7, 40):
        (tmp_path / "scans" / f"scan_{i}.dcm").unlink()
    (told,) = found(tmp_path)
    assert (told.measured["kind"], told.measured["rows"]) == ("missing", (7, 40))
    assert "scans/scan_7.dcm" in told.statement


def test_a_file_that_is_listed_twice(tmp_path: Path) -> None:
    rows = made(tmp_path)
    write(tmp_path / "manifest.csv", [*rows, rows[12]])
    (told,) = found(tmp_path)
    assert (told.measured["kind"], told.measured["rows"]) == ("twice", (60,))


@pytest.mark.parametrize("column", [True, False])
def test_a_file_of_training_is_listed_as_held_out_too(column: bool, tmp_path: Path) -> None:
    rows = made(tmp_path)
    parts = {"train": rows[:45], "test": [*rows[45:], rows[3]]}
    if column:
        write(tmp_path / "manifest.csv", [{**r, "split": s} for s, part in parts.items() for r in part])
    else:
        for split, part in parts.items():
            write(tmp_path / f"{split}.csv", part)
    assert "two-splits" in {f.measured["kind"] for f in found(tmp_path)}


def test_a_manifest_that_was_cut(tmp_path: Path) -> None:
    write(tmp_path / "manifest.csv", made(tmp_path)[:-8])
    (told,) = found(tmp_path)
    assert told.measured["kind"] == "unlisted"
    assert "scan_52.dcm to scan_59.dcm" in told.statement


def _boxes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**r, "left": 3 * i} for i, r in enumerate([*rows, rows[4], rows[9]])]


def _several_a_file(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*rows, *rows[:40]]


def _left_out_on_purpose(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [r for i, r in enumerate(rows) if i not in (3, 17, 18, 30, 44, 51)]


def _elsewhere(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**r, "path": f"other/{i}.wav"} for i, r in enumerate(rows)]


def _half(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return rows[:25]


@pytest.mark.parametrize("change", [_boxes, _several_a_file, _left_out_on_purpose, _elsewhere, _half])
def test_lists_that_are_so_by_design(change: Any, tmp_path: Path) -> None:
    write(tmp_path / "manifest.csv", change(made(tmp_path)))
    assert not found(tmp_path)


def test_names_that_are_no_paths(tmp_path: Path) -> None:
    rows = made(tmp_path)
    write(tmp_path / "manifest.csv", [{**r, "path": f"{r['path']}\x00../../etc/x.dcm"} for r in rows])
    assert not found(tmp_path)
    write(tmp_path / "manifest.csv", [*rows[:-1], {**rows[-1], "path": "scans/\x00.dcm"}])
    assert [f.measured["kind"] for f in found(tmp_path)] == ["missing"]


@pytest.mark.slow
def test_files_left_out_at_random_hardly_ever_stand_together(tmp_path: Path) -> None:
    rows, rng, alarms = made(tmp_path), np.random.default_rng(1), 0
    for _ in range(60):
        left = set(rng.choice(60, int(rng.integers(1, 8)), replace=False).tolist())
        write(tmp_path / "manifest.csv", [r for i, r in enumerate(rows) if i not in left])
        alarms += len(found(tmp_path))
    assert alarms == 0
