"""What an invariant says: under which ids, read from `knowledge/pages/FAMILY.toml`, and where it does not hold.

The reader of the program makes a finding of a breach, and an edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.finding import Bearing, Severity, Value
from traindx_tools.knowledge.tables import table
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Spot
from traindx_tools.rules import Rule


def pages(family: str, ids: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of these ids. Raises KeyError where a page is missing."""
    written = table("pages", f"{family}.toml")
    return tuple(_rule(i, written[i]) for i in ids)


def _rule(name: str, row: dict[str, Any]) -> Rule:
    return Rule(name, row["name"], row["title"], Severity(row["severity"]), row["sees"], row["matters"],
                tuple(row["alike"]), tuple(row["confirm"]))


@dataclass(frozen=True)
class Remedy:
    """A change that would mend it, in the field's terms: `kind` says which, the acts say where."""

    kind: str
    act: Act
    target: Act | None = None
    text: str = ""


@dataclass(frozen=True)
class Breach:
    """One place where an invariant does not hold. `id` is a rule that the catalog knows."""

    id: str
    statement: str
    at: Spot
    known: Known = Known.DERIVED
    measured: Mapping[str, Value] = field(default_factory=dict)
    severity: Severity | None = None
    remedy: Remedy | None = None
    is_companion: bool = False
    """It is no fault by itself: where something else fails it is the first place to look."""

    @property
    def bearing(self) -> Bearing:
        """What rests on a guess is a sign."""
        if self.is_companion:
            return Bearing.COMPANION
        return Bearing.SIGN if self.known is Known.GUESSED else Bearing.CAUSE
