"""How far the reading of a large log is, for who waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LARGE = 32 * 2**20
"""Bytes of a file from which on it is told how far it was read: less takes no second."""
Say = Callable[[str, int, int], None]
_SAY: ContextVar[Say | None] = ContextVar("who is told how far reading is", default=None)


@contextmanager
def told(say: Say) -> Iterator[None]:
    """While it holds, `say` is called with a file's name, the bytes read of it and its size, about once a megabyte."""
    before = _SAY.set(say)
    try:
        yield
    finally:
        _SAY.reset(before)


def tell(name: str, read: int, size: int) -> None:
    """Tells who asked to be told."""
    say = _SAY.get()
    if say is not None and size >= LARGE:
        say(name, min(read, size), size)


def in_words(name: str, read: int, size: int) -> str:
    """`reading train.log: ######---- 61 % of 1.0 GB`, and what follows when it is read."""
    if read >= size:
        return f"judging {name}"
    share = read / size
    bar = "#" * int(10 * share)
    amount = f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
    return f"reading {name}: {bar:-<10} {100 * share:.0f} % of {amount}"
