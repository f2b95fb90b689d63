"""Ctrl-C and cancelling, where a session is awaited: it ends soon, says what stands, and goes on upwards.

`asyncio.run` makes a cancellation of the first Ctrl-C. IPython and loops of a program's own do not: there it would be
raised wherever the loop happens to be, and the session would stay half awake until the loop runs again. Meanwhile the
handler here cancels the session's task in its place; a second Ctrl-C is Python's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from traindx.changed_files import changed_files
from traindx.notices import Hear, Notice, in_a_script, nobody
from traindx.session_folder import SessionFolder, read_session
from traindx.standing import stands_changed
from traindx.stopping import ASKED
from traindx.typed_commands import workspace_option
from traindx_tools.errors import TraindxError

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def leaving(folder: SessionFolder, hear: Hear) -> Iterator[None]:
    """While a session is driven: where it is interrupted or cancelled, it says so, with what stands and the way back.

    Raises KeyboardInterrupt or CancelledError, whichever came, with these words.
    """
    asked, pressed = threading.Event(), threading.Event()
    token = ASKED.set(asked)
    try:
        with _ctrl_c_cancels(pressed):
            yield
    except (KeyboardInterrupt, asyncio.CancelledError) as left:
        asked.set()
        told = left_words(folder, anywhere=True)
        hear(Notice("left", text=told))
        if hear in (nobody, in_a_script):
            _log.warning("%s", told)
        raise (KeyboardInterrupt if pressed.is_set() or isinstance(left, KeyboardInterrupt)
               else asyncio.CancelledError)(told) from left
    finally:
        ASKED.reset(token)


def left_words(folder: SessionFolder, *, anywhere: bool = False) -> str:
    """What stands of a session that was left, and the commands that go on or go back, from here or from anywhere."""
    name = folder.path.name
    where = f" --workspace {shlex.quote(str(folder.workspace.resolve()))}" if anywhere else workspace_option(
        folder.workspace)
    try:
        stands = changed_files(read_session(folder))
    except (TraindxError, OSError):
        stands = ()
    said = [f"session {name} is kept as it stands"]
    said += [stands_changed(stands)] if stands else ["no file of yours was changed by it"]
    said += [f"to go on: traindx resume {name}{where}"]
    said += [f"to take the change back, which is no strike: traindx resume {name} --undo{where}"] if stands else []
    return "; ".join(said)


@contextlib.contextmanager
def _ctrl_c_cancels(pressed: threading.Event) -> Iterator[None]:
    """Where Ctrl-C would be raised just anywhere in the loop, it cancels the task that awaits the session."""
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel(number: int, frame: FrameType | None) -> None:
        if pressed.is_set() or task is None:
            signal.default_int_handler(number, frame)
        pressed.set()
        loop.call_soon_threadsafe(task.cancel)

    signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
