"""How a picture is to be turned before it is shown, as its EXIF tag 0x0112 says, and the header of a TIFF.

Cameras store what the sensor saw and note how they were held (Exif 2.32, JEITA CP-3451X, tag Orientation). Viewers
turn the picture; a loader that reads the pixels alone does not. Nothing is decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array

UPRIGHT = 1
ORIENTATION = 0x0112
_WIDTH, _HEIGHT, _BITS, _CHANNELS = 0x0100, 0x0101, 0x0102, 0x0115
_OFFSETS, _COUNTS = (0x0111, 0x0144), (0x0117, 0x0145)
"""Of strips and of tiles."""
_SIZES = {1: "B", 3: "H", 4: "I"}
"""BYTE, SHORT and LONG, the types of whole numbers in TIFF 6.0."""
MOST_ENTRIES = 512
MOST_VALUES = 2**16


def orientation_of(data: bytes) -> int:
    """1 (upright) to 8, by EXIF, of a JPEG, PNG, WebP or TIFF; 1 where it says none or what it says is broken."""
    said = _tags(_exif(data)).get(ORIENTATION, (UPRIGHT,))[:1]
    return said[0] if said and 1 <= said[0] <= 8 else UPRIGHT


def upright(image: Array, orientation: int) -> Array:
    """The picture as a viewer shows it. `image`: shape (height, width, ...), as stored."""
    if orientation >= 5:
        image = image.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        image = image[:, ::-1]
    if orientation in (3, 4, 7, 8):
        image = image[::-1]
    return np.ascontiguousarray(image)


def tiff_header(data: bytes) -> dict[str, int]:
    """Width, height, channels and bits of the first picture. Raises UnreadableInput where it is not whole."""
    tags = _tags(data)
    if not all(tags.get(t) for t in (_WIDTH, _HEIGHT)) or not any(tags.get(t) for t in _OFFSETS):
        raise UnreadableInput("the TIFF has no whole directory of tags")
    for at, size in zip(_OFFSETS, _COUNTS, strict=True):
        ends = [a + n for a, n in zip(tags.get(at, ()), tags.get(size, ()), strict=False)]
        if ends and max(ends) > len(data):
            raise UnreadableInput(f"the TIFF ends early: it has {len(data):,} bytes and its pixels need {max(ends):,}")
    return {"width": tags[_WIDTH][0], "height": tags[_HEIGHT][0], "channels": (tags.get(_CHANNELS) or (1,))[0],
            "bits": (tags.get(_BITS) or (1,))[0]}


def _exif(data: bytes) -> bytes:
    """The TIFF that holds the tags, b"" where there is none."""
    if data[:4] in (b"II*\0", b"MM\0*"):
        return data
    if data.startswith(b"\xff\xd8"):
        return _in_jpeg(data)
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _chunk(data, 8, b"eXIf", ">", 4)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _chunk(data, 12, b"EXIF", "<", 0).removeprefix(b"Exif\0\0")
    return b""


def _in_jpeg(data: bytes) -> bytes:
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] not in (0xD9, 0xDA):  # pixels follow 0xDA
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == 0xE1 and data[at + 4 : at + 10] == b"Exif\0\0":
            return data[at + 10 : at + 2 + size]
        at += 2 + max(2, size)
    return b""


def _chunk(data: bytes, at: int, wanted: bytes, order: str, behind: int) -> bytes:
    """The chunk of that name: of a PNG the length comes first and a checksum last, of RIFF the name, padded to even."""
    while at + 8 <= len(data):
        if order == ">":
            size, name = struct.unpack(">I4s", data[at : at + 8])
        else:
            name, size = struct.unpack("<4sI", data[at : at + 8])
        if name == wanted:
            return data[at + 8 : at + 8 + size]
        at += 8 + size + behind + (size % 2 if order == "<" else 0)
    return b""


def _tags(data: bytes) -> Mapping[int, tuple[int, ...]]:
    """The tags of whole numbers of the first directory of a TIFF; those that lead out of it are left out."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
    if order is None or len(data) < 10:
        return {}
    first = struct.unpack(f"{order}I", data[4:8])[0]
    count = int.from_bytes(data[first : first + 2], "little" if order == "<" else "big")
    found: dict[int, tuple[int, ...]] = {}
    for at in range(first + 2, min(first + 2 + 12 * min(count, MOST_ENTRIES), len(data) - 11), 12):
        tag, kind, many = struct.unpack(f"{order}HHI", data[at : at + 8])
        if kind not in _SIZES or not 0 < many <= MOST_VALUES:
            continue
        form = f"{order}{many}{_SIZES[kind]}"
        size = struct.calcsize(form)
        start = at + 8 if size <= 4 else struct.unpack(f"{order}I", data[at + 8 : at + 12])[0]
        if start + size <= len(data):
            found[tag] = struct.unpack(form, data[start : start + size])
    return found
