"""What an invariant says where it does not hold. The reader of the program makes a finding of it, and an edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from traindx_tools.finding import Bearing, Severity, Value
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Spot


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
