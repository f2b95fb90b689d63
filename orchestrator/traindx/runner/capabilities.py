"""Root without root's powers: what a training program needs of them is to read and to write files."""

from __future__ import annotations

import ctypes
import os
import struct

_KEPT = (1, 2, 10, 14)
"""DAC_OVERRIDE, DAC_READ_SEARCH, NET_BIND_SERVICE, IPC_LOCK (pinned memory)."""
_DROP_FROM_BOUNDING_SET = 24
_VERSION_3 = 0x20080522


def drop() -> None:
    """Give up every other capability, for this process and all that it starts."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(64):
        if number not in _KEPT:
            libc.prctl(_DROP_FROM_BOUNDING_SET, number, 0, 0, 0)
    kept = sum(1 << number for number in _KEPT)
    header = struct.pack("=Ii", _VERSION_3, 0)
    now = ctypes.create_string_buffer(24)
    if libc.capget(header, now) != 0:
        return
    effective, permitted, inheritable, *_ = struct.unpack("=6I", now.raw)
    libc.capset(header, struct.pack("=6I", effective & kept, permitted & kept, inheritable & kept, 0, 0, 0))
