"""Sounds of one speaker that are clipped below full scale, in folders and archives, and what looks like it."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding
from traindx_tools.on_data.readers.sound import flat_tops, wave_header
from traindx_tools.on_data.rules import d140_clipped_sounds

Seen = Callable[[ModuleType, Path], list[Finding]]
SPEAKERS, EACH = 5, 10


def voice(rng: np.random.Generator, samples: int = 3000) -> Any:
    time = np.arange(samples)
    tone = sum(rng.uniform(0.2, 1) * np.sin(rng.uniform(0.05, 0.6) * time + rng.uniform(0, 6)) for _ in range(4))
    x = tone * (0.6 + 0.4 * np.sin(time / 200)) + 0.02 * rng.normal(size=samples)
    return x / abs(x).max() * rng.uniform(0.4, 0.8)


def clip(x: Any) -> Any:
    level = 0.5 * abs(x).max()
    return np.clip(x, -level, level)


def sound(x: Any, width: int = 2) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(width)
        file.setframerate(8000)
        whole = np.round(x * (2 ** (8 * width - 1) - 1)).astype(np.int64)
        data = whole.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :width] if width > 1 else (whole + 128)[:, None]
        file.writeframes(np.ascontiguousarray(data.astype(np.uint8)).tobytes())
    return out.getvalue()


def floating(x: Any) -> bytes:
    """A wave file of float32, its chunks in the order in which most programs write them."""
    data = x.astype("<f4").tobytes()
    form = struct.pack("<HHIIHH", 3, 1, 8000, 32000, 4, 32)
    chunks = b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def write(folder: Path, form: str, change: Callable[[int, int, Any], Any], each: int = EACH) -> None:
    rng = np.random.default_rng(0)
    made = floating if form == "floats" else sound
    for speaker in range(SPEAKERS):
        sounds = {f"speaker{speaker}_{k:03d}": made(change(speaker, k, voice(rng))) for k in range(each)}
        if form == "manifest":
            write_listed(folder, speaker, list(sounds.values()))
            continue
        if form in ("folders", "floats"):
            (folder / f"speaker{speaker}").mkdir()
            for name, data in sounds.items():
                (folder / f"speaker{speaker}" / f"{name}.wav").write_bytes(data)
            continue
        with tarfile.open(folder / f"shard_{speaker}.tar", "w") as archive:
            for name, data in sounds.items():
                member = tarfile.TarInfo(f"{name}.wav")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def write_listed(folder: Path, speaker: int, sounds: list[bytes]) -> None:
    """In one folder, under names that tell nothing; a table names the speaker."""
    (folder / "clips").mkdir(exist_ok=True)
    table = folder / "manifest.csv"
    lines = table.read_text().splitlines() if table.exists() else ["path,speaker"]
    for data in sounds:
        name = f"{hashlib.sha256(data).hexdigest()[:12]}.wav"
        (folder / "clips" / name).write_bytes(data)
        lines.append(f"clips/{name},s{speaker}")
    table.write_text("\n".join(lines))


def loud(x: Any) -> Any:
    return np.clip(1.8 * x / abs(x).max(), -1, 1)


@pytest.mark.parametrize("form", ["folders", "floats", "tar", "manifest"])
def test_one_speaker_at_full_scale(form: str, seen_by: Seen, tmp_path: Path) -> None:
    write(tmp_path, form, lambda s, k, x: loud(x) if s == 3 and k else x)
    (told,) = seen_by(d140_clipped_sounds, tmp_path)
    assert "3" in str(told.measured["value"])
    assert (told.measured["count"], told.measured["at_full_scale"]) == (EACH - 1, True)
    assert "stay at full scale for three samples" in told.statement


@pytest.mark.parametrize("form", ["folders", "tar", "floats"])
def test_one_speaker(form: str, seen_by: Seen, tmp_path: Path) -> None:
    write(tmp_path, form, lambda s, k, x: clip(x) if s == 3 and k else x)
    (told,) = seen_by(d140_clipped_sounds, tmp_path)
    assert "3" in str(told.measured["value"])
    assert told.measured["count"] == EACH - 1
    assert "speaker3_001" in told.statement


@pytest.mark.parametrize(
    "change",
    [
        lambda s, k, x: x,
        lambda s, k, x: clip(x),
        lambda s, k, x: loud(x),
        lambda s, k, x: loud(x) if s == 3 or k == 0 else x,
        lambda s, k, x: x / abs(x).max() if s == 3 else x,
        lambda s, k, x: 0.95 * loud(x) if s == 3 else x,
        lambda s, k, x: clip(x) if k % 5 == 0 else x,
        lambda s, k, x: 0.5 * np.sign(x) if s == 3 else x,
        lambda s, k, x: x * 0.001 if s == 3 else x,
        lambda s, k, x: 0.5 * np.sin(np.arange(3000) * 0.01) if s == 3 else x,
    ],
    ids=["healthy", "all", "loud everywhere", "loud in each", "scaled to its peak", "limited", "some of each",
         "square waves", "quiet", "slow tones"],
)
def test_what_is_a_choice_or_chance(change: Any, seen_by: Seen, tmp_path: Path) -> None:
    write(tmp_path, "folders", change)
    assert seen_by(d140_clipped_sounds, tmp_path) == []


@pytest.mark.parametrize("form", ["folders", "tar", "manifest"])
def test_half_of_a_speaker(form: str, seen_by: Seen, tmp_path: Path) -> None:
    write(tmp_path, form, lambda s, k, x: clip(x) if s == 3 and k % 2 else x, 2 * EACH)
    (told,) = seen_by(d140_clipped_sounds, tmp_path)
    assert "3" in str(told.measured["value"])
    assert told.measured["count"] == EACH


@pytest.mark.parametrize("change", [
    lambda s, k, x: loud(x) if s == 3 and k % 2 else x,  # the loudest of a class
    lambda s, k, x: clip(x) if s == 3 and k == 4 else x,
    lambda s, k, x: clip(x) if k % 2 and s in (1, 2, 3) else x,
])
def test_half_of_a_speaker_by_nature(change: Any, seen_by: Seen, tmp_path: Path) -> None:
    write(tmp_path, "folders", change, 2 * EACH)
    assert seen_by(d140_clipped_sounds, tmp_path) == []


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_how_flat_a_sound_is(width: int) -> None:
    x = voice(np.random.default_rng(1))
    assert flat_tops(sound(0.7 * clip(x) / abs(clip(x)).max(), width))[1] > 0.4
    assert flat_tops(sound(x, width))[1] < 0.4


def test_clipped_files_at_random_are_no_origin() -> None:
    """Two hundred sets whose clipped files have nothing in common."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        clipped = rng.random(60) < rng.uniform(0.05, 0.5)
        group = np.arange(60) % 5
        known = np.ones(60, bool)
        found = [
            d140_clipped_sounds._origin("folder", str(v), group == v, clipped, known, least, most)
            for v in range(5) for least, most in (
                (d140_clipped_sounds.MOST, d140_clipped_sounds.OTHERS),
                (d140_clipped_sounds.MOST, d140_clipped_sounds.OTHERS_AT_FULL),
                (d140_clipped_sounds.SOME, d140_clipped_sounds.NO_OTHERS))
        ]
        alarms += sum(o is not None and o.log_chance + np.log(10) < np.log(1e-3) for o in found)
    assert alarms == 0


def test_files_that_are_not_whole(seen_by: Seen, tmp_path: Path) -> None:
    write(tmp_path, "folders", lambda s, k, x: clip(x) if s == 3 else x)
    for path in sorted((tmp_path / "speaker1").iterdir())[:4]:
        path.write_bytes(path.read_bytes()[:500])
    (tmp_path / "speaker0" / "speaker0_000.wav").write_bytes(b"RIFF")
    assert [f.measured["count"] for f in seen_by(d140_clipped_sounds, tmp_path)] == [EACH]


def test_a_file_of_floats_that_is_cut() -> None:
    whole = floating(voice(np.random.default_rng(0)))
    assert wave_header(whole) == {"rate": 8000, "channels": 1, "bits": 32, "frames": 3000}
    with pytest.raises(UnreadableInput, match="claims 12,000 bytes of samples and 5,956 are there"):
        wave_header(whole[:6000])
    assert np.isnan(flat_tops(floating(np.full(200, np.nan)))[0])
    with pytest.raises(UnreadableInput, match="no wave file"):
        wave_header(whole[:30])
