"""The seccomp filter: a program of the kernel's packet filter, built from the table of calls.

A call passes, fails, or is asked of the supervisor. The filter sees numbers and not what they point to; so whatever
depends on a path, an address or a process is asked.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from typing import NamedTuple

from traindx.runner import syscalls
from traindx.runner.plan import CannotProtect
from traindx.runner.syscalls import Machine, number

_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ASK, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000
_UNIX, _DATAGRAM, _TYPE_MASK = 1, 2, 0xF
_SOCKETS = ("socket", "socketpair")
_OF_A_USER = {"setpriority": 2, "ioprio_set": 3}
"""The first argument that means: all processes of a user."""

_IOCTLS_REFUSED = (
    0x5412, 0x541C,  # TIOCSTI, TIOCLINUX: typing into a terminal
    0x40086602, 0x40046602, 0x40087602,  # FS_IOC_SETFLAGS, FS_IOC_SETVERSION: work on a file that is open to be read
    0x401C5820, 0x40806685, 0x800C6613,  # FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY
    0xC0045877, 0xC0045878, 0x8901, 0x8902)  # FIFREEZE, FITHAW, FIOSETOWN, SIOCSPGRP
_BTRFS, _CLONES = 0x94, (0x40049409, 0x4020940D)
"""Calls of btrfs make and remove snapshots through a folder that is open to be read; FICLONE needs an open for
writing."""
_FCNTL_OWNER = (8, 10, 15)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX: signals to whoever is named."""

Instruction = tuple[int, int, int, int]


class Wanted(NamedTuple):
    """What the filter has to hold beside the table."""

    supervised: bool
    """Somebody answers; else what would be asked fails."""
    connects: bool
    """The one who answers can connect a socket in the caller's place; else no local socket is made at all."""
    signals: bool
    """The kernel does not scope signals."""
    truncate: bool
    """Landlock does not know truncation."""
    links: bool
    """Landlock does not hold links."""


def program(on: Machine, wanted: Wanted) -> list[Instruction]:
    """The filter."""
    ask = _ASK if wanted.supervised else _fail(errno.EPERM)
    made: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, on.audit), (_RETURN, 0, 0, _fail(errno.ENOSYS)),
        (_LOAD, 0, 0, _NUMBER_AT)]
    if on.column == 0:
        made += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _fail(errno.ENOSYS))]
    plain = {**dict.fromkeys(syscalls.REFUSED, _fail(errno.EPERM)),
             **dict.fromkeys(syscalls.MISSING, _fail(errno.ENOSYS)),
             **dict.fromkeys(syscalls.UNSUPPORTED, _fail(errno.EOPNOTSUPP)), **dict.fromkeys(syscalls.ATTRIBUTES, ask)}
    if wanted.connects:
        plain["connect"] = _ASK
    if wanted.truncate:
        plain |= {"truncate": ask, "openat2": _fail(errno.ENOSYS)}
    if wanted.links:
        plain |= dict.fromkeys(syscalls.LINKS, _fail(errno.EPERM))
    if wanted.signals:
        plain |= {**dict.fromkeys(syscalls.SIGNALS, ask), "pidfd_send_signal": _fail(errno.ENOSYS)}
    for name, answer in plain.items():
        made += _on(on, name, [(_RETURN, 0, 0, answer)])
    for name, at in syscalls.ON_A_PROCESS.items():
        of_a_user = (_OF_A_USER[name],) if name in _OF_A_USER else ()
        made += _on(on, name, [*_if_argument(0, of_a_user, _fail(errno.EPERM)), *_if_argument(at, (0,), _ALLOW),
                               (_RETURN, 0, 0, ask)])
    for name, at in syscalls.OWNERS.items():
        made += _on(on, name, _owner_stays(at))
    for name in _SOCKETS:
        made += _on(on, name, _no_datagrams(wanted.connects or name == "socketpair"))
    for name, at in syscalls.FOLDERS.items():
        made += _on(on, name, [_argument(at), (_AND, 0, 0, stat.S_ISVTX), (_EQUAL, 1, 0, 0),
                               (_RETURN, 0, 0, _fail(errno.EPERM)), (_RETURN, 0, 0, _ALLOW)])
    if wanted.truncate:
        for name, at in (("open", 1), ("openat", 2)):
            made += _on(on, name, _no_truncation_of_what_is_read(at))
    made += _on(on, "ioctl", _ioctls())
    if wanted.signals:
        made += _on(on, "fcntl", [*_if_argument(1, _FCNTL_OWNER, _fail(errno.EPERM)), (_RETURN, 0, 0, _ALLOW)])
    made += _on(on, syscalls.MARK, [*_if_argument(0, (syscalls.MARK_ARGUMENT,), _fail(syscalls.MARK_ERROR)),
                                    (_RETURN, 0, 0, _ALLOW)])
    return [*made, (_RETURN, 0, 0, _ALLOW)]


def _fail(error: int) -> int:
    return _ERRNO | error


def _on(on: Machine, name: str, then: list[Instruction]) -> list[Instruction]:
    """These instructions, which end with an answer, where the call has this number."""
    at = number(name, on)
    return [] if at is None else [(_EQUAL, 0, len(then), at), *then]


def _argument(at: int) -> Instruction:
    """The low half of an argument: flags, kinds and process numbers have no more."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * at)


def _if_argument(at: int, values: tuple[int, ...], answer: int) -> list[Instruction]:
    made = [_argument(at)]
    for value in values:
        made += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, answer)]
    return made


def _owner_stays(at: int) -> list[Instruction]:
    """To give a file to whom it belongs already, or to leave it, succeeds and does nothing; anything else fails."""
    nobody = 0xFFFFFFFF
    refuse = (_RETURN, 0, 0, _fail(errno.EPERM))
    made: list[Instruction] = []
    for argument, own in ((at, os.getuid()), (at + 1, os.getgid())):
        made += [_argument(argument), (_EQUAL, 2, 0, own), (_EQUAL, 1, 0, nobody), refuse]
    return [*made, (_RETURN, 0, 0, _fail(0))]


def _no_datagrams(streams: bool) -> list[Instruction]:
    """A local datagram socket sends to any address without connecting. Where nobody connects for it, none is made."""
    refuse, allow = (_RETURN, 0, 0, _fail(errno.EACCES)), (_RETURN, 0, 0, _ALLOW)
    head = [_argument(0), (_EQUAL, 1, 0, _UNIX), allow]
    if not streams:
        return [*head, refuse]
    return [*head, _argument(1), (_AND, 0, 0, _TYPE_MASK), (_EQUAL, 0, 1, _DATAGRAM), refuse, allow]


def _no_truncation_of_what_is_read(at: int) -> list[Instruction]:
    """O_TRUNC with O_RDONLY empties a file that is not open for writing."""
    return [_argument(at), (_AND, 0, 0, os.O_TRUNC | os.O_ACCMODE), (_EQUAL, 0, 1, os.O_TRUNC),
            (_RETURN, 0, 0, _fail(errno.EPERM)), (_RETURN, 0, 0, _ALLOW)]


def _ioctls() -> list[Instruction]:
    made = _if_argument(1, _IOCTLS_REFUSED, _fail(errno.EPERM))
    for value in _CLONES:
        made += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [*made, (_AND, 0, 0, 0xFF00), (_EQUAL, 0, 1, _BTRFS << 8), (_RETURN, 0, 0, _fail(errno.ENOTTY)),
            (_RETURN, 0, 0, _ALLOW)]


def install(on: Machine, wanted: Wanted) -> int | None:
    """Confine this process; returns the descriptor on which calls are asked, where somebody shall answer.

    Raises CannotProtect.
    """
    instructions = program(on, wanted)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *i) for i in instructions))
    filter_ = struct.pack("@HP", len(instructions), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0:
        raise CannotProtect(f"no_new_privs: {os.strerror(ctypes.get_errno())}")
    done = int(libc.syscall(on.seccomp, _SET_MODE_FILTER, _NEW_LISTENER if wanted.supervised else 0, filter_))
    if done < 0:
        raise CannotProtect(f"seccomp: {os.strerror(ctypes.get_errno())}")
    return done if wanted.supervised else None


def marked() -> bool:
    """True in a process that is below this filter already."""
    if syscalls.machine() is None:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.prctl(syscalls.MARK_ARGUMENT, 0, 0, 0, 0)
    return bool(done < 0 and ctypes.get_errno() == syscalls.MARK_ERROR)
