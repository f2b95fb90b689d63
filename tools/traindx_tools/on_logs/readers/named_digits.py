"""Digits that belong to the names of metrics: "gpu0: 41.2" and "gpu1: 52.0" have one shape and are two metrics.

Shapes of lines are told apart with every digit replaced by 0. Where a name holds digits, lines are told apart by these
as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from traindx_tools.on_logs.readers.recorder import Key


def positions(text: str, spans: Sequence[tuple[int, int]], start: int, keys: Iterable[Key]) -> tuple[int, ...]:
    """Where the digits stand that are part of no number, from `start` on; () where no name of a metric has one."""
    if not any(c.isdigit() for k in keys for c in k.original):
        return ()
    inside = {i for a, b in spans for i in range(a, b)}
    return tuple(i for i in range(start, len(text)) if text[i] in "0123456789" and i not in inside)


def digits(text: str, at: Sequence[int]) -> bytes:
    """The digits that stand there."""
    return "".join(text[i] for i in at).encode("ascii", "replace")


def key(mask: bytes, told: bytes) -> bytes:
    """What a shape is remembered by whose names have other digits than the first one of its mask."""
    return mask + b"\0" + told
