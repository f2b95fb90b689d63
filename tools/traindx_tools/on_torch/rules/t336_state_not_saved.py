"""A module keeps state that its checkpoint does not hold.

An attribute (a tensor that is no buffer, a number, a buffer that is not persistent) changed during the first steps, and
the output of a copy in evaluation mode changes when it is set back to its first value: running statistics, codes, a
scale or an annealed temperature. `state_dict` leaves it out, so that a loaded model works with the value it was made
with. A hidden state that is carried from batch to batch is left alone. Where the output changes in training mode alone
(`mode` "training": an annealed temperature, a scale that the loss sees), the model that is evaluated is right and a
resumed run begins with the first value again, unless the program sets it: a remark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.unsaved import Unsaved

RULE = Rule(
    id="T336",
    name="state-not-saved",
    title="State that evaluation reads is not in the checkpoint",
    severity=Severity.HIGH,
    sees="plain attributes of modules that training changes, and the output of a copy with their first values",
    matters="the model that is loaded is not the one that was saved",
    alike=("a cache that is written before it is read", "a hidden state of a recurrent model",
           "a number that the program sets again from its own step after loading"),
    confirm=("print([n for n, v in vars(module).items() if isinstance(v, torch.Tensor)], list(module.state_dict()))",),
    thresholds={"change": Threshold(0.0, "of the output beyond rounding", "what is not read changes nothing")},
)


def check(seen: Unsaved | None, where: Where, saved: bool) -> Iterator[Finding]:
    """At most one finding. `saved`: the program writes files of states."""
    if seen is None:
        return
    mode = "training" if seen.training else "evaluation"
    loud = saved and not seen.training
    yield RULE.finding(
        f"`{seen.name}` of {seen.module} ({seen.kind}) changes in training and is not in the state: with its first "
        f"value the output in {mode} mode changes by up to {seen.largest:.3g} standard deviations",
        where.at(), SOURCE, bearing=Bearing.CAUSE if loud and seen.kind != "number" else Bearing.SIGN,
        severity=RULE.severity if loud else Severity.LOW,
        measured={"kind": seen.kind, "saved": saved, "mode": mode, "module": seen.module, "attribute": seen.name,
                  "largest": round(seen.largest, 4)})
