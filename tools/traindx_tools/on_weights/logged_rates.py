"""The learning rates that a run logged beside its checkpoint, and whether a schedule's own rate goes on from them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

APART = math.log(1.2)
"""Logarithm of the ratio of two rates, beyond what the logged ones change by themselves: a fifth."""
MOST_BYTES = 2**23
_NAMES = ("learning_rate", "lr")


def logged_rates(path: str, steps: int) -> list[tuple[int, float]]:
    """Step and rate of the entries of `trainer_state.json` up to a step, in order; [] where there is none or it is
    damaged."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    file = folder / "trainer_state.json"
    try:
        if file.stat().st_size > MOST_BYTES:
            return []
        state = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    history = state.get("log_history") if isinstance(state, dict) else None
    entries = [e for e in history if isinstance(e, dict)] if isinstance(history, list) else []
    found = [(e["step"], next((e[n] for n in _NAMES if _positive(e.get(n))), None)) for e in entries
             if _positive(e.get("step"))]
    return sorted((int(s), float(r)) for s, r in found if r is not None and s <= steps)


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf


def goes_on(logged: Sequence[tuple[int, float]], rates: Sequence[float], steps: int) -> bool | None:
    """Whether one of a schedule's rates is about that of the last entries; None where nothing near was logged.

    What the rate may have changed since the last entry is taken as twice what it did before.
    """
    rates = [r for r in rates if r > 0]
    if len(logged) < 2 or not rates:
        return None
    (before, earlier), (last, rate) = logged[-2], logged[-1]
    if last <= before or steps - last > last - before:
        return None
    trend = abs(math.log(rate / earlier)) / (last - before)
    return min(abs(math.log(r / rate)) for r in rates) <= APART + 2.0 * trend * (steps - last + 1)
