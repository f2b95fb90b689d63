"""Sizes from the headers of picture files, and whether they end as their format ends. Nothing is decoded."""

from __future__ import annotations

import struct

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.readers.orientation import tiff_header


def picture_header(data: bytes) -> dict[str, int]:
    """Width and height in pixels, channels, and bits of each. `data`: the whole file.

    Raises UnreadableInput where it is not whole.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 33:
        return _png(data)
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 13:
        width, height = struct.unpack("<HH", data[6:10])
        return {"width": width, "height": height, "channels": 3, "bits": 8}
    if data.startswith(b"BM") and len(data) >= 30:
        width, height = struct.unpack("<ii", data[18:26])
        channels = max(1, struct.unpack("<H", data[28:30])[0] // 8)
        return {"width": width, "height": abs(height), "channels": channels, "bits": 8}
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return {"width": 0, "height": 0, "channels": 3, "bits": 8}
    if data[:4] in (b"II*\0", b"MM\0*"):
        return tiff_header(data)
    raise UnreadableInput("it is no picture of a known format" if data else "it is empty")


def _png(data: bytes) -> dict[str, int]:
    width, height, bits, colour = struct.unpack(">IIBB", data[16:26])
    if b"IEND" not in data[-16:]:
        raise UnreadableInput("the PNG ends early, without IEND")
    channels = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}.get(colour, 0)
    return {"width": width, "height": height, "channels": channels, "bits": bits}


def _jpeg(data: bytes) -> dict[str, int]:
    if b"\xff\xd9" not in data[-64:]:
        raise UnreadableInput("the JPEG ends early, without its end mark")
    at = 2
    while at + 9 < len(data):
        if data[at] != 0xFF:
            break
        mark = data[at + 1]
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width, channels = struct.unpack(">HHB", data[at + 5 : at + 10])
            return {"width": width, "height": height, "channels": channels, "bits": data[at + 4]}
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise UnreadableInput("the JPEG has no frame header")
