"""The output in training mode is another one than in evaluation mode, with everything random switched off.

One call is repeated on a copy in both modes, dropout off. What remains is made by norm layers (`kind` "statistics":
their running statistics are judged by T507 and T508, and nothing is said here), or by a module that looks at
`self.training` ("code", or "form" where it returns another kind of output). That is often meant: an auxiliary output, a
head that decodes, a straight-through estimate. It is a fact for whoever asks why training and evaluation do not agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.modes import ModesDiffer

RULE = Rule(
    id="T338",
    name="mode-matters",
    title="A module computes something else in evaluation mode",
    severity=Severity.INFO,
    sees="the output of a copy of the model for one call in both modes, without dropout, and with one module's changed",
    matters="what is evaluated is not what is trained",
    alike=("auxiliary outputs in training", "a decoder that is used in evaluation alone", "norm layers"),
    confirm=("print(traindx_tools.on_torch.comparison.compare_modes(model, batch).table())",),
    thresholds={"change": Threshold(0.0, "of the output beyond rounding", "one function gives one value")},
)


def check(seen: ModesDiffer | None, where: Where) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None or seen.kind == "statistics":
        return
    how = "returns an output of another form" if seen.kind == "form" else (
        f"changes the output of {where.model} by up to {seen.largest:.3g} standard deviations")
    yield RULE.finding(
        f"{seen.module} ({seen.kind_of}) looks at its mode: with dropout off, evaluation mode {how}",
        where.at(seen.file, seen.line), SOURCE, bearing=Bearing.COMPANION,
        measured={"kind": seen.kind, "module": seen.module, "largest": round(min(seen.largest, 1e9), 4)})
