"""D180 by labels, and labels that are not the fault: machines that several microphones heard, one at another rate."""

from __future__ import annotations

import csv
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.on_data import examination
from traindx_tools.on_data.inputs_apart import blocks_beside, inputs_apart

KINDS = {"pump": (900, 1.0), "fan": (1900, 1.3), "saw": (3600, 0.8), "drill": (1500, 0.7)}
RATE, ODD = 16000, 2


def sound(rng: np.random.Generator, kind: str, rate: int, seconds: float) -> Any:
    """Strokes of a machine at a true rate, in a hiss of the microphone that no rate moves."""
    count, (pitch, glide) = int(seconds * rate), KINDS[kind]
    x, start = np.zeros(count), float(rng.uniform(0, 0.1))
    pitch *= float(np.exp(rng.normal(0, 0.05)))
    while start < seconds - 0.2:
        length = float(rng.uniform(0.1, 0.18))
        at = np.arange(int(start * rate), int((start + length) * rate))
        u = np.linspace(0, 1, len(at))
        x[at] += np.sin(np.pi * u) * np.sin(2 * np.pi * np.cumsum(pitch * glide**u) / rate)
        start += length + float(rng.uniform(0.1, 0.3))
    return 0.4 * x + rng.uniform(0.03, 0.1) * np.convolve(rng.normal(size=count), np.ones(6) / 6, "same")


def write(folder: Path, *, rates: Any = lambda mic: RATE, longer: float = 1.0, exchange: bool = False, mics: int = 4
          ) -> None:
    rng, kinds = np.random.default_rng(3), list(KINDS)
    (folder / "wav").mkdir()
    rows = []
    for i in range(70 * mics):
        mic, kind = i % mics, str(rng.choice(kinds))
        odd = mic == ODD
        x = sound(rng, kind, rates(mic), float(rng.uniform(0.8, 1.2)) * (longer if odd else 1.0))
        name = f"mic{mic}_{i:04d}.wav"
        with wave.open(str(folder / "wav" / name), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(np.clip(x * 20000, -32767, 32767).astype("<i2").tobytes())
        said = kinds[(kinds.index(kind) + 1) % len(kinds)] if exchange and odd else kind
        rows.append((name, said, f"mic-{mic}"))
    with (folder / "labels.csv").open("w", newline="") as table:
        csv.writer(table).writerows([("file", "machine", "mic"), *rows])


def told(folder: Path) -> dict[str, str]:
    report = examination.examine([folder])
    assert not report.notes
    return {f.rule: f.statement for f in report.wrong}


@pytest.mark.parametrize(("true", "mics"), [(32000, 4), (32000, 3), pytest.param(8000, 4, marks=pytest.mark.slow)])
def test_labels_tell_the_rate_where_a_hiss_hides_it(true: int, mics: int, tmp_path: Path) -> None:
    write(tmp_path, rates=lambda mic: true if mic == ODD else RATE, mics=mics)
    said = told(tmp_path)
    assert f"their samples are of {true:,} Hz under headers of 16,000 Hz" in said["D180"]
    assert "mic-2" in said["D180"]
    assert not {"D191", "D123", "D108", "D109", "D152"} & set(said)


@pytest.mark.parametrize("how", [
    {"longer": 2.0},  # one microphone records longer
    {"rates": lambda mic: 32000},  # all alike
    {"rates": lambda mic: 32000 if mic == 1 else RATE, "mics": 2},  # too few to know which is usual
    {"longer": 2.0, "mics": 3},
])
def test_longer_sounds_and_sounds_that_are_all_alike_are_quiet(how: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path, **how)
    assert not {"D180", "D191", "D123"} & set(told(tmp_path))


def test_exchanged_labels_are_still_told_as_such(tmp_path: Path) -> None:
    write(tmp_path, exchange=True)
    said = told(tmp_path)
    assert "D180" not in said
    assert "D191" in said


def test_sounds_that_are_broken_are_no_matter(tmp_path: Path) -> None:
    write(tmp_path, rates=lambda mic: 32000 if mic == ODD else RATE)
    for path in list((tmp_path / "wav").iterdir())[:5]:
        path.write_bytes(path.read_bytes()[:50])
    assert "D180" in told(tmp_path)


def test_inputs_of_a_part_stand_apart_only_beyond_what_parts_differ_by() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1200, 12)), rng.integers(0, 3, 1200)
    x[:, 0] += 3 * y
    parts = np.array_split(np.arange(1200), 6)
    assert not any(inputs_apart(x, y, parts, k) for k in range(6))
    for k, part in enumerate(parts):
        x[part] += 0.2 * k * np.eye(12)[3]  # each has an offset of its own
    assert not any(inputs_apart(x, y, parts, k) for k in range(6))
    x[parts[2], 5] *= -1
    x[parts[2], 7] += 4
    assert [inputs_apart(x, y, parts, k) for k in range(6)] == [False, False, True, False, False, False]
    blocks, at = blocks_beside(1200, 400, 600)
    assert inputs_apart(x, y, blocks, at)
    assert not inputs_apart(x[:30], y[:30], [np.arange(30), np.arange(0)], 0)
