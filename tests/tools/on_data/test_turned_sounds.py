"""D137: sounds of which the two bytes of each sample are exchanged, beside noise that is meant."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_data.readers.sound import is_turned
from traindx_tools.on_data.rules import d137_byte_order as d137
from traindx_tools.on_data.rules import d197_wrapped_samples as d197

Seen = Callable[[ModuleType, Path], list[Finding]]
Sound = NDArray[np.int16]


def tone(rng: np.random.Generator, length: int = 4000) -> Sound:
    t = np.arange(length) / 16_000
    sound = sum(np.sin(2 * np.pi * f * t + rng.uniform(0, 6)) / k for k, f in enumerate(rng.uniform(80, 900, 4), 1))
    return np.asarray(5000 * sound * np.hanning(length) + rng.normal(0, 40, length), np.int16)


def noise(rng: np.random.Generator, length: int = 4000) -> Sound:
    return np.asarray(rng.normal(0, 4000, length), np.int16)


def write(folder: Path, make: Callable[[int, Sound], Sound], count: int = 24,
          of: Callable[[np.random.Generator], Sound] = tone) -> None:
    rng = np.random.default_rng(0)
    for i in range(count):
        path = folder / f"room{i % 3}" / f"word_{i}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 16_000, 0, "NONE", ""))
            file.writeframes(make(i, of(rng)).astype("<i2").tobytes())


def test_the_sounds_of_one_room_are_named_and_wrap_nowhere(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, lambda i, s: s.byteswap() if i % 3 == 1 else s)
    (found,) = seen_by(d137, tmp_path)
    assert "8 of 24 sounds hold samples in the other byte order" in found.statement
    assert all(name.startswith("room1/") for name in found.measured["files"])
    assert seen_by(d197, tmp_path) == []


@pytest.mark.parametrize("of", [tone, noise])
def test_sounds_and_noise_as_they_are(of: Callable[[np.random.Generator], Sound], tmp_path: Path,
                                      seen_by: Seen) -> None:
    write(tmp_path, lambda i, s: s, of=of)
    assert seen_by(d137, tmp_path) == []


def test_turned_noise_cannot_be_told(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, lambda i, s: s.byteswap() if i % 3 == 1 else s, of=noise)
    assert seen_by(d137, tmp_path) == []


@pytest.mark.parametrize("make", [
    lambda i, s: s[:100], lambda i, s: np.zeros_like(s), lambda i, s: s.byteswap() if i < 3 else s,
], ids=["short", "silent", "three alone"])
def test_too_little_to_tell(make: Callable[[int, Sound], Sound], tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, make)
    assert seen_by(d137, tmp_path) == []


@pytest.mark.parametrize("data", [b"", b"RIFF", b"RIFF\0\0\0\0WAVEfmt ", b"no sound at all" * 100])
def test_what_cannot_be_decoded_is_not_turned(data: bytes) -> None:
    assert not is_turned(data)
