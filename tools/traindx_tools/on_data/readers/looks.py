"""What a file shows in few numbers: a grey thumbnail of a picture, the spectrum of a sound over time."""

from __future__ import annotations

import io
import time
import warnings
import wave
from dataclasses import dataclass, field

import numpy as np

from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.table import Array

SIDE = 32
"""Pixels along each side of a thumbnail; bands and times of a spectrum."""
MOST_TRAIN = 4000
MOST_HELD_OUT = 600
MOST_PIXELS = 2**26
"""Pixels of a picture that is decoded; larger ones are left out."""
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
        """float32 shape (32, 32): the file's look; None where it cannot be decoded or the time is used up."""
        if self.spent > SECONDS or self.bounds.over:
            self.note = f"after {SECONDS:.0f} s no more files were decoded"
            return None
        started = time.monotonic()
        try:
            return _spectrum(data) if self.sounds else _thumbnail(data)
        except ImportError:
            self.spent = SECONDS
            self.note = "pictures were not decoded: pip install 'traindx[data]'"
            return None
        except Exception:  # noqa: BLE001 - a decoder meets a broken file; damage is told by its header
            return None
        finally:
            self.spent += time.monotonic() - started


def _thumbnail(data: bytes) -> Array | None:
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "BMP", "WEBP")) as picture:
            if picture.width * picture.height > MOST_PIXELS or min(picture.size) < 8:
                return None
            picture.draft("L", (2 * SIDE, 2 * SIDE))
            grey = picture.convert("F" if picture.mode.startswith(("I", "F")) else "L")
            return np.asarray(grey.convert("F").resize((SIDE, SIDE), Image.Resampling.BOX), np.float32)


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
