"""Counts and weights of classes beside the data, and times that are displaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d110_labels_outside, d144_stored_counts, d145_displaced_times

Seen = Callable[[ModuleType, Path], list[Finding]]


def uneven(folder: Path) -> Any:
    """A training and a validation file of four classes; the training counts."""
    rng = np.random.default_rng(0)
    y = {name: rng.choice(4, rows, p=[0.55, 0.25, 0.15, 0.05]) for name, rows in (("train", 1000), ("val", 200))}
    for name, labels in y.items():
        np.savez(folder / f"{name}.npz", x=rng.normal(size=(len(labels), 6)), y=labels)
    return np.bincount(y["train"])


@pytest.mark.parametrize(("name", "make", "kind"), [
    ("class_counts", lambda c: {str(i): int(v) for i, v in enumerate(c[::-1])}, "exchanged"),
    ("class_counts", lambda c: {str(i): int(v) for i, v in enumerate(c + np.array([3, -3, 0, 0]))}, "other"),
    ("class_weights", lambda c: (c.sum() / (4 * c))[::-1].tolist(), "exchanged"),
    ("class_weights", lambda c: (c / c.sum()).tolist(), "rising"),
])
def test_numbers_that_do_not_fit(name: str, make: Callable[[Any], Any], kind: str, tmp_path: Path,
                                 seen_by: Seen) -> None:
    (tmp_path / f"{name}.json").write_text(json.dumps(make(uneven(tmp_path))))
    (finding,) = seen_by(d144_stored_counts, tmp_path)
    assert finding.measured["kind"] == kind
    assert f"{name}.json" in finding.statement


@pytest.mark.parametrize("make", [
    lambda c: {"class_counts": c.tolist()},
    lambda c: {"class_weights": (c.sum() / (4 * c)).tolist()},
    lambda c: {"class_weights": np.sqrt(c.max() / c).tolist()},
    lambda c: {"class_weights": (0.001 / (1 - 0.999**c.astype(float))).tolist()},
    lambda c: {"loss_weights": [1.0, 0.5, 0.1, 0.1]},
    lambda c: {"class_counts": [10, 20, 30, 40]},
    lambda c: {"thresholds": [0.5, 0.4, 0.3, 0.2]},
    lambda c: [[1, 2], "x", None],
])
def test_numbers_that_fit_or_are_of_other_things(make: Callable[[Any], Any], tmp_path: Path, seen_by: Seen) -> None:
    (tmp_path / "about.json").write_text(json.dumps(make(uneven(tmp_path))))
    assert not seen_by(d144_stored_counts, tmp_path)


@pytest.mark.parametrize("shift", [1, 0])
def test_counts_of_tokens(shift: int, tmp_path: Path, seen_by: Seen) -> None:
    ids = np.random.default_rng(1).zipf(1.2, 40_000) % 500 + 1
    ids.astype(np.uint16).tofile(tmp_path / "train.bin")
    counts = np.roll(np.bincount(ids, minlength=502), shift)
    (tmp_path / "vocab.json").write_text(json.dumps({str(i): int(n) for i, n in enumerate(counts)}))
    assert [f.measured["kind"] for f in seen_by(d144_stored_counts, tmp_path)] == ["shifted"] * shift


def days(folder: Path, edit: Callable[[int, Any], Any], *, texts: bool) -> None:
    for i in range(5):
        times = edit(i, 1_700_000_000 + i * 18_000 + 60 * np.arange(300))
        said = [datetime.fromtimestamp(int(t), timezone.utc).strftime("%Y-%m-%d %H:%M:%S") if texts else str(int(t))
                for t in times]
        rows = "".join(f"{t},{k % 7}\n" for k, t in enumerate(said))
        (folder / f"day_{i}.csv").write_text(f"timestamp,load\n{rows}")


def within(start: int, end: int, change: Callable[[Any], Any]) -> Callable[[int, Any], Any]:
    def edit(i: int, t: Any) -> Any:
        t = t.copy()
        if i == 2:
            t[start:end] = change(t[start:end])
        return t

    return edit


@pytest.mark.parametrize("rows", [(0, 300), (100, 160)])
@pytest.mark.parametrize(("change", "said", "texts"), [
    (lambda t: t + 7 * 3600, "7.00 hours", True),
    (lambda t: t - 365 * 86400, "365.0 days", True),
    (lambda t: t * 1000, "milliseconds", False),
])
def test_times_of_another_clock(rows: tuple[int, int], change: Callable[[Any], Any], said: str, texts: bool,
                                tmp_path: Path, seen_by: Seen) -> None:
    days(tmp_path, within(*rows, change), texts=texts)
    (finding,) = seen_by(d145_displaced_times, tmp_path)
    assert said in finding.statement
    assert "day_2.csv" in finding.statement
    assert finding.measured["rows"] == (rows[0], rows[1] - 1)


@pytest.mark.parametrize("edit", [
    lambda i, t: t,
    lambda i, t: t + (86400 * 3 if i >= 2 else 0),  # a pause
    lambda i, t: t + (3600 if i == 2 else 0),  # summer time
    lambda i, t: np.random.default_rng(i).permutation(t),
    lambda i, t: t * 0 + 5,
])
def test_times_that_are_right(edit: Callable[[int, Any], Any], tmp_path: Path, seen_by: Seen) -> None:
    days(tmp_path, edit, texts=True)
    assert not seen_by(d145_displaced_times, tmp_path)


def test_new_classes_of_a_long_tail_are_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(9)
    for name, rows in (("train", 4000), ("val", 600)):
        np.savez(tmp_path / f"{name}.npz", x=rng.normal(size=(rows, 8)), label=np.minimum(rng.zipf(1.6, rows), 180))
    assert all(f.severity.value == "info" for f in seen_by(d110_labels_outside, tmp_path))
