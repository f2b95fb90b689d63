"""Pictures of one channel as they are stored: they may be label images, whose values are classes."""

from __future__ import annotations

import time
from collections.abc import Mapping

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.thumbnails import label_image

MOST = 400
"""Pictures of a split that are kept, evenly spaced."""
MOST_KEPT = 2**26
"""Bytes of them."""
SECONDS = 3.0
PARTS = 0.15
"""Of the time that is left."""


class LabelImages:
    """Collects some pictures of one channel, by row."""

    def __init__(self, bounds: Bounds, files: int) -> None:
        self.found: dict[int, Array] = {}
        self._step = max(1, -(-files // MOST))
        self._left = min(SECONDS, PARTS * max(0.0, bounds.ends - time.monotonic()))
        self._kept = 0

    def take(self, row: int, header: Mapping[str, int], data: bytes) -> None:
        """One file; `header` as `picture_header` reads it, {} of a broken one."""
        single = header.get("channels") in (1, 3) and header.get("bits", 8) <= 8 and "width" in header
        if not single or row % self._step or self._left <= 0 or self._kept > MOST_KEPT:
            return
        if header["channels"] == 3 and not _has_palette(data):
            return
        started = time.monotonic()
        try:
            image = label_image(data)
        except ImportError:
            image = None
            self._left = 0.0
        self._left -= time.monotonic() - started
        if image is not None:
            self.found[row] = image
            self._kept += image.size


def _has_palette(data: bytes) -> bool:
    """Whether a PNG has a palette, whose indices are the classes."""
    return data.startswith(b"\x89PNG") and len(data) > 25 and data[25] == 3
