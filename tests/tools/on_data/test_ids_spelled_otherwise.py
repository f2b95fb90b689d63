"""D204: subjects of the training data that are held out under another spelling of their ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d204_ids_spelled_otherwise as d204

Seen = Callable[[ModuleType, Path], list[Finding]]
Spelling = Callable[[int], str]


def written(path: Path, ids: list[str], heights: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines = [f"{i},{h:.1f},{rng.normal():.3f},{rng.integers(0, 2)}" for i, h in zip(ids, heights, strict=True)]
    path.write_text("\n".join(["patient_id,height,pulse,label", *lines]) + "\n")


def folder(into: Path, train: Spelling, test: Spelling, *, dense: bool = False, same: bool = True,
           heights: bool = True) -> None:
    """60 subjects of four rows in training, 40 of them again in the test data; `same`: they are the same persons."""
    rng = np.random.default_rng(3)
    numbers = np.arange(1, 61) if dense else rng.choice(np.arange(1000, 90_000), 60, replace=False)
    height = rng.normal(170, 10, 60) if heights else np.zeros(60)
    other = height if same else rng.normal(170, 10, 60)
    left = np.repeat(np.arange(60), 4)
    right = np.repeat(np.arange(40), 3)
    written(into / "train.csv", [train(int(numbers[k])) for k in left], height[left].tolist(), 1)
    written(into / "test.csv", [test(int(numbers[k])) for k in right], other[right].tolist(), 2)


@pytest.mark.parametrize(("train", "test"), [
    ("P-{:06d}".format, "p{}".format), ("{}".format, "MRN{:08d}".format), ("{:05d}_A".format, "{}-a".format),
    ("site/{:05d}.dcm".format, "{}".format), ("Lee Ann {}".format, "ann LEE {}".format)])
def test_two_spellings(train: Spelling, test: Spelling, tmp_path: Path, seen_by: Seen) -> None:
    folder(tmp_path, train, test)
    (told,) = seen_by(d204, tmp_path)
    assert told.severity is Severity.MEDIUM
    assert told.measured["overlap"] == 1.0
    assert told.measured["told_by"] == "height"


def test_dense_numbers_with_the_same_heights(tmp_path: Path, seen_by: Seen) -> None:
    folder(tmp_path, "P-{:04d}".format, "p{}".format, dense=True)
    (told,) = seen_by(d204, tmp_path)
    assert told.severity is Severity.MEDIUM


def test_without_a_field_that_tells_it_is_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    folder(tmp_path, "P-{:06d}".format, "p{}".format, heights=False)
    assert all(f.severity is Severity.INFO for f in seen_by(d204, tmp_path))


@pytest.mark.parametrize("design", ["one spelling", "two sources", "dense", "new subjects"])
def test_ids_of_others(design: str, tmp_path: Path, seen_by: Seen) -> None:
    if design == "one spelling":
        folder(tmp_path, "P-{:06d}".format, "P-{:06d}".format)
    if design == "two sources":
        folder(tmp_path, "P-{:04d}".format, "q{}".format, dense=True, same=False)
    if design == "dense":
        folder(tmp_path, "P-{:04d}".format, "p{}".format, dense=True, heights=False)
    if design == "new subjects":
        folder(tmp_path, "P-{:06d}".format, lambda n: f"p{n + 100_000}")
    assert not seen_by(d204, tmp_path)


def test_files_sorted_by_class_under_running_numbers(tmp_path: Path, seen_by: Seen) -> None:
    for name, rows in (("train", 400), ("test", 100)):
        lines = [f"{name}/img_{i:04d}.png,{i * 4 // rows},{(i * 4 // rows) * 1.5:.2f}" for i in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["file_id,label,size", *lines]) + "\n")
    assert not seen_by(d204, tmp_path)


def test_empty_and_odd_ids(tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path / "train.csv", [""] * 30 + ["---"] * 30, [1.0] * 60, 0)
    written(tmp_path / "test.csv", ["??"] * 30, [1.0] * 30, 1)
    assert not seen_by(d204, tmp_path)


def test_names_of_two_numbers_keep_their_order(tmp_path: Path, seen_by: Seen) -> None:
    """Recordings are named by room and take: c03/up_7 and c07/up_3 are two, though one word and the same numbers."""
    rng = np.random.default_rng(0)
    for name, keep in (("train", lambda n: n % 8), ("test", lambda n: n % 8 == 0)):
        rows = [f"c{a:02d}/{w}_{b}.wav,{len(w) + a / 100:.2f},{w}" for n, (a, w, b) in enumerate(
            (a, w, b) for a in range(1, 9) for w in ("up", "down", "left") for b in range(1, 9)) if keep(n)]
        rng.shuffle(rows)
        (tmp_path / f"{name}.csv").write_text("\n".join(["clip_id,level,word", *rows]) + "\n")
    assert seen_by(d204, tmp_path) == []
