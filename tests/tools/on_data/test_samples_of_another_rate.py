"""D180: speakers whose files hold samples of another rate than the headers say."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d180_samples_of_another_rate as d180

Seen = Callable[[ModuleType, Path], list[Finding]]
RATE, ODD = 16000, 3


def word(rng: np.random.Generator, seconds: float, rate: int, pitch: float = 1.0) -> Any:
    """Noise through a few resonances below 3.4 kHz, at a true rate."""
    count = int(seconds * rate)
    spectrum = np.fft.rfft(rng.normal(size=count))
    f = np.fft.rfftfreq(count, 1 / rate)
    shape = sum(a / (1 + ((f - pitch * c) / 220) ** 2) for c, a in ((500, 1.0), (1500, 0.4), (2600, 0.2)))
    return np.fft.irfft(spectrum * shape * np.exp(-f / 2500), count) * np.hanning(count)


def speakers(folder: Path, make: Callable[[int, np.random.Generator], Any], count: int = 6, names: str = "spk{}/{}"
             ) -> None:
    rng = np.random.default_rng(0)
    for speaker in range(count):
        for i in range(12):
            x = make(speaker, rng)
            path = folder / (names.format(speaker, i) + ".wav")
            path.parent.mkdir(parents=True, exist_ok=True)
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(RATE)
                file.writeframes((12000 * x / np.abs(x).max()).astype("<i2").tobytes())


def seconds(rng: np.random.Generator) -> float:
    return float(rng.uniform(0.6, 0.9))


@pytest.mark.parametrize("true", [8000, 11025, 32000])
@pytest.mark.parametrize("names", ["spk{}/{}", "s{}_{}"])
def test_a_speaker_whose_samples_are_of_another_rate(true: int, names: str, tmp_path: Path, seen_by: Seen) -> None:
    speakers(tmp_path, lambda s, rng: word(rng, seconds(rng), true if s == ODD else RATE, 1 + 0.03 * s), names=names)
    (told,) = seen_by(d180, tmp_path)
    assert abs(float(str(told.measured["true_rate"])) / true - 1) < 0.1
    assert told.measured["count"] == 12


@pytest.mark.parametrize("make", [
    lambda s, rng: word(rng, seconds(rng), RATE),
    lambda s, rng: word(rng, seconds(rng) / (2 if s == ODD else 1), RATE),  # a quick speaker
    lambda s, rng: word(rng, seconds(rng), RATE, 1.8 if s == ODD else 1.0),  # a high voice
    lambda s, rng: word(rng, seconds(rng) * (0.4 + 0.3 * s), RATE, 1 + 0.2 * s),  # other sounds each
    lambda s, rng: word(rng, seconds(rng), 8000),  # all alike
])
def test_quick_and_high_speakers_and_other_sounds_are_quiet(make: Any, tmp_path: Path, seen_by: Seen) -> None:
    speakers(tmp_path, make)
    assert seen_by(d180, tmp_path) == []


def test_few_speakers_and_files_without_samples_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    speakers(tmp_path, lambda s, rng: word(rng, seconds(rng), 8000 if s == 1 else RATE), count=2)
    assert seen_by(d180, tmp_path) == []
    for path in tmp_path.rglob("*.wav"):
        path.write_bytes(b"RIFF\x00\x00\x00\x00WAVEjunk")
    assert seen_by(d180, tmp_path) == []
