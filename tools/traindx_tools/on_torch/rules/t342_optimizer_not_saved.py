"""An optimizer keeps state that its `state_dict` leaves out.

An optimizer of the program (or of a library, not of torch) is copied before one of its steps. One copy steps as it is;
another is made anew, takes the `state_dict` and steps with the same gradients: the parameters differ. A counter for the
bias correction, moments in a list or a dictionary of its own: a run that is resumed goes on with the first values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.saved_optimizer import Lost

SOURCE = "torch probe: copy of an optimizer"

RULE = Rule(
    id="T342",
    name="optimizer-not-saved",
    title="The optimizer's state_dict leaves out what its step needs",
    severity=Severity.MEDIUM,
    sees="one step of a copy of the optimizer, and of a copy that was made anew and took its state_dict",
    matters="a resumed run does not go on as it would have",
    alike=("an attribute that the program sets in every step (a rate of its own schedule)",
           "an optimizer that is never saved"),
    confirm=("print(vars(optimizer).keys(), optimizer.state_dict()['state'].keys())",),
    thresholds={"change": Threshold(0.0, "of any parameter", "both copies take the same step otherwise")},
)


def check(name: str, seen: Lost | None, saved: bool, step: int, rank: int = 0) -> Iterator[Finding]:
    """At most one finding. `saved`: the program writes files of states."""
    if seen is None:
        return
    what = f"; what is lost: {', '.join(seen.attributes)}" if seen.attributes else ""
    yield RULE.finding(
        f"after its state_dict is loaded into a {name} that was made anew, a step with the same gradients ends "
        f"{seen.largest:.3g} step lengths apart{what}",
        Location(module=name, step=float(step), rank=rank), SOURCE, bearing=Bearing.CAUSE if saved else Bearing.SIGN,
        severity=RULE.severity if saved else Severity.LOW,
        measured={"optimizer": name, "attributes": ", ".join(seen.attributes), "saved": saved,
                  "largest": round(min(seen.largest, 1e9), 4)})
