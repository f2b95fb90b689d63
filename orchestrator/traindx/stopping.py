"""Ends what runs in a thread of a session when the session is left, and a prompt at once: nobody would wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

POLL_SECONDS = 0.2
"""How often a run in a thread looks whether it is to end."""

ASKED: ContextVar[threading.Event | None] = ContextVar("traindx_stop", default=None)
"""Set when the session is to end; `asyncio.to_thread` hands it on to the session's threads."""

T = TypeVar("T")


class Stopped(Exception):
    """What ran in a thread was ended because its session was: nobody reads this."""


def run_here(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` for a thread of a session: ends the work, and raises Stopped, when the session is to end."""
    asked = ASKED.get()
    return asyncio.run(work if asked is None else _heeding(work, asked))


async def _heeding(work: Coroutine[Any, Any, T], asked: threading.Event) -> T:
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait([task], timeout=POLL_SECONDS)
        if asked.is_set() and not task.done():
            task.cancel()
            await asyncio.wait([task])
            raise Stopped
    return task.result()


@contextlib.contextmanager
def ctrl_c_ends_a_prompt() -> Iterator[None]:
    """An event loop only notes Ctrl-C and goes on after the prompt: here it ends the prompt at once."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
