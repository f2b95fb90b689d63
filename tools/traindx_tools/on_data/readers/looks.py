"""What a file shows in few numbers: a grey thumbnail of a picture, the spectrum of a sound over time."""

from __future__ import annotations

import io
import time
import wave
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from traindx_tools.errors import install_line
from traindx_tools.on_data.column import Array, Contents
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.thumbnails import thumbnail

SIDE = 32
"""Bands and times of a spectrum: as many as a thumbnail has pixels along a side."""
GREY = np.array([0.299, 0.587, 0.114], np.float32)
"""Shares of red, green and blue in grey (ITU-R BT.601)."""
MOST_TRAIN = 4000
MOST_HELD_OUT = 600
MOST_FRAMES = 2**19
WINDOW = 512
"""Samples of a spectrum."""
SECONDS = 8.0
"""For all files of a folder: decoding is slower than reading headers, and is no more than a part of the time."""


@dataclass
class Looks:
    """Decodes pictures or sounds of a folder in bounds. `note`: why some were not looked at."""

    sounds: bool
    bounds: Bounds
    note: str = ""
    spent: float = field(default=0.0)

    def chosen(self, files: int, split: str) -> frozenset[int]:
        """Numbers of the files that are looked at, evenly spaced."""
        most = MOST_HELD_OUT if split not in ("", "train") else MOST_TRAIN
        return frozenset(np.unique(np.linspace(0, files - 1, min(files, most)).astype(np.int64)).tolist())

    def at(self, data: bytes) -> Array | None:
        """The file's look: uint8 shape (32, 32, 3), of a sound float32 shape (32, 32); None where it cannot be decoded
        or the time is used up."""
        if self.spent > SECONDS or self.bounds.over:
            self.note = f"after {SECONDS:.0f} s no more files were decoded"
            return None
        started = time.monotonic()
        try:
            return _spectrum(data) if self.sounds else thumbnail(data)
        except ImportError:
            self.spent = SECONDS
            self.note = f"pictures were not decoded: {install_line('data')}"
            return None
        except Exception:  # noqa: BLE001 - a decoder meets a broken file; damage is told by its header
            return None
        finally:
            self.spent += time.monotonic() - started


def _spectrum(data: bytes) -> Array | None:
    """Log magnitudes in bands of equal width from 0 to half the rate, over `SIDE` equal parts of the sound."""
    with wave.open(io.BytesIO(data)) as file:
        width, channels = file.getsampwidth(), file.getnchannels()
        raw = file.readframes(min(file.getnframes(), MOST_FRAMES))
    if width not in (1, 2, 4):
        return None
    samples = np.frombuffer(raw, {1: "u1", 2: "<i2", 4: "<i4"}[width]).astype(np.float32)
    samples = samples.reshape(-1, channels).mean(axis=1)
    samples = samples - samples.mean()
    if len(samples) < 2 * WINDOW:
        return None
    starts = np.linspace(0, len(samples) - WINDOW, 2 * SIDE).astype(np.int64)
    frames = samples[starts[:, None] + np.arange(WINDOW)] * np.hanning(WINDOW).astype(np.float32)
    power = np.abs(np.fft.rfft(frames, axis=1))[:, 1:] ** 2
    bands = power.reshape(SIDE, 2, SIDE, -1).mean(axis=(1, 3))
    return np.asarray(np.log(bands + 1e-6 * float(bands.mean()) + 1e-12).T, dtype=np.float32)


def contents_of_looks(images: Mapping[int, Array], sounds: bool) -> Contents | None:
    """What was looked at, pictures in grey and in their colours; None where nothing was."""
    if not images:
        return None
    rows, looks = np.array(list(images)), np.stack(list(images.values()))
    return Contents(rows, looks, True) if sounds else Contents(rows, looks.astype(np.float32) @ GREY, colours=looks)
