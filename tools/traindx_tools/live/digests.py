"""Digests of what a process computes, in order, in a bounded file of their own: for two runs that should be equal.

`digests-rankNNNNN.jsonl`: first what the process runs in, then one list an event: step, kind, name, digest, more.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from traindx_tools.live.notice import say

MARK = "digests"
FILE_BOUND = 256 * 2**20
"""Bytes of one file; at about 60 an event that is four million events."""
STEPS = 100
"""Steps that are recorded where nothing else is asked for: runs that part do so early, or grow slowly apart."""
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG", "CUDA_VISIBLE_DEVICES",
              "NVIDIA_TF32_OVERRIDE", "XLA_FLAGS")  # fmt: skip


def digest(data: bytes | memoryview, size: int = 8) -> str:
    """BLAKE2b of the bytes, so many bytes long, in hexadecimal."""
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def of_value(value: object) -> str:
    """Of a plain value by its text."""
    return digest(repr(value).encode("utf-8", "surrogatepass"))


def python_state() -> dict[str, str]:
    """Digests of the random states of Python and, where it is imported, NumPy; neither is moved."""
    found = {"python": of_value(random.getstate())}
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        kind, keys, *rest = numpy.random.get_state(legacy=True)
        found["numpy"] = digest(keys.tobytes() + repr((kind, *rest)).encode())
    return found


class DigestFile:
    """Writes events; what cannot be written switches it off, with one line."""

    def __init__(self, folder: Path, rank: int, more: Mapping[str, Any]) -> None:
        self._left = FILE_BOUND
        self._file: TextIO | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / f"digests-rank{rank:05d}.jsonl").open("x", encoding="utf-8")
        except OSError as error:
            say(f"digests are not recorded: {error.strerror}: {error.filename}")
        start = {"traindx": MARK, "python": platform.python_version(), "machine": platform.machine(),
                 "cores": os.cpu_count(), **{v: os.environ.get(v) for v in _VARIABLES}, **more}
        self._write(json.dumps(start))

    def event(self, step: int, kind: str, name: str, value: str, more: Any = None) -> None:
        """One event; `more`: digests of the rows, or of the inputs."""
        self._write(json.dumps([step, kind, name, value] if more is None else [step, kind, name, value, more]))

    def flush(self) -> None:
        """A kill loses nothing of what was written before."""
        if self._file is not None:
            self._file.flush()

    def _write(self, line: str) -> None:
        self._left -= len(line) + 1
        if self._file is None or self._left < 0:
            return
        try:
            self._file.write(line + "\n")
        except (OSError, ValueError) as error:
            say(f"digests are recorded no longer: {error}")
            self._file = None
