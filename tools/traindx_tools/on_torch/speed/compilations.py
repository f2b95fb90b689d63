"""How often `torch.compile` compiled a function again, and which guard made it."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Recompiled:
    """One function of the user: how often it was compiled beyond the first time, and the guards that failed."""

    function: str
    file: str
    line: int
    times: int
    guard: str
    """The guard that failed most, as dynamo writes it: `s == 4.0`, `tensor 'x' size mismatch at index 0 ...`."""
    limit_reached: bool
    """Dynamo gave up on it: it runs eagerly from then on."""


_asked: list[bool] = []
"""Not empty once `torch.compile` was called in this process."""
_listeners: list[Callable[[], None]] = []


def watch_compile(listener: Callable[[], None] | None = None) -> None:
    """Notes calls of `torch.compile` (`Module.compile` goes through it). Patched once in a process.

    `listener` is called at each: what must not be there while dynamo compiles is taken away in time.
    """
    _listeners.extend([listener] if listener is not None else [])
    original: Any = torch.compile
    if hasattr(original, "_traindx"):
        return

    @functools.wraps(original)
    def noting(*args: Any, **kwargs: Any) -> Any:
        _asked[:] = [True]
        for listen in _listeners:
            listen()
        return original(*args, **kwargs)

    noting._traindx = True  # type: ignore[attr-defined]
    torch.compile = noting


def compiles() -> bool:
    """Whether the program compiles: `torch.compile` was called, or dynamo has compiled something already."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    return bool(_asked) or bool(counters and counters.get("frames", {}).get("total", 0))


def recompilations() -> tuple[Recompiled, ...]:
    """What dynamo recorded, the most recompiled first; () where nothing was compiled or there is no record."""
    utils = sys.modules.get("torch._dynamo.utils")
    read = getattr(utils, "get_compilation_metrics", None)
    if read is None:
        return ()
    by_frame: dict[str, list[Any]] = {}
    for metric in read():
        frame = str(getattr(metric, "compile_id", "") or "").split("/")[0].strip("[]")
        by_frame.setdefault(frame, []).append(metric)
    found = (_of(metrics) for metrics in by_frame.values())
    return tuple(sorted((r for r in found if r is not None), key=lambda r: -r.times))


def _of(metrics: list[Any]) -> Recompiled | None:
    reasons = [r for m in metrics if (r := getattr(m, "recompile_reason", None))]
    named = next((m for m in metrics if getattr(m, "co_filename", None)), None)
    if not reasons or named is None:
        return None
    guards = Counter(_guard(r) for r in reasons)
    limit = any("limit" in str(getattr(m, "fail_reason", "") or "") for m in metrics)
    return Recompiled(str(named.co_name), str(named.co_filename), int(named.co_firstlineno or 1), len(reasons),
                      guards.most_common(1)[0][0], limit)


def _guard(reason: str) -> str:
    """The failing guard without its numbers' history: the part after the compile id, before the source comment."""
    first = reason.splitlines()[0]
    return re.sub(r"^\d+/\d+:\s*", "", first).split("  #")[0].strip()[:160]
