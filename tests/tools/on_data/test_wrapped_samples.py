"""Sounds, rows and columns of whole numbers that wrapped around at the edge of their type; lists of numbered files."""

from __future__ import annotations

import json
import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d197_wrapped_samples as d197
from traindx_tools.on_data.rules import d198_numbered_otherwise as d198
from traindx_tools.on_data.wraps import wraps_in

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]
SAMPLES = 6000


def hum(seed: int, level: float) -> Array:
    """A coloured noise over a tone, float64, whose largest values lie near `level`."""
    rng = np.random.default_rng(seed)
    noise = np.convolve(rng.normal(size=SAMPLES + 6), np.hanning(9)[1:-1], "valid")
    made = noise / noise.std() + 1.5 * np.sin(np.arange(SAMPLES) * 0.05)
    return made / np.abs(made).max() * level


def wrapped(x: Array) -> Array:
    return (np.round(x).astype(np.int64) + 2**15) % 2**16 - 2**15


def clipped(x: Array) -> Array:
    return np.clip(np.round(x), -(2**15), 2**15 - 1)


def sounds(folder: Path, odd: Callable[[int], Array]) -> None:
    for rig in range(4):
        for k in range(8):
            samples = odd(k) if rig == 2 else np.round(hum(10 * rig + k, 30_000))
            (folder / ("good" if k % 2 else "worn")).mkdir(exist_ok=True)
            with wave.open(str(folder / ("good" if k % 2 else "worn") / f"rig{rig}_{k:02d}.wav"), "wb") as file:
                file.setparams((1, 2, 8000, SAMPLES, "NONE", ""))
                file.writeframes(samples.astype("<i2").tobytes())


def test_sounds_that_wrap_are_told_with_what_their_names_have_in_common(tmp_path: Path, seen_by: Seen) -> None:
    sounds(tmp_path, lambda k: wrapped(hum(k, 60_000)))
    (found,) = seen_by(d197, tmp_path)
    assert (found.measured["kind"], found.measured["count"], found.measured["of"]) == ("sounds", 8, 32)
    assert "begin with 'rig2_0'" in found.statement


@pytest.mark.parametrize("odd", [
    lambda k: clipped(hum(k, 60_000)),
    lambda k: clipped(np.random.default_rng(k).normal(size=SAMPLES) * 20_000),
    lambda k: np.random.default_rng(k).uniform(-32_768, 32_767, SAMPLES),
    lambda k: np.where(np.sin(np.arange(SAMPLES) * 0.11) > 0, 32_767, -32_768),
    lambda k: np.arange(SAMPLES) * 900 % 65_000 - 32_500,
    lambda k: np.zeros(SAMPLES),
], ids=["clipped", "loud noise", "uniform", "square", "saw teeth", "silence"])
def test_loud_sounds_that_do_not_wrap_are_left_alone(odd: Callable[[int], Array], tmp_path: Path, seen_by: Seen
                                                     ) -> None:
    sounds(tmp_path, odd)
    assert seen_by(d197, tmp_path) == []


def test_rows_and_columns_of_whole_numbers(tmp_path: Path, seen_by: Seen) -> None:
    rows = np.stack([wrapped(hum(k, 60_000 if k in (7, 30) else 32_000)) for k in range(40)]).astype(np.int16)
    np.savez(tmp_path / "rows.npz", signal=rows, y=np.arange(40) % 2)
    (found,) = seen_by(d197, tmp_path)
    assert (found.measured["kind"], found.measured["rows"]) == ("rows", (7, 30))


def test_a_column_of_one_file(tmp_path: Path, seen_by: Seen) -> None:
    for i in range(4):
        level = wrapped(hum(i, 55_000 if i == 1 else 32_000))
        np.savez(tmp_path / f"run_{i}.npz", pressure=level.astype(np.int32), other=hum(i + 9, 3.0))
    (found,) = seen_by(d197, tmp_path)
    assert (found.measured["kind"], found.measured["shard"], found.severity) == ("column", "run_1.npz", Severity.MEDIUM)


def test_series_without_enough_samples_or_numbers_say_nothing() -> None:
    assert wraps_in(np.zeros(0), 65_536.0) == wraps_in(np.full(9000, 7), 65_536.0) == 0
    assert wraps_in(np.full(500, np.nan), 65_536.0) == 0


CLASSES = ("ash", "beech", "cedar", "elm")


def listed(folder: Path, split: str, numbers: dict[str, int], mark: str = " ") -> None:
    lines = [f"images/{CLASSES[k % 4]}/{split}_{k:03d}.jpg{mark}{numbers[CLASSES[k % 4]]}" for k in range(60)]
    (folder / f"{split}.txt").write_text("\n".join(lines) + "\n")
    np.savez(folder / f"{split}_features.npz", x=np.random.default_rng(0).normal(size=(60, 4)))


USUAL = {n: i for i, n in enumerate(CLASSES)}


@pytest.mark.parametrize("mark", [" ", "\t", ","])
def test_lists_that_number_the_classes_otherwise(mark: str, tmp_path: Path, seen_by: Seen) -> None:
    listed(tmp_path, "train", USUAL, mark)
    listed(tmp_path, "val", {**USUAL, "beech": 2, "cedar": 1}, mark)
    (found,) = seen_by(d198, tmp_path)
    assert (found.measured["moved"], found.measured["kind"]) == (2, "lines")
    assert "beech is 1 in train.txt and 2 in val.txt" in found.statement


def test_maps_of_names_of_two_splits(tmp_path: Path, seen_by: Seen) -> None:
    np.savez(tmp_path / "train_x.npz", x=np.random.default_rng(0).normal(size=(60, 4)))
    for split, names in (("train", CLASSES), ("val", ("ash", "cedar", "elm"))):
        (tmp_path / f"classes_{split}.json").write_text(json.dumps({n: i for i, n in enumerate(names)}))
    (found,) = seen_by(d198, tmp_path)
    assert (found.measured["kind"], found.measured["moved"]) == ("lists", 2)


@pytest.mark.parametrize("numbers", [USUAL, {n: USUAL[n] for n in CLASSES}], ids=["same", "again"])
def test_lists_that_agree_are_left_alone(numbers: dict[str, int], tmp_path: Path, seen_by: Seen) -> None:
    listed(tmp_path, "train", USUAL)
    listed(tmp_path, "val", numbers)
    assert seen_by(d198, tmp_path) == []


def test_folds_that_no_folder_tells_and_damaged_lists_are_left_alone(tmp_path: Path, seen_by: Seen) -> None:
    listed(tmp_path, "train", USUAL)
    lines = [f"images/{CLASSES[k % 4]}/val_{k:03d}.jpg {k * 7 % 5}" for k in range(60)]
    (tmp_path / "val.txt").write_text("\n".join(lines))
    (tmp_path / "test.txt").write_bytes(b"\xff\xfe images/ash/1.jpg 3\n" * 40)
    assert seen_by(d198, tmp_path) == []
