"""Which one conversion of loaded weights heals the first loss, judged by all the others.

A conversion counts where its loss is at most three quarters of the loss as loaded and of what any conversion of other
modules reaches: shrinking an output layer flattens every wrong answer to a guess, and only knowledge beats that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.conversions.candidates import Candidate
from traindx_tools.on_torch.conversions.searched import SHARE, Searched

OF_GUESSING = 0.5
"""Of the loss with the last layer zeroed, which is that of guessing: below it the weights know what they are asked, and
another scale only makes them surer or less sure, as label smoothing or a short training leaves them."""
OF_INPUTS = ("input", "shifted", "reversed")
"""Ids by one are rows of a table by one, and reversed channels are a reversed axis of the first layer."""
SIZES = ("scaled", "zeroed", "input")
FEWEST = 12
"""Conversions of other modules by which one is judged."""
Loss = Callable[[Mapping[int, torch.Tensor]], float]


@dataclass(frozen=True)
class _Result:
    """What one conversion came to, without its tensors: hundreds of them would not fit into the memory."""

    value: float
    kind: str
    roles: frozenset[str]


def search(loss: Loss, found: Iterable[Candidate], ids: Mapping[str, int], seconds: float) -> Searched:
    """Tries candidates while there is time. `ids`: of the program's parameters, by name. Raises NotReplayable."""
    begin = time.perf_counter()
    base = loss({})
    results: list[_Result] = []
    best: tuple[float, Candidate] | None = None
    left = False
    for candidate in found:
        if time.perf_counter() - begin > seconds:
            left = True
            break
        try:
            value = loss({ids[n]: t for n, t in candidate.changes.items()})
        except NotReplayable:
            continue
        if math.isfinite(value):
            results.append(_Result(value, candidate.kind, candidate.roles))
            if best is None or value < best[0]:
                best = value, candidate
    told = Searched(base, len(results), seconds=time.perf_counter() - begin, left=left)
    return told if best is None else _judged(told, results, *best)


def _judged(told: Searched, results: list[_Result], healed: float, best: Candidate) -> Searched:
    first = next((r.roles for r in results if r.kind == "scaled"), frozenset())
    apart = [r.value for r in results if not _alike(r, best, first)]
    if len(apart) < FEWEST or not heals(healed, told.loss):
        return told
    # the last layer comes last: where time ended it, nobody knows what guessing gives
    guessing = math.nan if told.left else next((r.value for r in reversed(results) if r.kind == "zeroed"), math.nan)
    if best.kind in SIZES and not told.loss >= OF_GUESSING * guessing:
        return told
    least = min(apart)
    if not heals(healed, least):
        return told
    return Searched(told.loss, told.tried, best, healed, least, told.seconds, told.left)


def _alike(one: _Result, best: Candidate, first: frozenset[str]) -> bool:
    """Whether one may do the same as another: on the same modules, or on the rows and axes that an input goes to.

    `first`: the modules that inputs go to, whose scale is that of the inputs.
    """
    if one.roles & best.roles or (best.kind in OF_INPUTS and one.kind in OF_INPUTS):
        return True
    return best.kind == "input" and one.kind == "scaled" and one.roles <= first


def heals(healed: float, loss: float) -> bool:
    """Whether a loss that is finite and positive is at most three quarters of another, which may be infinite or NaN."""
    if not math.isfinite(healed) or healed < 0:
        return False
    return not math.isfinite(loss) or healed <= SHARE * loss
