"""A stream packed with zstandard, read by whichever library is there: Python's own (3.14), pyarrow or zstandard."""

from __future__ import annotations

import importlib
import io
from typing import Any, BinaryIO, cast

MAGIC = b"\x28\xb5\x2f\xfd"
_AT_ONCE = 64 * 1024
"""Bytes asked for at once: of a damaged stream at most so many before the damage are lost."""


def unpacked(stream: BinaryIO) -> BinaryIO:
    """The bytes of a stream. Raises OSError where no library can read it."""
    for name, opened in _LIBRARIES.items():
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return cast(BinaryIO, _Unpacked(opened(module, stream), stream))
    raise OSError("packed with zstandard: `pip install 'traindx[data]'` reads it, or unpack it first (zstd -d)")


_LIBRARIES: dict[str, Any] = {
    "compression.zstd": lambda module, stream: module.ZstdFile(stream),
    "pyarrow": lambda module, stream: module.CompressedInputStream(stream, "zstd"),
    "zstandard": lambda module, stream: module.ZstdDecompressor().stream_reader(stream, read_across_frames=True),
}


class _Unpacked(io.RawIOBase):
    """What could be unpacked; damage behind it is its end, damage at its beginning an OSError."""

    def __init__(self, reader: Any, stream: BinaryIO) -> None:
        self._reader, self._stream, self._any, self._ended = reader, stream, False, False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        found = bytearray()
        while not self._ended and (size < 0 or len(found) < size):
            try:
                part = self._reader.read(_AT_ONCE if size < 0 else min(_AT_ONCE, size - len(found)))
            except Exception as damaged:
                if not self._any:
                    raise OSError(f"damaged zstandard stream: {damaged}") from damaged
                part = b""
            self._ended = not part
            self._any = self._any or bool(part)
            found += part
        return bytes(found)

    def close(self) -> None:
        self._reader.close()
        self._stream.close()
        super().close()
