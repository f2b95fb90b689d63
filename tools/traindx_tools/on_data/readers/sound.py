"""What the header of a wave file says, and whether its samples are there."""

from __future__ import annotations

import io
import math
import struct
import wave
from dataclasses import dataclass

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.wraps import wraps_in

MOST_FRAMES = 2**19
RUN = 3
"""Samples in a row at a file's extreme: two may be a rounded peak."""
FEWEST = 9
"""Samples in such runs."""
NEAR = 0.02
"""Below the extreme, as a share of it: a rounded peak has more samples there than at the extreme itself."""
MOST_AT = 0.3
"""Share of samples at the extremes above which a sound is made so, as square waves are."""
_IEEE_FLOAT, _EXTENSIBLE = 3, 0xFFFE
QUIET = 64
"""Steps of the numbers: a sound that is quieter has flat tops by rounding."""


@dataclass(frozen=True, eq=False)
class _Floating:
    """A wave file of floating-point numbers, which the standard library does not read."""

    channels: int
    rate: int
    width: int
    claimed: int
    """Bytes of samples that the header claims."""
    raw: bytes

    def header(self) -> dict[str, int]:
        if len(self.raw) < self.claimed:
            raise UnreadableInput(
                f"its header claims {self.claimed:,} bytes of samples and {len(self.raw):,} are there")
        frames = self.claimed // max(1, self.channels * self.width)
        return {"rate": self.rate, "channels": self.channels, "bits": 8 * self.width, "frames": frames}

    def samples(self) -> Array:
        """Of the first channel."""
        whole = self.raw[: min(len(self.raw), MOST_FRAMES * self.channels * self.width) // self.width * self.width]
        return np.frombuffer(whole, f"<f{self.width}")[:: max(1, self.channels)]


def _floating(data: bytes) -> _Floating | None:
    """The file where it is of floating-point numbers, None for any other; its chunks are walked."""
    at, form = 12, b""
    while data[:4] == b"RIFF" and data[8:12] == b"WAVE" and at + 8 <= len(data):
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        body = data[at + 8 : at + 8 + size]
        if kind == b"fmt ":
            form = body
        if kind == b"data" and len(form) >= 16:
            tag, channels, rate, _, _, bits = struct.unpack("<HHIIHH", form[:16])
            tag = int.from_bytes(form[24:26], "little") if tag == _EXTENSIBLE else tag
            floating = tag == _IEEE_FLOAT and bits in (32, 64) and channels
            return _Floating(channels, rate, bits // 8, size, body) if floating else None
        at += 8 + size + size % 2
    return None


def wave_header(data: bytes) -> dict[str, int]:
    """Rate in Hz, channels, bits and frames. `data`: the whole file. Raises UnreadableInput where it is not whole."""
    numbers = _floating(data)
    if numbers is not None:
        return numbers.header()
    try:
        with wave.open(io.BytesIO(data)) as file:
            told = {
                "rate": file.getframerate(),
                "channels": file.getnchannels(),
                "bits": 8 * file.getsampwidth(),
                "frames": file.getnframes(),
            }
            size = told["frames"] * told["channels"] * file.getsampwidth()
            there = min(size, len(data) - 44)
    except (wave.Error, EOFError) as error:
        raise UnreadableInput(f"it is no wave file that can be read ({str(error) or 'it ends early'})") from None
    if there < size:
        raise UnreadableInput(f"its header claims {size:,} bytes of samples and {there:,} are there")
    return told


def flat_tops(data: bytes) -> tuple[float, float]:
    """The extreme of a sound as a share of full scale, and how flat it is there: 0 is a peak, 1 a plain.

    `data`: the whole file. NaN where it cannot be decoded.
    """
    numbers = _floating(data)
    if numbers is not None:
        return _flat(numbers.samples(), 1.0, QUIET / 2**15)
    try:
        with wave.open(io.BytesIO(data)) as file:
            width = file.getsampwidth()
            raw = file.readframes(min(file.getnframes(), MOST_FRAMES))
            channels = file.getnchannels()
    except (wave.Error, EOFError):
        return float("nan"), float("nan")
    return _flat(_samples(raw, width)[::channels], 2.0 ** (8 * width - 1), QUIET)


def wraps_at_full_scale(data: bytes) -> int:
    """How often the first channel wraps around at the edge of its type. `data`: the whole file; 0 where unread."""
    numbers = _floating(data)
    if numbers is not None:
        return wraps_in(numbers.samples(), 2.0)
    try:
        with wave.open(io.BytesIO(data)) as file:
            width, channels = file.getsampwidth(), file.getnchannels()
            raw = file.readframes(min(file.getnframes(), MOST_FRAMES))
    except (wave.Error, EOFError):
        return 0
    return wraps_in(_samples(raw, width)[::channels], 2.0 ** (8 * width))


WHITE, SMOOTH = 1.0, 0.6
"""Steps from sample to sample, in spreads: of noise 1.13 (2 over the root of pi), of what is heard much less."""


def is_turned(data: bytes) -> bool:
    """Whether 16-bit samples are noise as they are and smooth with the two bytes of each exchanged.

    `data`: the whole file. Noise, silence and files of another width are not, nor what cannot be decoded.
    """
    try:
        with wave.open(io.BytesIO(data)) as file:
            if file.getsampwidth() != 2:
                return False
            raw, channels = file.readframes(min(file.getnframes(), MOST_FRAMES)), file.getnchannels()
    except (wave.Error, EOFError):
        return False
    samples = np.frombuffer(raw[: len(raw) // 2 * 2], "<i2")[::channels]
    return len(samples) >= FEWEST_SAMPLES and _steps(samples) > WHITE and _steps(samples.byteswap()) < SMOOTH


FEWEST_SAMPLES = 256


def _steps(samples: Array) -> float:
    """The mean step from one sample to the next, in spreads; 0 of silence."""
    values = samples.astype(np.float64)
    spread = float(values.std())
    return float(np.abs(np.diff(values)).mean()) / spread if spread > 0 else 0.0


def left_and_right(data: bytes) -> tuple[float, float]:
    """How the first two channels go together (correlation), and the logarithm of the ratio of their spreads.

    `data`: the whole file. NaN where it has one channel, is silent in one, or cannot be decoded.
    """
    try:
        with wave.open(io.BytesIO(data)) as file:
            width, channels = file.getsampwidth(), file.getnchannels()
            raw = file.readframes(min(file.getnframes(), MOST_FRAMES)) if channels >= 2 else b""
    except (wave.Error, EOFError):
        return math.nan, math.nan
    samples = _samples(raw, width) if channels >= 2 else np.zeros(0, np.int64)
    both = samples[: len(samples) // channels * channels].reshape(-1, channels)[:, :2].astype(np.float64)
    if len(both) < 100 or float(both.std(axis=0).min()) < 1.0:
        return math.nan, math.nan
    left, right = both.std(axis=0)
    return float(np.corrcoef(both.T)[0, 1]), math.log(float(left) / float(right))


def _flat(samples: Array, full: float, quiet: float) -> tuple[float, float]:
    if len(samples) < 100 or not np.isfinite(samples).all():
        return float("nan"), float("nan")
    top, bottom = samples.max().item(), samples.min().item()
    level = max(top, -bottom) / full
    if max(top, -bottom) < quiet:
        return level, 0.0
    ends = [samples == end for end in (top, bottom) if abs(end) >= quiet]
    flat = sum(_in_runs(at) for at in ends)
    here = sum(int(at.sum()) for at in ends)
    near = int((samples > top * (1 - NEAR)).sum() + (samples < bottom * (1 - NEAR)).sum()) - here
    if flat < FEWEST or here > MOST_AT * len(samples):
        return level, 0.0
    return level, flat / max(1, flat + max(0, near))


def _samples(raw: bytes, width: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if width == 3:
        three = np.frombuffer(raw[: len(raw) // 3 * 3], np.uint8).reshape(-1, 3).astype(np.int64)
        whole = three[:, 0] | three[:, 1] << 8 | three[:, 2] << 16
        return np.where(whole >= 2**23, whole - 2**24, whole)
    form = {1: "u1", 2: "<i2", 4: "<i4"}[width]
    found = np.frombuffer(raw[: len(raw) // width * width], form).astype(np.int64)
    return found - 128 if width == 1 else found


def _in_runs(at: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """How many samples stand in runs of `RUN` and more."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], at.astype(np.int8), [0]])))
    lengths = edges[1::2] - edges[::2]
    return int(lengths[lengths >= RUN].sum())
