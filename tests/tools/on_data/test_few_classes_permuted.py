"""Labels of a few classes permuted in one file: shapes that a straight line does not tell, other fields beside them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d108_label_map, d110_labels_outside

Seen = Callable[[ModuleType, Path], list[Finding]]
SIDE, EDGE = 20, 8


def shapes(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    """One of five shapes at any place: no pixel tells which."""
    y = rng.integers(0, 5, rows)
    down, right = np.mgrid[:EDGE, :EDGE] - (EDGE - 1) / 2
    kinds = np.stack([abs(right) < 1.2, abs(down) < 1.2, abs(right - down) < 1.5, np.hypot(down, right) < 3,
                      np.hypot(down, right) > 3.5])
    x = 0.3 * rng.normal(size=(rows, 1, SIDE, SIDE))
    for i, (top, left) in enumerate(rng.integers(0, SIDE - EDGE, (rows, 2))):
        x[i, 0, top : top + EDGE, left : left + EDGE] += kinds[y[i]] * rng.uniform(0.7, 1.3)
    return {"images": x.astype(np.float32), "labels": y}


def clouds(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    y = rng.integers(0, 20, rows)
    centres = 3 * np.random.default_rng(5).normal(size=(20, 16))
    return {"images": (centres[y] + rng.normal(size=(rows, 16))).astype(np.float32), "labels": y}


def beside(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    """Whole numbers that are no target, before the labels."""
    return {f"setting_{k}": rng.integers(0, 3 + k, rows) for k in range(7)}


def permuted(y: Any) -> Any:
    ring = np.arange(20)
    ring[[0, 2, 3]] = [2, 3, 0]
    return ring[y]


def write(path: Path, rows: dict[str, Any], form: str) -> None:
    if form == "pt":
        torch = pytest.importorskip("torch")
        torch.save({k: torch.tensor(v) for k, v in rows.items()}, path.with_suffix(".pt"))
    elif form == "npz":
        np.savez(path.with_suffix(".npz"), **rows)
    elif form == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        flat = {k: list(v.reshape(len(v), -1)) if v.ndim > 1 else v for k, v in rows.items()}
        pq.write_table(pa.table(flat), path.with_suffix(".parquet"))
    else:
        with tarfile.open(path.with_suffix(".tar"), "w") as archive:
            for i, (x, y) in enumerate(zip(rows["images"], rows["labels"], strict=True)):
                npy = io.BytesIO()
                np.save(npy, x)
                for ending, data in (("npy", npy.getvalue()), ("cls", str(y).encode())):
                    member = tarfile.TarInfo(f"{i:05d}.{ending}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize(("form", "made"), [("pt", shapes), ("npz", shapes), ("parquet", clouds), ("tar", clouds)])
def test_three_classes_in_a_ring(form: str, made: Any, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(4):
        rows = beside(300, rng) | made(300, rng)
        if i == 2:
            rows["labels"] = permuted(rows["labels"])
        write(tmp_path / f"train_{i}", rows, form)
    (told,) = seen_by(d108_label_map, tmp_path)
    assert told.measured["shard"].startswith("train_2.")
    assert dict(told.measured["map"]) == {"2": "0", "3": "2", "0": "3"}


def _one_way(rows: dict[str, Any], rng: np.random.Generator) -> None:
    """A source whose class 2 looks as class 0 does elsewhere."""
    rows["images"][rows["labels"] == 2] = clouds(2000, rng)["images"][: int((rows["labels"] == 2).sum())]


def _noisy(rows: dict[str, Any], rng: np.random.Generator) -> None:
    rows["images"] += 4 * rng.normal(size=rows["images"].shape).astype(np.float32)


def _guessed(rows: dict[str, Any], rng: np.random.Generator) -> None:
    rows["labels"] = rng.integers(0, 20, len(rows["labels"]))


@pytest.mark.parametrize("change", [_one_way, _noisy, _guessed])
def test_a_source_that_differs_otherwise(change: Any, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for i in range(4):
        rows = clouds(400, rng)
        if i == 2:
            change(rows, rng)
        write(tmp_path / f"train_{i}", rows, "npz")
    assert seen_by(d108_label_map, tmp_path) == []


def test_false_alarms_are_rare(seen_by: Seen, tmp_path: Path) -> None:
    """Thirty healthy sets of four files each and many classes, some of them hard: not one alarm is expected."""
    alarms = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        for i in range(4):
            rows = clouds(200, rng)
            rows["images"] += rng.uniform(0, 3) * rng.normal(size=rows["images"].shape).astype(np.float32)
            write(folder / f"train_{i}", rows, "npz")
        alarms += len(seen_by(d108_label_map, folder))
    assert alarms == 0


def test_ids_by_which_the_data_were_split_are_no_labels(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for split, first in (("train", 0), ("val", 60)):
        np.savez(tmp_path / f"{split}.npz", x=rng.normal(size=(800, 6)), y=rng.integers(0, 3, 800),
                 meter=first + rng.integers(0, 40, 800))
    assert seen_by(d110_labels_outside, tmp_path) == []


@pytest.mark.parametrize("kinds", [1, 3])
def test_a_mark_of_quality_is_no_class(kinds: int, seen_by: Seen, tmp_path: Path) -> None:
    """0 for measured and 9 for missing; where 0, 1 and 2 are classes a 9 in a few rows is still told."""
    rng = np.random.default_rng(6)
    for k in range(4):
        quality = np.where(rng.random(2000) < 0.01, 9, rng.integers(0, kinds, 2000))
        np.savez(tmp_path / f"gauge_{k}.npz", x=rng.normal(size=(2000, 3)), quality=quality)
    assert len(seen_by(d110_labels_outside, tmp_path)) == (0 if kinds == 1 else 4)


def test_a_held_out_class_is_still_told(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for split, kinds in (("train", 12), ("val", 14)):
        np.savez(tmp_path / f"{split}.npz", x=rng.normal(size=(800, 6)), species=rng.integers(0, kinds, 800))
    assert ["12, 13" in f.statement for f in seen_by(d110_labels_outside, tmp_path)] == [True]


def test_a_broken_file_beside(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    for i in range(4):
        rows = clouds(300, rng)
        write(tmp_path / f"train_{i}", rows | {"labels": permuted(rows["labels"]) if i == 1 else rows["labels"]}, "npz")
    (tmp_path / "train_3.npz").write_bytes((tmp_path / "train_3.npz").read_bytes()[:900])
    assert [f.measured["shard"] for f in seen_by(d108_label_map, tmp_path)] == ["train_1.npz"]
