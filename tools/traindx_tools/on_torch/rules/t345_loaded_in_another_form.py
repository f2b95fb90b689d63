"""Loaded weights answer far better in another form: rows in another order, a tensor transposed, two blocks exchanged.

A checkpoint that was converted, merged or written by another release loads without a word where names and shapes fit.
What its rows stand for does not show there. On the first batch before any update, every known other form of each loaded
tensor is tried, one at a time, on copies; one of them heals the loss, no change of any other module comes near, and a
second batch agrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.conversions.searched import SHARE, Searched
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: weight-conversions"

RULE = Rule(
    id="T345",
    name="loaded-in-another-form",
    title="Loaded weights answer far better in another form",
    severity=Severity.HIGH,
    sees="the loss of the first batch after loading with each loaded tensor in known other forms, and a second batch",
    matters="the model computes something else than what was trained; training repairs it for a long time, or never",
    alike=("a new head: no form of the body gives it knowledge", "another domain: changes of temperature gain less"),
    confirm=("Evaluate with that tensor in the other form, on held-out data.",
             "Read how the file was written: the converter, the release, the order of gates or heads."),
    thresholds={"share": Threshold(SHARE, "of the loss as loaded and of what others reach",
                                   "a healed block against flattened answers")},
)


@dataclass(frozen=True)
class Converted:
    """What two batches said of one conversion. `second`, `second_healed`: the losses of the second one."""

    model: str
    found: Searched
    second: float
    second_healed: float
    rank: int = 0


def check(seen: Converted) -> Iterator[Finding]:
    """At most one finding."""
    found = seen.found
    if found.best is None:
        return
    names = sorted(found.best.changes)
    yield RULE.finding(
        f"before any update the loss of the first batch is {found.loss:.3g} with the weights of {seen.model} as loaded "
        f"and {found.healed:.3g} with {found.best.said} (a second batch: {seen.second:.3g} and "
        f"{seen.second_healed:.3g}); of {found.tried - 1} other conversions, one at a time, none of another module "
        f"gives less than {found.others:.3g}",
        Location(module=names[0], step=0.0, rank=seen.rank), SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": found.best.kind, "name": names[0], "form": found.best.said, "tensors": len(names),
                  "loss": round(found.loss, 5), "healed": round(found.healed, 5), "others": round(found.others, 5),
                  "tried": found.tried})
