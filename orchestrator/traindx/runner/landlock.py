"""Landlock by system calls: what may be written, and what signals and abstract sockets reach.

Rights and their numbers: the kernel's documentation, userspace-api/landlock (version 1 with Linux 5.13, 2 with 5.19,
3 with 6.2, 5 with 6.10, 6 with 6.12).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

from traindx.runner.plan import CannotProtect

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same numbers on every architecture that has them."""
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG = 1 << 1, 1 << 4, 1 << 5, 1 << 7, 1 << 8
MAKE_SOCK, MAKE_FIFO, MAKE_SYM = 1 << 9, 1 << 10, 1 << 12
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_SINCE = ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV))

FILE = WRITE_FILE | TRUNCATE
DEVICE = FILE | IOCTL_DEV
SHARED = FILE | MAKE_REG | MAKE_DIR | REMOVE_FILE | REMOVE_DIR
"""No links and nothing moved in from elsewhere: a path that a file tool was allowed to write stays that path."""
FULL = SHARED | MAKE_SYM | MAKE_SOCK | MAKE_FIFO | REFER

SCOPES_SINCE = 6
_SCOPES = 3
"""Abstract sockets and signals stay among the command's own processes."""
TRUNCATE_SINCE = 3

Rule = tuple[str, int]
"""A folder or file, and its rights."""


def version() -> int:
    """The version of Landlock that this kernel has; 0 for none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))


def restrict(rules: Iterable[Rule], known: int) -> None:
    """From here on this process and its children write only what the rules say. `known`: `version()`.

    Raises CannotProtect.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handled = WRITE_FILE | _MAKE_AND_REMOVE | sum(right for since, right in _SINCE if known >= since)
    words = (handled, 0, _SCOPES) if known >= SCOPES_SINCE else (handled,)
    attributes = struct.pack(f"={len(words)}Q", *words)
    ruleset = _call(libc, _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    for path, rights in rules:
        at = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        _call(libc, _ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights & handled, at), 0)
        os.close(at)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise CannotProtect(f"no_new_privs: {os.strerror(ctypes.get_errno())}")
    _call(libc, _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _call(libc: ctypes.CDLL, number: int, *arguments: object) -> int:
    done = int(libc.syscall(number, *arguments))
    if done < 0:
        raise CannotProtect(f"Landlock: {os.strerror(ctypes.get_errno())}")
    return done
