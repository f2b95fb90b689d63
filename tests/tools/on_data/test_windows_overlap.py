"""Overlapping windows of recordings, split by chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d172_windows_overlap as d172

Seen = Callable[[ModuleType, Path], list[Finding]]
Array = np.ndarray[Any, Any]


def windows(rng: np.random.Generator, step: int, *, kind: str = "float") -> tuple[Array, Array]:
    """float32 shape (windows, 64, 3), and the recording of each."""
    signals: list[Array] = [np.cumsum(rng.normal(size=(1600, 3)), axis=0).astype(np.float32) for _ in range(12)]
    if kind == "tokens":
        signals = [rng.integers(0, 50, (1600, 3)) for _ in range(12)]
    if kind == "silence":
        signals = [np.where(np.arange(1600)[:, None] % 400 < 250, np.float32(0), s) for s in signals]
    cut = [(s[a:a + 64], r) for r, s in enumerate(signals) for a in range(0, 1600 - 64, step)]
    return np.stack([c for c, _ in cut]), np.array([r for _, r in cut])


def split(folder: Path, x: Array, held_out: Array, *, channels_first: bool = False) -> None:
    x = np.moveaxis(x, 1, 2) if channels_first else x
    np.savez(folder / "train.npz", x=x[~held_out], y=np.arange(len(x))[~held_out] % 5)
    np.savez(folder / "test.npz", x=x[held_out], y=np.arange(len(x))[held_out] % 5)


@pytest.mark.parametrize("channels_first", [False, True])
def test_overlapping_windows_that_were_split_by_chance(channels_first: bool, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(0)
    x, _ = windows(rng, 32)
    split(tmp_path, x, rng.random(len(x)) < 0.2, channels_first=channels_first)
    (told,) = seen_by(d172, tmp_path)
    assert "moved by 32 of 64 samples" in told.statement
    share = told.measured["share"]
    assert isinstance(share, float)
    assert share > 0.8


def test_recordings_that_were_split_first_and_windows_side_by_side_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    x, recording = windows(np.random.default_rng(1), 32)
    split(tmp_path, x, recording >= 10)
    assert seen_by(d172, tmp_path) == []
    x, _ = windows(np.random.default_rng(2), 64)
    split(tmp_path, x, np.random.default_rng(3).random(len(x)) < 0.2)
    assert seen_by(d172, tmp_path) == []


@pytest.mark.parametrize("kind", ["tokens", "silence"])
def test_what_recurs_by_nature_is_quiet(kind: str, tmp_path: Path, seen_by: Seen) -> None:
    x, recording = windows(np.random.default_rng(4), 32, kind=kind)
    split(tmp_path, x, recording >= 10)
    assert seen_by(d172, tmp_path) == []


def test_rows_without_samples_and_files_without_a_split_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(5)
    split(tmp_path, rng.normal(size=(200, 8, 2)), rng.random(200) < 0.3)
    assert seen_by(d172, tmp_path) == []
    (tmp_path / "train.npz").unlink()
    assert seen_by(d172, tmp_path) == []


def clips(kind: str, rng: np.random.Generator) -> Array:
    """float32 shape (400, 96, 4): recordings of their own, with something that they have in common."""
    x: Array = rng.normal(size=(400, 96, 4)).astype(np.float32)
    for row, length in zip(x, rng.integers(30, 96, 400), strict=True):
        if kind == "padded":
            row[length:] = np.float32(-11.5129)
        elif kind == "held":
            row[length:] = row[length - 1]
    if kind == "pulse":
        x[:, :24] = rng.normal(size=(24, 4)).astype(np.float32)
        x = np.stack([np.roll(row, -(i % 3), axis=0) for i, row in enumerate(x)])
    return x


@pytest.mark.parametrize("kind", ["padded", "held", "pulse"])
def test_padding_and_a_pulse_of_all_rows_are_quiet(kind: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(6)
    split(tmp_path, clips(kind, rng), rng.random(400) < 0.25)
    assert seen_by(d172, tmp_path) == []


def test_windows_that_overlap_are_told_beside_their_padding(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(7)
    x, _ = windows(rng, 32)
    x[:, 56:] = 0
    split(tmp_path, x, rng.random(len(x)) < 0.2)
    (told,) = seen_by(d172, tmp_path)
    assert "moved by 32 of 64 samples" in told.statement
