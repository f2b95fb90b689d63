"""Pictures of one channel as they are stored: they may be label images, whose values are classes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.decoding import decoded
from traindx_tools.on_data.readers.pictures import picture_header

if TYPE_CHECKING:
    from PIL import Image

MOST = 400
"""Pictures of a split that are kept, evenly spaced."""
MOST_KEPT = 2**26
"""Bytes of them."""
SECONDS = 3.0
PARTS = 0.15
"""Of the time that is left."""


def label_image(data: bytes) -> Array | None:
    """uint8 shape (height, width), at most 512 x 512: a picture of one channel or of a palette as stored; else None.

    Raises ImportError without pillow.
    """
    def stored(picture: Image.Image) -> Array | None:
        if picture.mode not in ("L", "P"):
            return None
        return np.asarray(picture.crop((0, 0, min(512, picture.width), min(512, picture.height))), np.uint8)

    return decoded(data, ("PNG", "JPEG", "GIF", "BMP"), stored)


def is_single_channel(data: bytes) -> bool:
    """Whether a header says one channel of at most 8 bits, or a palette, whose indices are the classes."""
    if data.startswith(b"\x89PNG") and len(data) > 25:
        return data[25] in (0, 3) and data[24] <= 8
    try:
        header = picture_header(data)
    except UnreadableInput:
        return False
    return header.get("channels") == 1 and header.get("bits", 8) <= 8 and "width" in header


class LabelImages:
    """Collects some pictures of one channel, by row. `files`: how many there are; 0 where that is not known."""

    def __init__(self, bounds: Bounds, files: int = 0) -> None:
        self.found: dict[int, Array] = {}
        self._step = max(1, -(-files // MOST))
        self._left = min(SECONDS, PARTS * max(0.0, bounds.ends - time.monotonic()))
        self._kept = 0

    def take(self, row: int, data: bytes) -> None:
        """One picture, whole."""
        if row % self._step or self._left <= 0 or self._kept > MOST_KEPT or not is_single_channel(data):
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
            if len(self.found) > MOST:  # of more than were foreseen each second one stays
                self._step *= 2
                self.found = {r: i for r, i in self.found.items() if r % self._step == 0}
                self._kept = sum(i.size for i in self.found.values())
