"""Schedules of the learning rate as training states keep them: their counts, lengths and rates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traindx_tools.on_weights.planned_steps import Planned

ZERO, _DIGITS = 1e-6, 1e-6
_LAST = re.compile(r"(?:(.*)[.:])?([^.:]*)", re.DOTALL)
"""Of a folder a key begins with the file: `scheduler.bin:last_epoch`."""
_RESTARTS = frozenset({"T_0", "T_mult", "T_i", "cycle_momentum", "patience", "num_bad_epochs"})
"""What schedules keep that come back from their lowest rate, or lower it when the loss says so."""


@dataclass(frozen=True)
class Schedule:
    """One of them. `first`: the rates that it began with or rises to; `lowest`: where it ends."""

    key: str
    count: int
    length: int | None
    rates: tuple[float, ...]
    first: tuple[float, ...]
    lowest: float
    restarts: bool

    @property
    def at_zero(self) -> bool:
        return self._ended(0.0)

    @property
    def at_end(self) -> bool:
        """At its lowest rate."""
        return self._ended(self.lowest)

    def _ended(self, lowest: float) -> bool:
        pairs = list(zip(self.rates, self.first, strict=False))
        return bool(pairs) and all(f > lowest and r <= lowest + ZERO * f for r, f in pairs)


def on_plan(schedule: Schedule, planned: Planned, least: float = 0.05) -> bool:
    """Whether the rate is that of a cosine or a line to zero over the planned steps, at the schedule's count.

    `least`: the part of them from which on rates tell anything.
    """
    if not schedule.rates or not schedule.first or not 0 < schedule.count < planned.steps or schedule.restarts:
        return False
    share = schedule.rates[0] / schedule.first[0] if schedule.first[0] > 0 else 0.0
    for warmup in {0, *planned.warmups}:
        done = (schedule.count - warmup) / max(1, planned.steps - warmup)
        if least < done < 0.95 and any(abs(share - s) < _DIGITS for s in (0.5 * (1 + math.cos(math.pi * done)),
                                                                          1 - done)):
            return True
    return False


def schedules_of(values: Mapping[str, Any]) -> Iterator[Schedule]:
    """Each dictionary of plain values that has a `last_epoch`."""
    for key, value in values.items():
        head, last = split(key)
        if last != "last_epoch" or not isinstance(value, int) or isinstance(value, bool):
            continue
        own = {split(k)[1]: v for k, v in values.items() if split(k)[0] == head}
        length = next((own[n] for n in ("T_max", "total_steps", "total_iters") if isinstance(own.get(n), int)), None)
        lowest = own.get("eta_min")
        yield Schedule(key, value, length, _numbers(own.get("_last_lr")), _numbers(own.get("base_lrs")),
                        float(lowest) if isinstance(lowest, (int, float)) and lowest > 0 else 0.0,
                        not _RESTARTS.isdisjoint(own))


def _numbers(value: object) -> tuple[float, ...]:
    return tuple(float(v) for v in value if isinstance(v, (int, float))) if isinstance(value, (list, tuple)) else ()


def split(key: str) -> tuple[str, str]:
    """What a key begins with, and its last word."""
    head, last = _LAST.fullmatch(key).groups()  # type: ignore[union-attr]
    return head or "", last
