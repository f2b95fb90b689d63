"""JSON files of several lists of records, of records by name, and of records that lie deep in each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Severity
from traindx_tools.on_data import DataReport, examine


def told(report: DataReport) -> list[tuple[str, str]]:
    return [(f.rule, f.statement) for f in report.findings if f.severity is not Severity.INFO]


def boxes(folder: Path, part: str, images: int, *, bad: bool = False) -> None:
    """Pictures, their boxes and a few names, as detection sets have them."""
    rng = np.random.default_rng(len(part))
    listed = [{"id": i + 1, "file_name": f"{part}_{i:05d}.jpg", "width": 640, "height": 480} for i in range(images)]
    marked: list[dict[str, Any]] = []
    for i in range(4 * images):
        w, h = (int(v) for v in rng.integers(20, 200, 2))
        x, y = int(rng.integers(0, 400)), int(rng.integers(0, 250))
        marked.append({"id": i, "image_id": i // 4 + 1, "bbox": [x, y, w, h],
                       "category_id": int(rng.integers(1, 4)), "score": float(rng.normal())})
    if bad:
        marked[37]["score"] = float("nan")
    names = [{"id": i, "name": f"kind {i}"} for i in range(1, 4)]
    (folder / f"{part}.json").write_text(json.dumps({"images": listed, "annotations": marked, "categories": names}))


def test_each_list_is_a_table(tmp_path: Path) -> None:
    boxes(tmp_path, "train", 60)
    boxes(tmp_path, "val", 40, bad=True)
    report = examine([tmp_path])
    (found,) = [s for r, s in told(report) if r == "D101"]
    assert "score of val.json:annotations" in found
    assert "row 37" in found
    assert not any("categories" in s.name for d in report.sets for s in d.shards)


def test_lists_that_are_whole(tmp_path: Path) -> None:
    boxes(tmp_path, "train", 60)
    boxes(tmp_path, "val", 40)
    assert told(examine([tmp_path])) == []


def test_lists_by_split(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [{"a": float(rng.normal()), "b": float(rng.normal()), "y": int(rng.integers(0, 2))} for _ in range(300)]
    (tmp_path / "all.json").write_text(json.dumps({"train": rows[:240], "test": rows[220:]}))
    assert [r for r, s in told(examine([tmp_path])) if "20 of 80 rows" in s] == ["D113"]
    (tmp_path / "all.json").write_text(json.dumps({"train": rows[:240], "test": rows[240:]}))
    assert told(examine([tmp_path])) == []


def test_records_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = {f"clip{i:03d}": {"speed": float(rng.normal()), "label": int(rng.integers(0, 3))} for i in range(90)}
    rows["clip041"]["speed"] = float("inf")
    (tmp_path / "clips.json").write_text(json.dumps(rows))
    (found,) = [s for r, s in told(examine([tmp_path])) if r == "D101"]
    assert "row 41" in found


@pytest.mark.parametrize("value", [
    {f"part{i}": {f"key{i}": i} for i in range(40)}, {"a": {"x": 1}, "b": {"x": 2}}, {"a": [1, 2], "b": [{}]},
    {f"k{i}": {} for i in range(40)},
    {"_data_files": [{"filename": f"data-{i}.arrow"} for i in range(4)], "_fingerprint": "1f", "_split": "train"},
])
def test_settings_are_no_records(value: Any, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(value))
    assert examine([tmp_path]).sets == ()


def test_what_lies_deep(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    with (tmp_path / "drive.jsonl").open("w") as file:
        for i in range(200):
            turn = float("nan") if i == 77 else float(rng.normal())
            file.write(json.dumps({"meta": {"car": {"sensor": {"turn": turn}}}, "act": int(rng.integers(0, 3))}) + "\n")
    (found,) = [s for r, s in told(examine([tmp_path])) if r == "D101"]
    assert "meta.car.sensor.turn" in found
    assert "row 77" in found


def test_too_deep(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text('{"a":' * 20_000 + "1" + "}" * 20_000)
    report = examine([tmp_path])
    assert report.sets == ()
    assert "nested too deeply" in str(report.artifacts)
