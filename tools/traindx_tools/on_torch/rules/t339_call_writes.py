"""The same call a second time gives another output.

One call is made twice on a copy, with the same samples and random numbers. `kind`: "evaluation" where, in evaluation
mode, the first call wrote state (a buffer, a tensor, a parameter) and the second gives another output: evaluating
changes the model, as statistics do that are updated without a look at `self.training`; "not-repeatable" where it
differs in training mode although all that could be set back was: an operation that is not deterministic, or state
outside of the model. Statistics of norm layers and hidden states with a row for each sample are left alone; what a
training call writes besides stands among the facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.twice import Twice

RULE = Rule(
    id="T339",
    name="call-writes",
    title="The same call gives another output the second time",
    severity=Severity.MEDIUM,
    sees="two calls of a copy of the model with the same samples, and its parameters, buffers and attributes between",
    matters="a metric depends on what was evaluated before, and data that is held out changes the model",
    alike=("a hidden state that is carried from batch to batch", "a cache", "a memory that is meant to learn in use"),
    confirm=("model.eval(); a, b = model(x), model(x); print((a - b).abs().max())",),
    thresholds={"change": Threshold(0.0, "of the output beyond rounding", "one function gives one value")},
)


def check(seen: Twice | None, where: Where) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None or seen.kind == "writes":
        return
    names = ", ".join(seen.written[:4])
    if seen.kind == "evaluation":
        text = (f"{where.model} in evaluation mode gives an output that differs by up to {seen.largest:.3g} standard "
                f"deviations when it is called a second time with the same input: the call writes {names}")
    else:
        text = (f"{where.model} in training mode gives outputs that differ by up to {seen.largest:.3g} standard "
                "deviations with the same input, state and random numbers")
    loud = seen.kind == "evaluation"
    yield RULE.finding(text, where.at(), SOURCE, bearing=Bearing.SIGN if loud else Bearing.COMPANION,
                       severity=RULE.severity if loud else Severity.INFO,
                       measured={"kind": seen.kind, "module": where.model, "written": names,
                                 "largest": round(seen.largest, 4)})


def told(seen: Twice | None, where: Where) -> str:
    """As a fact of the program, "" where there is none."""
    if seen is None or seen.kind != "writes":
        return ""
    return f"a training call of {where.model} writes {', '.join(seen.written[:6])}"
