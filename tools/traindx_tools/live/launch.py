"""Starts a command, hands signals on to it and waits for its end; its exit code is the command's own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT")
"""A terminal sends SIGINT to the whole foreground group by itself, so that one is only waited out."""
POLL_SECONDS = 0.1
NOT_FOUND, NOT_STARTED = 127, 126


def launch(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs the command in the foreground. Returns its exit code, 128 + N where signal N ended it."""
    try:
        child = subprocess.Popen(list(command), env=dict(environment))
    except OSError as error:
        return _refused(error)
    with _forwarding(child):
        return _code(child.wait())


def launch_until(command: Sequence[str], environment: Mapping[str, str], output: Path, enough: Callable[[], bool],
                 seconds: float, grace: float = 5.0) -> int | None:
    """Runs the command with its output in a file until it ends, until `enough()`, or for so many seconds.

    Returns its exit code, None where it was ended from here.
    """
    try:
        with output.open("wb") as out:
            child = subprocess.Popen(list(command), env=dict(environment), stdout=out, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        return _refused(error)
    deadline = time.monotonic() + seconds
    with _forwarding(child):
        while child.poll() is None:
            if time.monotonic() > deadline or enough():
                end_group(child, grace)
                return None
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(POLL_SECONDS)
    return _code(child.returncode)


def end_group(child: subprocess.Popen[bytes], grace: float) -> None:
    """Ends the command and what it started: first politely, then not."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace)
            if sign == signal.SIGKILL:
                return


def _refused(error: OSError) -> int:
    from traindx_tools.live.notice import say

    say(f"the command cannot be started: {error.strerror}: {error.filename}")
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED


def _code(returned: int) -> int:
    return returned if returned >= 0 else 128 - returned


@contextlib.contextmanager
def _forwarding(child: subprocess.Popen[Any]) -> Iterator[None]:
    def hand_on(number: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    before: dict[int, Any] = {}
    try:
        for name in FORWARDED:
            number = getattr(signal, name, None)
            if number is not None:
                before[number] = signal.signal(number, hand_on)
        before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    except ValueError:  # not the main thread: signals are somebody else's
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
