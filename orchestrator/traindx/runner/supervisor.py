"""Answers the calls that the filter cannot judge: those that depend on a path, an address or a process.

What is allowed is done here, on what was read once, and never handed back to be done: between a look and the deed the
command could exchange a path, an address or a descriptor. Calls whose object cannot be exchanged (a process below this
one) go on. Linux 5.6 or newer; seccomp_unotify(2) tells why.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Callable, Mapping

from traindx.runner import addresses
from traindx.runner.plan import Plan
from traindx.runner.processes import below, is_below, leader_of
from traindx.runner.syscalls import Machine, names

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_IS_VALID = 0x40082102
_IS_VALID_BEFORE_5_17 = 0x80082102
_CONTINUE = 1
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_PATH_AT_MOST = 4096
_NOW, _OMIT = 0x3FFFFFFF, 0x3FFFFFFE
_SECOND = 1_000_000_000
_MODE = 0o777

Arguments = tuple[int, ...]


class Refused(OSError):
    """The call fails with this error."""


def refused(error: int) -> Refused:
    """An error as the command shall see it."""
    return Refused(error, os.strerror(error))


class Supervisor:
    """Serves one listener until no process is left on its other side."""

    def __init__(self, listener: int, on: Machine, plan: Plan) -> None:
        self.listener = listener
        self.plan = plan
        self.top = os.getpid()
        self.names = names(on)
        self.libc = ctypes.CDLL(None, use_errno=True)

    def serve_one(self) -> None:
        """Answer one call. What makes its caller vanish meanwhile is no error."""
        data = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, data, True)
        except OSError:
            return
        ident, task, _, called, _, _, *arguments = _NOTIFICATION.unpack(data)
        name = self.names.get(called, "")
        if name == "connect":  # it may wait for the other side: the rest is not to wait for it
            import threading

            threading.Thread(target=self._answer, args=(ident, task, name, tuple(arguments)), daemon=True).start()
        else:
            self._answer(ident, task, name, tuple(arguments))

    def _answer(self, ident: int, task: int, name: str, arguments: Arguments) -> None:
        error, flags = 0, 0
        try:
            if name in _ON_PROCESSES:
                flags = _CONTINUE if _ON_PROCESSES[name](self, arguments) else 0
                error = 0 if flags else errno.EPERM
            else:
                _CALLS[name](self, Caller(self, ident, task), arguments)
        except (OSError, ValueError, KeyError) as failed:
            error = getattr(failed, "errno", None) or errno.EPERM
        try:
            fcntl.ioctl(self.listener, _SEND, bytearray(_RESPONSE.pack(ident, 0, -error, flags)), True)
        except OSError:
            return

    def valid(self, ident: int) -> bool:
        """True while the caller waits: its number belongs to it and to nobody else."""
        for request in (_IS_VALID, _IS_VALID_BEFORE_5_17):
            try:
                fcntl.ioctl(self.listener, request, struct.pack("=Q", ident))
                return True
            except OSError as failed:
                if failed.errno == errno.ENOENT:
                    return False
        return False

    def connect(self, caller: Caller, arguments: Arguments) -> None:
        """Connect the caller's socket: to its own run's sockets and to the network, to nobody else on this machine."""
        socket = caller.socket(arguments[0])
        try:
            address = caller.memory(arguments[1], min(arguments[2] & 0xFFFFFFFF, 128))
            caller.still_there()
            if address[:2] == addresses.UNIX:
                address = self._own_socket(caller, address)
            elif addresses.types_for_the_person(address):
                raise refused(errno.EACCES)
            if self.libc.connect(socket, address, len(address)) != 0:
                raise refused(ctypes.get_errno())
        finally:
            os.close(socket)

    def _own_socket(self, caller: Caller, address: bytes) -> bytes:
        """The address of a socket file of this run, by a descriptor that nobody can exchange."""
        path = address[2:].split(b"\0")[0]
        if not path:
            raise refused(errno.EACCES)
        file = caller.open_path(_AT_FDCWD, os.fsdecode(path))
        caller.kept.append(file)
        if not stat.S_ISSOCK(os.fstat(file).st_mode) or not self.plan.writable(where(file)):
            raise refused(errno.EACCES)
        return addresses.UNIX + f"/proc/self/fd/{file}".encode() + b"\0"

    def change(self, file: int, how: Callable[[str], None]) -> None:
        """Change a file that lies where the command may write, and has no other name elsewhere."""
        try:
            about = os.fstat(file)
            if not self.plan.writable(where(file)):
                raise refused(errno.EPERM)
            if stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
                raise refused(errno.EPERM)
            if not stat.S_ISLNK(about.st_mode):
                how(f"/proc/self/fd/{file}")
        finally:
            os.close(file)

    def is_own(self, process: int) -> bool:
        """A process or thread of this run."""
        return process > 0 and is_below(process, self.top)

    def own_group(self, group: int) -> bool:
        """A process group of this run; groups never reach over sessions, and the run has sessions of its own."""
        return group in below(self.top).values()


class Caller:
    """The thread that made a call, and what its arguments point to."""

    def __init__(self, supervisor: Supervisor, ident: int, task: int) -> None:
        self.supervisor, self.ident, self.task = supervisor, ident, task
        self.kept: list[int] = []

    def __del__(self) -> None:
        for file in self.kept:
            os.close(file)

    def still_there(self) -> None:
        """Raises Refused where the number may be another process's by now."""
        if not self.supervisor.valid(self.ident):
            raise refused(errno.ESRCH)

    def memory(self, at: int, size: int) -> bytes:
        """Bytes of the caller's memory."""
        file = os.open(f"/proc/{self.task}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = os.pread(file, size, at)
        except OverflowError:
            raise refused(errno.EFAULT) from None
        finally:
            os.close(file)
        self.still_there()
        return found

    def text(self, at: int) -> str:
        """A path. Read in pieces that do not cross a page, for the next one may not be there."""
        found = b""
        while len(found) < _PATH_AT_MOST:
            piece = self.memory(at, 256 - at % 256)
            if not piece:
                raise refused(errno.EFAULT)
            found += piece.split(b"\0")[0]
            if b"\0" in piece:
                return os.fsdecode(found)
            at += len(piece)
        raise refused(errno.ENAMETOOLONG)

    def socket(self, number: int) -> int:
        """A descriptor of the caller's socket."""
        process = os.pidfd_open(leader_of(self.task))
        try:
            self.still_there()
            got = int(self.supervisor.libc.syscall(438, process, number & 0x7FFFFFFF, 0))
            if got < 0:
                raise refused(ctypes.get_errno())
            return got
        finally:
            os.close(process)

    def open_path(self, folder: int, path: str, follow: bool = True) -> int:
        """The file that the caller means, opened to be pointed at only. `folder`: as openat(2) takes it."""
        if not path:
            raise refused(errno.ENOENT)
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        base = self.descriptor(folder) if folder != _AT_FDCWD else os.open(
            f"/proc/{self.task}/cwd", os.O_PATH | os.O_CLOEXEC)
        try:
            self.still_there()
            return os.open(path, flags, dir_fd=base)
        finally:
            os.close(base)

    def descriptor(self, number: int) -> int:
        """The file behind one of the caller's descriptors, opened to be pointed at only."""
        file = os.open(f"/proc/{self.task}/fd/{number & 0x7FFFFFFF}", os.O_PATH | os.O_CLOEXEC)
        try:
            self.still_there()
        except OSError:
            os.close(file)
            raise
        return file

    def file(self, folder: int, path_at: int, flags: int = 0) -> int:
        """The file of a call that takes a folder and a path, or no path and the file itself."""
        follow = not flags & _AT_SYMLINK_NOFOLLOW
        signed = _signed(folder)
        if path_at == 0:
            return self.descriptor(signed)
        path = self.text(path_at)
        return self.open_path(signed, path, follow) if path else self.descriptor(signed)


def where(file: int) -> str:
    """The real path of an open file."""
    return os.readlink(f"/proc/self/fd/{file}")


def _signed(value: int) -> int:
    return struct.unpack("=i", struct.pack("=I", value & 0xFFFFFFFF))[0]  # type: ignore[no-any-return]


def _chmod(supervisor: Supervisor, file: int, mode: int) -> None:
    supervisor.change(file, lambda path: os.chmod(path, mode & _MODE))


def _set_times(supervisor: Supervisor, file: int, given: tuple[tuple[int, int], tuple[int, int]] | None) -> None:
    """`given`: seconds and nanoseconds of access and change; None for now."""
    about, now = os.fstat(file), time.time_ns()

    def stamp(pair: tuple[int, int], old: int) -> int:
        return {_NOW: now, _OMIT: old}.get(pair[1], pair[0] * _SECOND + pair[1])

    times = (now, now) if given is None else (stamp(given[0], about.st_atime_ns), stamp(given[1], about.st_mtime_ns))
    supervisor.change(file, lambda path: os.utime(path, ns=times))


def _pairs(caller: Caller, at: int, scale: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
    if at == 0:
        return None
    a, b, c, d = struct.unpack("=4q", caller.memory(at, 32))
    return (a, b * scale), (c, d * scale)


def _utime(supervisor: Supervisor, caller: Caller, a: Arguments) -> None:
    given = None if a[1] == 0 else struct.unpack("=2q", caller.memory(a[1], 16))
    times = None if given is None else ((given[0], 0), (given[1], 0))
    _set_times(supervisor, caller.file(_AT_FDCWD, a[0]), times)


def _truncate(supervisor: Supervisor, caller: Caller, a: Arguments) -> None:
    supervisor.change(caller.file(_AT_FDCWD, a[0]), lambda path: os.truncate(path, a[1]))


_CALLS: Mapping[str, Callable[[Supervisor, Caller, Arguments], None]] = {
    "connect": Supervisor.connect,
    "chmod": lambda s, c, a: _chmod(s, c.file(_AT_FDCWD, a[0]), a[1]),
    "fchmod": lambda s, c, a: _chmod(s, c.descriptor(a[0]), a[1]),
    "fchmodat": lambda s, c, a: _chmod(s, c.file(a[0], a[1]), a[2]),
    "utime": _utime,
    "utimes": lambda s, c, a: _set_times(s, c.file(_AT_FDCWD, a[0]), _pairs(c, a[1], 1000)),
    "futimesat": lambda s, c, a: _set_times(s, c.file(a[0], a[1]), _pairs(c, a[2], 1000)),
    "utimensat": lambda s, c, a: _set_times(s, c.file(a[0], a[1], a[3]), _pairs(c, a[2], 1)),
    "truncate": _truncate,
}


def _kill(supervisor: Supervisor, a: Arguments) -> bool:
    target = _signed(a[0])
    return target == 0 or supervisor.is_own(target) or (target < -1 and supervisor.own_group(-target))


def _process(at: int) -> Callable[[Supervisor, Arguments], bool]:
    return lambda s, a: s.is_own(_signed(a[at]))


def _priority(supervisor: Supervisor, a: Arguments, group: int) -> bool:
    return supervisor.own_group(a[1]) if a[0] == group else supervisor.is_own(_signed(a[1]))


_ON_PROCESSES: Mapping[str, Callable[[Supervisor, Arguments], bool]] = {
    "kill": _kill, "tkill": _process(0), "tgkill": _process(0), "rt_sigqueueinfo": _process(0),
    "rt_tgsigqueueinfo": _process(0), "prlimit64": _process(0), "sched_setaffinity": _process(0),
    "sched_setscheduler": _process(0), "sched_setparam": _process(0), "sched_setattr": _process(0),
    "setpriority": lambda s, a: _priority(s, a, 1), "ioprio_set": lambda s, a: _priority(s, a, 2),
}
