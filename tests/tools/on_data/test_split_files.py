"""A file of row numbers says which rows are trained on: groups on both sides of it are seen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_data import examine


def _told(folder: Path, splits: object) -> list[str]:
    rng = np.random.default_rng(2)
    record = np.repeat(np.arange(60), 30)
    level = rng.normal(size=(60, 6))
    np.savez(folder / "beats.npz", ecg=(level[record] + 0.2 * rng.normal(size=(1800, 6))).astype(np.float32),
             label=(record % 2).astype(np.int64), record=record)
    (folder / "splits.json").write_text(json.dumps(splits))
    return [f.statement for f in examine([folder]).findings if f.rule == "D115" and f.severity.value != "info"]


def _by(rows: np.ndarray, share: float = 0.8) -> dict[str, list[int]]:
    at = int(share * len(rows))
    return {"train": rows[:at].tolist(), "val": rows[at:].tolist()}


def test_a_split_by_rows_has_each_record_on_both_sides(tmp_path: Path) -> None:
    (told,) = _told(tmp_path, _by(np.random.default_rng(0).permutation(1800)))
    assert "60 of 60 values of record in the validation rows of" in told


def test_a_split_by_records_is_left_alone(tmp_path: Path) -> None:
    assert _told(tmp_path, _by(np.arange(1800))) == []


@pytest.mark.parametrize("splits", [
    {"train": [1, 2, 3] * 500, "val": list(range(900))},  # a number twice
    {"train": list(range(5000)), "val": list(range(5000, 6000))},  # of another file
    {"train": ["a"] * 100, "val": [1.5] * 100}, {"epochs": [1, 2, 3]}, [1, 2, 3], {"train": 1}, {},
    {"train": [-1] * 20 + list(range(900)), "val": list(range(900, 1000))},
])
def test_other_files_say_nothing_of_rows(tmp_path: Path, splits: object) -> None:
    assert _told(tmp_path, splits) == []


def test_such_a_file_is_told_as_what_it_was_read_for(tmp_path: Path) -> None:
    _told(tmp_path, _by(np.arange(1800)))
    (tmp_path / "notes.json").write_text('{"train": "nothing"}')
    notes = {Path(a.path).name: a.note for a in examine([tmp_path]).artifacts}
    assert notes["splits.json"] == "row numbers of the splits train, validation: 1,800 rows"
    assert "no list of records" in notes["notes.json"]
