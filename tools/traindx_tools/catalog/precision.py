"""What a finding is worth: measured, never typed.

`precision.toml` is written by `benchmarks/measure_precision.py` from judgements on programs and runs that the author
of a check had not seen. For each entry of the catalog that matched there it was noted whether its failure mode was the
cause. A kind of entry (where it was seen, its role for the mode, the finding's bearing) is pooled; a check has its own
figures, drawn to those of its kind while it has fewer than 20 judgements. The weight of an entry in log-odds follows:

    weight = logit(Jeffreys lower bound of its precision) - logit(base rate of a mode)

so that one finding alone gives a mode the confidence that such findings had.

A finding that is itself a test of its claim needs no such prior: where the claimed change is undone on paper (a
permutation of the classes, a shift of the rows) and the rows then agree as their siblings do, the share of rows that
agree only then is measured on hundreds of rows. Its lower bound stands in place of the precision where it is higher.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from traindx_tools.catalog.shipped import shipped, table
from traindx_tools.errors import CatalogError
from traindx_tools.finding import Bearing

TABLE = shipped("precision.toml")

ROLES = ("cause", "sign", "companion", "hint")
"""What an observation is for a mode that it speaks for, the nearest first."""
COUNTER_ROLES = ("refutes", "contradicts", "unusual")
"""What an observation is for a mode that it speaks against, the strongest first."""

BASE_RATE = 0.047
"""Share of the failure modes with any evidence that are the cause, before what speaks for them is looked at
(log-odds -3)."""
PRIOR = math.log(BASE_RATE / (1.0 - BASE_RATE))

_PLACES = {"C": "code", "L": "log", "D": "file", "W": "file", "X": "experiment"}


def place_of(rule: str) -> str:
    """Where a rule looks: "code", "log" (curves), "error" (messages), "file" (data, weights), "experiment" or "live"
    (processes)."""
    return "error" if rule.startswith("L5") else _PLACES.get(rule[0], "live")


@dataclass(frozen=True)
class Measured:
    """How often something was right, of `judged` times. `bound`: the Jeffreys lower bound of that share."""

    judged: int
    right: int
    bound: float

    @property
    def weight(self) -> float:
        """Log-odds over the base rate; never below 0, since an observation that fits takes nothing away."""
        return max(0.0, math.log(self.bound / (1.0 - self.bound)) - PRIOR)


@dataclass(frozen=True)
class Precision:
    """The table: kinds of entries, checks, and what entries against a mode take."""

    kinds: Mapping[tuple[str, str, str], Measured]
    checks: Mapping[tuple[str, str], Measured]
    roles: Mapping[str, Measured]
    against: Mapping[str, float]

    def of(self, rule: str, role: str, bearing: Bearing) -> Measured:
        """The figures of a check in this role or a weaker one, whichever is better: a sign is no less than a
        companion."""
        return max((self._in(rule, r, bearing) for r in ROLES[ROLES.index(role):]), key=lambda m: m.bound)

    def _in(self, rule: str, role: str, bearing: Bearing) -> Measured:
        """The figures of a check in exactly this role, else of its kind, else of the role."""
        found = self.checks.get((rule, role)) or self.kinds.get((place_of(rule), role, bearing.value))
        return found or self.roles[role]

    def weight(self, rule: str, role: str, bearing: Bearing, undone: float | None = None) -> float:
        """Log-odds that the finding adds to a mode it speaks for (positive) or against (negative).

        `undone`: what the finding measured of its own claim (`Finding.undone`), where it is the cause itself.
        """
        if role in COUNTER_ROLES:
            return -self.against[role]
        measured = self.of(rule, role, bearing)
        if undone is None or bearing is not Bearing.CAUSE or undone <= measured.bound:
            return measured.weight
        return Measured(0, 0, min(undone, bearing.cap)).weight


def parse(data: Mapping[str, Any]) -> Precision:
    """The table from parsed TOML. Raises CatalogError that names what is missing."""
    try:
        return Precision(
            kinds={(k["place"], k["role"], k["bearing"]): _measured(k) for k in data["kind"]},
            checks={(c["rule"], c["role"]): _measured(c) for c in data.get("check", ())},
            roles={name: _measured(data["role"][name]) for name in ROLES},
            against={name: float(data["against"][name]["weight"]) for name in COUNTER_ROLES},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogError(f"precision.toml is incomplete ({error!r}): write it anew with "
                           "`python benchmarks/measure_precision.py`") from error


def _measured(row: Mapping[str, Any]) -> Measured:
    bound = float(row["bound"])
    if not 0.0 < bound < 1.0:
        raise ValueError(f"a bound lies between 0 and 1, got {bound}")
    return Measured(int(row["judged"]), int(row["right"]), bound)


@lru_cache(maxsize=1)
def load_precision() -> Precision:
    """The figures that come with traindx."""
    return parse(table(TABLE, "write it anew with `python benchmarks/measure_precision.py`"))
