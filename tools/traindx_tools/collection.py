"""What millions of objects cost Python's collector of cycles, and how they are spared it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Without cyclic garbage collection: nothing becomes garbage here, and walking millions of nodes costs a third."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def keep_to_the_end(value: object) -> None:
    """Leave a value to the end of the process: taking millions of nodes apart one by one costs a fifth of an audit."""
    kept: list[object] = [value]
    kept.append(kept)
    gc.freeze()  # no collection looks at it any more, the last one included
