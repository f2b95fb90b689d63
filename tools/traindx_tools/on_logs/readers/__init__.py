"""One file a format. A format is found by content: the reader that is surest of a source's head reads it."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from traindx_tools.on_logs.readers.reader import Head, Reader, head_of

__all__ = ["Head", "Reader", "head_of", "readers", "sniff"]


@lru_cache(maxsize=1)
def readers() -> tuple[Reader, ...]:
    """Every reader of this room: the modules in it that have a `READER`."""
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    return tuple(found for found in (getattr(m, "READER", None) for m in modules) if found is not None)


def sniff(head: Head) -> Reader | None:
    """The reader that is surest of a source with this head, None where none takes it for its own."""
    sure, best = max(((r.sniff(head), r) for r in readers()), key=lambda pair: pair[0])
    return best if sure > 0 else None
