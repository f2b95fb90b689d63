"""A session in a notebook's cell, without `await`: the kernel's own event loop runs there, so another thread takes one.

A cell waits for its call anyway. Anywhere else a coroutine that calls the blocking form would hold up its loop for
minutes: there it is refused (`session.py`).
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

POLL_SECONDS = 0.2
"""How often the waiting thread looks for Ctrl-C (a notebook's "interrupt")."""
T = TypeVar("T")


def in_a_notebook() -> bool:
    """Whether an IPython kernel runs this."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which runs in a thread with what is displayed going to this cell.

    An interrupt cancels it, and is raised with the words of the cancellation.
    """
    done: Future[T] = Future()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def noted() -> T:
        task = asyncio.current_task()
        assert task is not None, "asyncio.run makes one"
        running.append((asyncio.get_running_loop(), task))
        return await work

    def run() -> None:
        try:
            done.set_result(asyncio.run(noted()))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            done.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
        return done.result()
    except KeyboardInterrupt as pressed:
        for loop, task in running:
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        ended = done.exception()
        told = ended.args if isinstance(ended, asyncio.CancelledError) else pressed.args
        raise KeyboardInterrupt(*told) from None
