"""How many epochs `trainer_state.json` says, beside what its own history says for the same steps."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_BYTES = 2**23
FEWEST, STEADY, APART = 4, 0.01, 0.05
"""Entries of the history, what steps of an epoch differ by in them, and what the number is off at least."""


@dataclass(frozen=True)
class Epochs:
    """`said` in `file` at a step, where `steps` of an epoch make it `expected`."""

    file: str
    step: int
    said: float
    expected: float
    steps: float


def epochs_apart(path: str) -> Epochs | None:
    """None where there is no such file, or its number is that of its history."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    file = folder / "trainer_state.json"
    try:
        state = json.loads(file.read_text(encoding="utf-8")) if file.stat().st_size <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(state, dict):
        return None
    history = state.get("log_history")
    if not isinstance(history, list) or not _positive(state.get("global_step")) or not _number(state.get("epoch")):
        return None
    told = [e["step"] / e["epoch"] for e in history if isinstance(e, dict) and _positive(e.get("step"))
            and _positive(e.get("epoch"))]
    if len(told) < FEWEST or max(told) > min(told) * (1 + STEADY):
        return None  # rounded, or batches that changed
    steps = sorted(told)[len(told) // 2]
    said, expected = float(state["epoch"]), state["global_step"] / steps
    return Epochs(file.name, int(state["global_step"]), said, expected, steps) if abs(
        said - expected) > APART * expected else None


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _positive(value: Any) -> bool:
    return _number(value) and value > 0
