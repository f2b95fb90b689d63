"""Pictures and sounds by hand, with the properties that headers say and readers drop."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from pathlib import Path

import numpy as np


def exif(orientation: int, order: str = ">") -> bytes:
    """A TIFF of one tag."""
    mark = b"MM" if order == ">" else b"II"
    return struct.pack(f"{order}2sHIHHHIHHI", mark, 42, 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def jpeg(orientation: int | None, side: int = 24) -> bytes:
    """The headers of a JPEG, and no pixels."""
    said = b"Exif\0\0" + exif(orientation) if orientation is not None else b""
    tag = b"\xff\xe1" + struct.pack(">H", len(said) + 2) + said if said else b""
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, side, side, 3) + bytes(9)
    return b"\xff\xd8" + tag + frame + b"\xff\xd9"


def png(orientation: int | None, channels: int = 3, bits: int = 8, seed: int = 0) -> bytes:
    """A picture of noise."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    width = 16 * channels * bits // 8
    noise = np.random.default_rng(seed).integers(0, 256, (16, width)).astype(np.uint8)
    pixels = b"".join(b"\0" + row.tobytes() for row in noise)
    head = struct.pack(">IIBBBBB", 16, 16, bits, {1: 0, 3: 2}[channels], 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + (chunk(b"eXIf", exif(orientation)) if orientation else b"")
            + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


def tiff(orientation: int | None, order: str = "<") -> bytes:
    """A grey picture of 4 x 4."""
    tags = [(0x0100, 4), (0x0101, 4), (0x0102, 8), (0x0111, 0), (0x0115, 1), (0x0117, 16)]
    tags += [(0x0112, orientation)] if orientation else []
    start = 8 + 2 + 12 * len(tags) + 4
    head = struct.pack(f"{order}2sHIH", b"II" if order == "<" else b"MM", 42, 8, len(tags))
    entries = b"".join(struct.pack(f"{order}HHIHH", tag, 3, 1, start if tag == 0x0111 else value, 0)
                       for tag, value in sorted(tags))
    return head + entries + bytes(4) + bytes(range(16))


def sound(rate: int, seconds: float = 0.2, width: int = 2, seed: int = 0) -> bytes:
    """Noise."""
    rng = np.random.default_rng(seed)
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setparams((1, width, rate, 0, "NONE", ""))
        file.writeframes(rng.integers(1, 200, int(rate * seconds) * width).astype(np.uint8).tobytes())
    return made.getvalue()


def folder_of(folder: Path, ending: str, files: dict[str, bytes]) -> Path:
    """Files by their names, which may have folders."""
    for name, data in files.items():
        (folder / f"{name}{ending}").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}{ending}").write_bytes(data)
    return folder
