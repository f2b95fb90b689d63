"""Pictures of more than 8 bits, such as depth: how large their values are, how wide they spread, in which steps."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.decoding import decoded

if TYPE_CHECKING:
    from PIL import Image

MOST = 600
"""Pictures of a split that are looked at, evenly spaced."""
SAMPLE = 4_096
"""Pixels of a picture that are looked at."""
SECONDS, PARTS = 3.0, 0.15
"""Time for them, and its share of what is left."""
_UNREAD = (math.nan, math.nan, math.nan)


class DeepPictures:
    """What is kept of some deep pictures of a split, file by file."""

    def __init__(self, bounds: Bounds, files: int) -> None:
        self.found: list[tuple[float, float, float]] = []
        self._step = max(1, -(-files // MOST))
        self._left = min(SECONDS, PARTS * max(0.0, bounds.ends - time.monotonic()))

    def take(self, header: dict[str, int], data: bytes) -> None:
        """One file more; `header` as `picture_header` reads it, {} of a broken one."""
        deep = header.get("bits", 8) > 8 and header.get("channels") == 1
        if not deep or self._left <= 0 or len(self.found) % self._step:
            self.found.append(_UNREAD)
            return
        started = time.monotonic()
        self.found.append(values_of(data))
        self._left -= time.monotonic() - started

    def array(self) -> Array | None:
        """float64 shape (files, 3), NaN where a file was not looked at; None where none was."""
        found = np.array(self.found, np.float64).reshape(-1, 3)
        return found if np.isfinite(found[:, 0]).any() else None


def values_of(data: bytes) -> tuple[float, float, float]:
    """Of the values above 0 the median, the logarithm of the ratio of quartiles, and their greatest common divisor
    (0: they are not whole)."""
    try:
        values = decoded(data, ("PNG", "TIFF"), _deep)
    except ImportError:
        values = None
    if values is None:
        return _UNREAD
    values = values[:: max(1, len(values) // SAMPLE)].astype(np.float64)
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return _UNREAD
    whole = bool((values == np.round(values)).all()) and float(values.max()) < 2**31
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    step = float(np.gcd.reduce(values.astype(np.int64))) if whole else 0.0
    return float(middle), math.log(high / low), step


def _deep(picture: Image.Image) -> Array | None:
    return np.asarray(picture).reshape(-1) if picture.mode.startswith(("I", "F")) else None
