"""The filter of system calls, read as the kernel reads it: for both architectures, whatever this machine is."""

from __future__ import annotations

import errno
import os
import struct
from typing import Any

import pytest

from traindx.runner import syscalls
from traindx.runner.plan import Plan, plan_from
from traindx.runner.seccomp import Instruction, Wanted, program
from traindx.runner.syscalls import MACHINES, number

ALL = Wanted(supervised=True, connects=True, signals=True, truncate=True, links=True)
NEWEST = Wanted(supervised=True, connects=True, signals=False, truncate=False, links=False)
ALONE = Wanted(supervised=False, connects=False, signals=True, truncate=True, links=False)
ALLOW, ASK, ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000


def answer(filter_: list[Instruction], called: int, *arguments: int, audit: int) -> Any:
    """What the filter says of one call: "allow", "ask" or the error."""
    given = [*(a & 0xFFFFFFFFFFFFFFFF for a in arguments), *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", called, audit, 0, *given)
    register, at = 0, 0
    while True:
        code, yes, no, value = filter_[at]
        at += 1
        if code == 0x20:
            (register,) = struct.unpack_from("=I", data, value)
        elif code == 0x54:
            register &= value
        elif code == 0x06:
            return {ALLOW: "allow", ASK: "ask"}.get(value, value - ERRNO)
        else:
            holds = register == value if code == 0x15 else register >= value
            assert code in (0x15, 0x35)
            at += yes if holds else no


@pytest.fixture(params=sorted(MACHINES))
def on(request: Any) -> syscalls.Machine:
    return MACHINES[request.param]


def asked(on: syscalls.Machine, wanted: Wanted, name: str, *arguments: int) -> Any:
    at = number(name, on)
    return None if at is None else answer(program(on, wanted), at, *arguments, audit=on.audit)


def test_the_program_is_one_that_the_kernel_takes(on: syscalls.Machine) -> None:
    for wanted in (ALL, NEWEST, ALONE):
        made = program(on, wanted)
        assert len(made) < 4096
        for at, (code, yes, no, _) in enumerate(made):
            assert 0 <= yes < 256
            assert 0 <= no < 256
            assert code == 0x06 or at + 1 + max(yes, no) < len(made)


@pytest.mark.parametrize(("name", "arguments", "expected"), [
    ("chmod", (1, 2), "ask"), ("fchmodat", (1, 2, 3), "ask"), ("utimensat", (), "ask"), ("connect", (3,), "ask"),
    ("setxattr", (), errno.EOPNOTSUPP), ("ptrace", (), errno.EPERM), ("io_uring_setup", (), errno.ENOSYS),
    ("fchmodat2", (), errno.ENOSYS), ("mount", (), errno.EPERM), ("clock_settime", (), errno.EPERM),
    ("ioctl", (0, 0x5412), errno.EPERM), ("ioctl", (0, 0xFFFFFFFF00005412), errno.EPERM),
    ("ioctl", (0, 0x5401), "allow"), ("ioctl", (0, 0x40049409), "allow"), ("ioctl", (0, 0x50009401), errno.ENOTTY),
    ("ioctl", (0, 0x40086602), errno.EPERM),
    ("socket", (1, 2), errno.EACCES), ("socket", (1, 2 | 0o2000000), errno.EACCES), ("socket", (1, 1), "allow"),
    ("socket", (2, 2), "allow"), ("socketpair", (1, 2), errno.EACCES), ("socketpair", (1, 1), "allow"),
    ("prlimit64", (0, 1), "allow"), ("prlimit64", (7, 1), "ask"), ("setpriority", (2, 0), errno.EPERM),
    ("setpriority", (0, 0), "allow"), ("setpriority", (0, 9), "ask"), ("ioprio_set", (3, 0), errno.EPERM),
    ("fchownat", (0, 0, -1, -1), 0), ("fchownat", (0, 0, os.getuid(), os.getgid()), 0),
    ("fchown", (0, 77, -1), errno.EPERM),
    ("fchown", (0, -1, 77), errno.EPERM), ("mkdirat", (0, 0, 0o1755), errno.EPERM), ("mkdirat", (0, 0, 0o755), "allow"),
    ("openat", (0, 0, os.O_RDONLY | os.O_TRUNC), "allow"), ("kill", (1, 9), "allow"), ("truncate", (), "allow"),
    ("symlinkat", (), "allow"),
])
def test_on_the_newest_kernel(on: syscalls.Machine, name: str, arguments: tuple[int, ...], expected: Any) -> None:
    found = asked(on, NEWEST, name, *arguments)
    assert found in (None, expected)


@pytest.mark.parametrize(("name", "arguments", "expected"), [
    ("kill", (1, 9), "ask"), ("tgkill", (1, 1, 9), "ask"), ("pidfd_send_signal", (), errno.ENOSYS),
    ("fcntl", (3, 8, 1), errno.EPERM), ("fcntl", (3, 1), "allow"), ("truncate", (), "ask"),
    ("symlinkat", (), errno.EPERM), ("linkat", (), errno.EPERM), ("openat2", (), errno.ENOSYS),
    ("openat", (0, 0, os.O_RDONLY | os.O_TRUNC), errno.EPERM),
    ("openat", (0, 0, os.O_WRONLY | os.O_TRUNC | os.O_CREAT), "allow")])
def test_on_an_old_kernel(on: syscalls.Machine, name: str, arguments: tuple[int, ...], expected: Any) -> None:
    assert asked(on, ALL, name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), [
    ("fchmod", (1, 2), errno.EPERM), ("kill", (1, 9), errno.EPERM), ("socket", (1, 1), errno.EACCES),
    ("socketpair", (1, 1), "allow"), ("connect", (3,), "allow"), ("socket", (2, 1), "allow")])
def test_where_nobody_answers(on: syscalls.Machine, name: str, arguments: tuple[int, ...], expected: Any) -> None:
    assert asked(on, ALONE, name, *arguments) == expected


def test_calls_of_another_architecture_do_not_exist(on: syscalls.Machine) -> None:
    assert answer(program(on, NEWEST), 15, audit=0x40000003) == errno.ENOSYS
    if on.column == 0:
        assert answer(program(on, NEWEST), 0x40000000 + 90, audit=on.audit) == errno.ENOSYS


def test_the_mark_is_the_filters_own(on: syscalls.Machine) -> None:
    at = number(syscalls.MARK, on)
    assert at is not None
    assert answer(program(on, NEWEST), at, syscalls.MARK_ARGUMENT, audit=on.audit) == syscalls.MARK_ERROR
    assert answer(program(on, NEWEST), at, 38, audit=on.audit) == "allow"


@pytest.mark.parametrize(("path", "may"), [
    ("/tmp/x", True), ("/tmp", True), ("/tmp/tmux-0/default", False), ("/tmp/traindx-0/w/cache/x", True),
    ("/tmp/traindx-0/other", False), ("/tmp/work/train.py", False), ("/tmp/work/scratch/debug/x", True),
    ("/tmp/workshop", True), ("/home/x", False)])
def test_the_innermost_folder_says_whether_a_path_may_be_changed(path: str, may: bool) -> None:
    plan = Plan("/tmp/work", ("/tmp", "/tmp/traindx-0/w/cache"), ("/tmp/work/scratch/debug",),
                closed=("/tmp/tmux-0", "/tmp/traindx-0", "/tmp/work"))
    assert plan.writable(path) is may
    assert plan_from(plan.to_json()) == plan
