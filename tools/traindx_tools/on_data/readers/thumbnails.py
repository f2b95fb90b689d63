"""Pictures within archives and tables as thumbnails, so that whatever judges arrays judges them as well."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.on_data.column import THUMBNAIL, Array, Column
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.decoding import decoded
from traindx_tools.on_data.readers.label_pictures import LabelImages, is_single_channel
from traindx_tools.on_data.readers.orientation import UPRIGHT, orientation_of, upright

if TYPE_CHECKING:
    from PIL import Image

SIDE = 32
"""Pixels along each side of a thumbnail."""
MOST_ROWS = 20_000
SECONDS = 3.0
"""For the pictures of one file."""
SHARE = 0.3
"""Of the time that is left, for the pictures of one file: decoding is slower than reading headers."""
_MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"RIFF")


def is_picture(data: bytes) -> bool:
    """Whether bytes begin as those of a picture do."""
    return data.startswith(_MAGIC[:3]) or (data.startswith(_MAGIC[4]) and data[8:12] == b"WEBP")


def thumbnail(data: bytes) -> Array | None:
    """uint8 shape (32, 32, 3), turned as its header says, None where the bytes cannot be decoded.

    Raises ImportError without pillow.
    """
    from PIL.Image import Resampling

    def small(picture: Image.Image) -> Array | None:
        if min(picture.size) < 4:
            return None
        deep = picture.mode.startswith(("I", "F"))
        picture.draft("RGB", (2 * SIDE, 2 * SIDE))
        turn = orientation_of(data)
        if not deep:
            colour = picture.convert("RGB").resize((SIDE, SIDE), Resampling.BOX)
            return upright(np.asarray(colour, np.uint8), turn)
        grey = np.asarray(picture.convert("F").resize((SIDE, SIDE), Resampling.BOX), np.float32)
        grey = grey / 257.0 if float(grey.max(initial=0.0)) > 255.0 else grey
        return upright(np.repeat(grey.clip(0, 255).astype(np.uint8)[:, :, None], 3, axis=2), turn)

    return decoded(data, ("PNG", "JPEG", "GIF", "BMP", "WEBP"), small)


class Thumbnails:
    """Collects the pictures of one file row by row. A field of which one picture is not decoded is given up."""

    def __init__(self, bounds: Bounds) -> None:
        self._found: dict[str, list[Array]] = {}
        self._given_up: set[str] = set()
        self._orientations: dict[str, dict[int, int]] = {}
        self._labelled: dict[str, LabelImages] = {}
        self._bounds = bounds
        self._left = min(SECONDS, SHARE * max(0.0, bounds.ends - time.monotonic()))

    def take(self, field: str, data: bytes, row: int) -> None:
        """The picture of a field in one record; its rows come in order."""
        if is_single_channel(data):
            if field not in self._labelled:
                self._labelled[field] = LabelImages(self._bounds)
            self._labelled[field].take(row, data)
        if (turn := orientation_of(data)) != UPRIGHT:
            self._orientations.setdefault(field, {})[row] = turn
        found = self._found.setdefault(field, [])
        if field in self._given_up:
            return
        started = time.monotonic()
        try:
            made = thumbnail(data) if self._left > 0 and len(found) == row < MOST_ROWS else None
        except ImportError:
            made = None
        self._left -= time.monotonic() - started
        if made is None:
            self._given_up.add(field)
            found.clear()
        else:
            found.append(made)

    def with_orientations(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """The columns; the widths of pictures with how the pictures are to be turned, and what may be label images."""
        out = dict(columns)
        for field, turns in self._orientations.items():
            width = out.get(f"{field}.width")
            if width is not None:
                turned = np.full(width.rows, UPRIGHT, np.int8)
                for row in (r for r in turns if r < width.rows):
                    turned[row] = turns[row]
                out[width.name] = replace(width, orientations=turned)
        for field, images in self._labelled.items():
            width = out.get(f"{field}.width")
            if width is not None and images.found:
                out[width.name] = replace(width, label_images={r: i for r, i in images.found.items() if r < width.rows})
        return out

    def columns(self, rows: int, file: str) -> dict[str, Column]:
        """`png.thumbnail`: uint8 shape (rows, 32, 32, 3), of each field whose pictures were all decoded."""
        return {
            f"{field}{THUMBNAIL}": Column(f"{field}{THUMBNAIL}", "number", np.stack(found), file)
            for field, found in self._found.items()
            if found and len(found) == rows
        }
