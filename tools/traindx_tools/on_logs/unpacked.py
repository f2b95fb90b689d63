"""A packed stream that ends: after a number of bytes, or where it is damaged, with all that came before."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import BinaryIO


class Bounded(io.RawIOBase):
    """Ends a stream after a number of bytes; a damaged end of a gzip stream is its end."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile, limit: int) -> None:
        self._stream, self._left = stream, limit
        self.cut = False
        self.damaged = ""
        """Why a packed stream ended before its end."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        want = self._left if size < 0 else min(size, self._left)
        self.cut = self.cut or (want == 0 and size != 0)
        data = self._unpacked(want) if isinstance(self._stream, gzip.GzipFile) else self._stream.read(want)
        self._left -= len(data)
        return data

    def _unpacked(self, want: int) -> bytes:
        """Piece by piece: a read of many bytes at once loses those before the damage."""
        assert isinstance(self._stream, gzip.GzipFile), "a gzip stream"
        pieces: list[bytes] = []
        try:
            while want and (piece := self._stream.read1(want)):
                pieces.append(piece)
                want -= len(piece)
        except (EOFError, zlib.error) as broken:
            self.damaged = f"damaged gzip stream: {broken}"
        return b"".join(pieces)

    def close(self) -> None:
        self._stream.close()
        super().close()
