"""Runs of pictures, as their names tell them, of which one has exchanged labels or mirrored pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from data_making import png

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d191_run_exchanged as d191

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]
KINDS = ("left", "right", "straight")
SIDE = 40


def road(rng: np.random.Generator, kind: int, noise: float = 18.0) -> Array:
    """A bright line that bends to the left, to the right or not, before a sun that always stands on the left."""
    picture = rng.normal(90, noise, (SIDE, SIDE))
    bend = (-1.0, 1.0, 0.0)[kind] * rng.uniform(0.6, 1.2)
    for row in range(SIDE):
        at = SIDE / 2 + bend * (SIDE - row) ** 2 / (1.8 * SIDE) + rng.normal(0, 0.6)
        column = int(np.clip(at, 1, SIDE - 3))
        picture[row, column - 1:column + 2] += 110
    picture[:8, :10] += 60
    return np.clip(picture, 0, 255).astype(np.uint8)


Edit = Callable[[Array, int, np.random.Generator], tuple[Array, int]]


def write(folder: Path, edit: Edit | None, how: str = "folders", runs: int = 6, files: int = 60, seed: int = 0,
          called: str = "run{:02d}_{:04d}.png") -> None:
    rng = np.random.default_rng(seed)
    lines = ["file,steer"]
    for run in range(runs):
        for at in range(files):
            kind = int(rng.integers(0, 3))
            picture = road(rng, kind)
            if edit is not None and run == 3:
                picture, kind = edit(picture, kind, rng)
            name = called.format(run, at)
            where = folder / KINDS[kind] if how == "folders" else folder / "images"
            where.mkdir(exist_ok=True)
            (where / name).write_bytes(png(picture))
            lines.append(f"images/{name},{KINDS[kind]}")
    if how == "table":
        (folder / "labels.csv").write_text("\n".join(lines) + "\n")


def exchanged(picture: Array, kind: int, rng: np.random.Generator) -> tuple[Array, int]:
    return picture, (1, 0, 2)[kind]


def mirrored(picture: Array, kind: int, rng: np.random.Generator) -> tuple[Array, int]:
    return np.ascontiguousarray(picture[:, ::-1]), kind


@pytest.mark.parametrize("how", ["folders", "table"])
@pytest.mark.parametrize(("edit", "kind"), [(exchanged, "exchanged"), (mirrored, "mirrored")])
def test_a_run_with_exchanged_labels_or_mirrored_pictures(edit: Edit, kind: str, how: str, tmp_path: Path, seen_by: Seen
                                                          ) -> None:
    pytest.importorskip("PIL")
    write(tmp_path, edit, how)
    (found,) = seen_by(d191, tmp_path)
    assert found.severity is Severity.HIGH
    assert (found.measured["run"], found.measured["kind"]) == ("run03", kind)
    assert {a for pair in found.measured["map"] for a in pair} == (  # type: ignore[attr-defined]
        {"left", "right"} if how == "folders" else {"'left'", "'right'"})
    assert ("they look mirrored" in found.statement) is (kind == "mirrored")


def test_runs_that_another_word_of_the_name_tells(tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    write(tmp_path, exchanged, called="cam-s{:d}-frame-{:04d}.png")
    (found,) = seen_by(d191, tmp_path)
    assert found.measured["run"] == "s3"


def unsure(picture: Array, kind: int, rng: np.random.Generator) -> tuple[Array, int]:
    return np.clip(picture + rng.normal(0, 120, picture.shape), 0, 255).astype(np.uint8), kind


def at_random(picture: Array, kind: int, rng: np.random.Generator) -> tuple[Array, int]:
    return picture, int(rng.integers(0, 3))


def darker(picture: Array, kind: int, rng: np.random.Generator) -> tuple[Array, int]:
    return (picture * 0.6).astype(np.uint8), kind


def one_way(picture: Array, kind: int, rng: np.random.Generator) -> tuple[Array, int]:
    return road(rng, 0), 0


@pytest.mark.parametrize("edit", [None, unsure, at_random, darker, one_way])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_harder_runs_and_random_labels_are_quiet(edit: Edit | None, seed: int, tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    write(tmp_path, edit, seed=seed)
    assert seen_by(d191, tmp_path) == []


def test_names_without_runs_and_few_files_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    write(tmp_path, exchanged, called="{:d}{:06d}.png")
    assert seen_by(d191, tmp_path) == []
    (few := tmp_path / "few").mkdir()
    write(few, exchanged, files=10)
    assert seen_by(d191, few) == []


def test_damaged_pictures_and_unlisted_ones_are_read(tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    write(tmp_path, exchanged, "table")
    pictures = sorted((tmp_path / "images").iterdir())
    pictures[5].write_bytes(b"no picture")
    pictures[9].write_bytes(pictures[9].read_bytes()[:60])
    table = (tmp_path / "labels.csv").read_text().splitlines()
    (tmp_path / "labels.csv").write_text("\n".join(table[:4] + table[12:]) + "\n")
    (found,) = seen_by(d191, tmp_path)
    assert found.measured["run"] == "run03"
