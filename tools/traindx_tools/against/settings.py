"""Settings of two runs line by line: flattened keys of configurations, printed arguments and constants of the code.

A setting belongs to a family ("learning rate", "precision"): see `families`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindx_tools.against.families import OTHER, Family, family_of
from traindx_tools.on_logs.readers.names import identify

_OF_THE_PROCESS = re.compile(r"cwd|p?pid|argv|started|ended|hostname|uptime|elapsed|connection_file", re.IGNORECASE)
_NEVER_SET = frozenset({"loss", "grad_norm"})
"""Metrics whose numbers nobody sets, though their names lie in a family of settings."""
MOST = 400
"""Differences that are kept."""


@dataclass(frozen=True)
class SettingDifference:
    """One key. `here` is the broken run's value, `there` the working one's; "" stands for a key that is not set."""

    key: str
    here: str
    there: str
    kind: str = "setting"
    """"setting", "constant" (of the code) or "version"."""

    @property
    def family(self) -> Family:
        """The kind of setting."""
        return family_of(re.split(r"[./]", self.key)[-1])

    @property
    def factor(self) -> float | None:
        """How many times larger the broken run's number is; None where that means nothing (a seed, a name)."""
        if self.family.name in ("seed", "label") or self.kind == "version":
            return None
        a, b = _number(self.here), _number(self.there)
        return a / b if a is not None and b else None

    def statement(self) -> str:
        """One line: key, both values, the factor between numbers."""
        if not self.there:
            return f"{self.key}: {self.here} here, not set there"
        if not self.here:
            return f"{self.key}: not set here, {self.there} there"
        factor = self.factor
        large = factor is not None and factor > 0 and not 0.5 < factor < 2
        times = f" ({_times(factor)})" if large and factor else ""
        return f"{self.key}: {self.here} here, {self.there} there{times}"


def _times(factor: float) -> str:
    return f"{factor:.3g} times as much" if factor >= 1 else f"1/{1 / factor:.3g} of it"


def setting_differences(
    here: Mapping[str, Any], there: Mapping[str, Any], kind: str = "setting"
) -> list[SettingDifference]:
    """Every key that differs, in the order of the broken run's keys; numbers are compared as numbers."""
    found = [SettingDifference(key, _text(here.get(key)), _text(there.get(key)), kind)
             for key in dict.fromkeys([*here, *there])
             if not same(_text(here.get(key)), _text(there.get(key)))
             and not _measured(key, _text(here.get(key)), _text(there.get(key)))]
    return [d for d in found if d.here or d.there][:MOST]


def _measured(key: str, *values: str) -> bool:
    """Whether a run wrote it of itself: a number under the name of a metric or a time, or what its process is."""
    last = re.split(r"[./]", key)[-1]
    if _OF_THE_PROCESS.fullmatch(last):
        return True
    name = identify(last)
    of_metric = (name.known and (name.measured or name.canonical.endswith("_time"))
                 and last.lower().endswith(name.canonical)  # "memory" is one, "memory_size" is none
                 and (name.canonical in _NEVER_SET or family_of(last) is OTHER))
    return of_metric and all(not v or _number(v) is not None for v in values)


def same(one: str, other: str) -> bool:
    """Whether two values mean the same: 3e-4 and 0.0003, True and true."""
    a, b = _number(one), _number(other)
    if a is not None and b is not None:
        return math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b))
    return one.strip("'\" ").lower() == other.strip("'\" ").lower()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _text(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split())[:200]
