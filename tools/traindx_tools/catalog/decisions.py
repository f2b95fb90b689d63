"""What experiments decide between the failure modes: read from `experiments.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from traindx_tools.catalog.shipped import shipped, table
from traindx_tools.errors import BadUsage, CatalogError
from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.interventions import check
from traindx_tools.experiments.outcome import EVENTS, NUMBERS
from traindx_tools.experiments.plan import HELD_OUT, Decision
from traindx_tools.experiments.replaying.changes import CHANGES
from traindx_tools.experiments.trace import KNOWN_PARTS

TABLE = shipped("experiments.toml")


@lru_cache(maxsize=1)
def load_decisions() -> tuple[Decision, ...]:
    """What comes with traindx. Raises CatalogError that says what is wrong."""
    return parse_decisions(table(TABLE))


@dataclass(frozen=True)
class StepDecision:
    """What a change of one kept step decides, where no whole run has it."""

    removes: frozenset[str]
    why: str


@lru_cache(maxsize=1)
def load_step_decisions() -> Mapping[str, StepDecision]:
    """By the name of the change. Raises CatalogError."""
    return parse_step_decisions(table(TABLE))


def parse_step_decisions(data: Mapping[str, object]) -> dict[str, StepDecision]:
    """The same from parsed TOML."""
    rows = data.get("step", [])
    try:
        told = {str(r["change"]): StepDecision(frozenset(r["removes"]), " ".join(r["why"].split()))
                for r in (rows if isinstance(rows, list) else [])}
    except (KeyError, TypeError, AttributeError) as error:
        raise CatalogError(f"experiments.toml: {error!r} in a [[step]]") from error
    if unknown := told.keys() - CHANGES.keys():
        raise CatalogError(f"experiments.toml: no change of a step is called {', '.join(sorted(unknown))}")
    return told


def _outcomes(named: object) -> frozenset[str]:
    """Kinds of outcomes, and "held-out". Raises BadUsage."""
    known = {*EVENTS, *NUMBERS, HELD_OUT}
    if not isinstance(named, list) or not known.issuperset(map(str, named)):
        raise BadUsage(f"moves is {named!r}: a list of {', '.join(sorted(known))}")
    return frozenset(map(str, named))


def _parts(named: object) -> tuple[str, ...]:
    """Parts of a program that was watched. Raises BadUsage."""
    if not isinstance(named, list) or not set(KNOWN_PARTS).issuperset(map(str, named)):
        raise BadUsage(f"has is {named!r}: a list of {', '.join(KNOWN_PARTS)}")
    return tuple(map(str, named))


def parse_decisions(data: Mapping[str, object]) -> tuple[Decision, ...]:
    """The decisions of parsed TOML. Raises CatalogError on a change of another form and where a field is missing."""
    rows = data.get("experiment")
    if not isinstance(rows, list) or not rows:
        raise CatalogError("experiments.toml names no [[experiment]]")
    out = []
    for row in rows:
        try:
            out.append(Decision(check(parse_change(row["change"])), frozenset(row["removes"]),
                                " ".join(row["why"].split()), int(row.get("runs", 1)),
                                re.compile(row.get("needs", "")).pattern, _parts(row.get("has", [])),
                                specific=bool(row.get("specific", False)),
                                seldom=float(row.get("seldom", 1.0)), moves=_outcomes(row.get("moves", [])),
                                settings=frozenset(row.get("settings", [])),
                                groups=frozenset(row.get("groups", []))))
        except (BadUsage, KeyError, TypeError, AttributeError, ValueError, re.error) as error:
            raise CatalogError(f"experiments.toml: {error} in {row!r}") from error
    return tuple(out)
