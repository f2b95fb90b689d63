"""What a learning-rate scheduler says of its own course: for how many steps it was made, and where it is highest."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

BEYOND = 20
"""Times the steps of the run, at most, over which a function of the step is asked."""
ASKED = 400
"""Steps at which it is asked."""
MOST_NEAR = 5_000
"""Steps around the highest of these at which it is asked one by one."""
ALIKE = 0.1
"""Relative distance of two lengths that are taken as one: the last batch, a remainder."""


@dataclass(frozen=True)
class Horizon:
    """Steps of the schedule itself; None where it does not say."""

    total: int | None = None
    warmup: int | None = None
    defined: str | None = None
    """`file:line` of its function."""
    turns: bool = False
    """Beyond its end it climbs again (a cosine)."""


def horizon_of(scheduler: Any) -> Horizon:
    """From the attributes of torch's schedulers and the arguments of transformers'."""
    kind = type(scheduler).__name__
    total: Any = next((getattr(scheduler, a) for a in ("total_steps", "T_max", "total_iters") if hasattr(scheduler, a)),
                      None)
    warmup: Any = None
    defined = None
    for function in getattr(scheduler, "lr_lambdas", None) or ():
        if isinstance(function, functools.partial):
            total = function.keywords.get("num_training_steps", total)
            warmup = function.keywords.get("num_warmup_steps", warmup)
        elif (code := getattr(function, "__code__", None)) is not None:
            defined = f"{code.co_filename}:{code.co_firstlineno}"
    if kind == "OneCycleLR":
        phases = getattr(scheduler, "_schedule_phases", None)
        warmup = phases[0]["end_step"] + 1 if phases else None
    if kind in ("LinearLR", "ConstantLR"):
        rising = getattr(scheduler, "start_factor", 1.0) < getattr(scheduler, "end_factor", 1.0)
        total, warmup = None, total if rising else None
    return Horizon(_whole(total), _whole(warmup), defined, kind == "CosineAnnealingLR")


def length_like(scheduler: Any, taken: int) -> int | None:
    """A whole number that the function of a `LambdaLR` holds and that is the optimizer's number of steps, or near it:
    the length for which it was written. None where it holds none such."""
    for function in getattr(scheduler, "lr_lambdas", None) or ():
        for cell in getattr(function, "__closure__", None) or ():
            try:
                held = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            if isinstance(held, int) and not isinstance(held, bool) and abs(held - taken) <= ALIKE * taken:
                return held
    return None


def peak_of(scheduler: Any, steps: int, taken: int = 0) -> int | None:
    """The first step at which the function of a `LambdaLR` that still rises is highest, up to `BEYOND` times the run.

    `steps`: those of the schedule; `taken`: those of the optimizer, up to which it is asked at least. None for other
    schedulers, and where the function fails, is no plain number or depends on more than the step.
    """
    functions = [f for f in getattr(scheduler, "lr_lambdas", None) or () if f is not None]
    if len(functions) != 1 or steps < 1 or type(scheduler).__name__ != "LambdaLR":
        return None
    last = max(steps * BEYOND, taken)
    asked = sorted({*range(0, steps + 1, max(1, steps // 100)), steps,
                    *range(steps, last + 1, max(1, (last - steps) // ASKED))})
    try:
        values = [float(functions[0](step)) for step in asked]
        at = values.index(max(values))
        between = range(asked[max(0, at - 1)], asked[min(at + 1, len(asked) - 1)] + 1)
        near = [float(functions[0](step)) for step in between] if len(between) <= MOST_NEAR else []
        again = float(functions[0](asked[0]))
    except Exception:  # noqa: BLE001 - a function of the program may do anything; without it nothing is said
        return None
    if not all(map(math.isfinite, values)) or again != values[0]:
        return None
    within = [v for step, v in zip(asked, values, strict=True) if step <= steps]
    if within[-1] < max(within):
        return None  # it has fallen already: what a formula does beyond its end is nobody's plan
    return between[near.index(max(near))] if near and all(map(math.isfinite, near)) else asked[at]


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
