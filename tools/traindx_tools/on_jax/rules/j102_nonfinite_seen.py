"""An output of a compiled function became NaN or infinite in the running process.

The sentinel is always on. It keeps a reference to the scalar outputs of every call of a jitted function (or of an eager
`grad` or `value_and_grad`) and a one-number summary of its small outputs, and reads them when they have arrived: it
never waits for the device and keeps no arguments. It says in which call the first value that is not finite appeared.
Short calls are looked at every so often only; of those between, one scalar (the loss) is kept until the next look, so
that its first bad call is known, and of other outputs between which calls it lies. Which equation made the value is
found by a second run that is traced around that call (J101).

State that is fed back into the next call (parameters, optimizer state, statistics) and a loss count. A metric that is
NaN by itself while the state stays finite (an accuracy over no examples) is only remarked, and so is an infinity that
was there from the first call on: a start value, a mask. A loss that is NaN in single calls and finite again is told as
low, with how many: its gradient was finite, or the program skips such a step, and the second run names the equation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule

RULE = Rule(
    id="J102",
    name="jax-nonfinite-seen",
    title="An output of a compiled function stopped being finite",
    severity=Severity.CRITICAL,
    sees="scalar outputs and small arrays among the outputs of every jitted call",
    matters="one such call writes NaN into every parameter; everything after it is wasted",
    alike=("a metric over no examples is NaN and harms nothing: it is remarked as INFO",),
    confirm=("traindx run -- CMD searches the origin by itself and names the equation (J101)",),
)


@dataclass(frozen=True)
class Shown:
    """When a value that is not finite was there: from call `step` of the function on, or by it, where not `exact`.

    `finite_at`: the last call before it in which the same output was finite, 0 where none is known. `every`: how often
    it was looked at then. `by`: the output that showed it, where that is another.
    """

    step: int
    exact: bool
    finite_at: int
    every: int
    by: str = ""

    @property
    def words(self) -> str:
        """`from its call 151 on`, or `by its call 160 (looked at every 32 calls, finite at call 128)`."""
        if self.exact:
            return f"from its call {self.step} on"
        told = [f"looked at every {self.every} calls" if self.every > 1 else "",
                f"finite at call {self.finite_at}" if self.finite_at else "",
                f"{self.by} is finite before it" if self.by else ""]
        return f"by its call {self.step}" + (f" ({', '.join(filter(None, told))})" if any(told) else "")


@dataclass(frozen=True)
class Seen:
    """A value that is not finite. `step`: the call of the function (from 1) that is known to have shown it first.

    `call`: of all watched calls in this process the first one that can have made it.
    """

    function: str
    output: str
    value: float
    call: int
    step: int
    before: float | None
    """The last finite value of the same output, None where there was none."""
    what: str
    """"state", "gradient", "loss", "output" or "metric"; "passing" for a loss that was finite again."""
    file: str | None = None
    line: int | None = None
    rank: int | None = None
    shown: Shown | None = None
    """How exactly that call is known; None: exactly."""
    times: int = 1
    """Of a passing one, the calls that were seen to be so."""


def check(seen: Seen) -> Iterator[Finding]:
    """The finding for it; INFO for a metric, LOW for a loss that passes."""
    kind = "nan" if math.isnan(seen.value) else "inf"
    last = f"; the last finite one was {seen.before:.4g}" if seen.before is not None else "; it was never finite"
    harmless = seen.what == "metric"
    passing = seen.what == "passing"
    about = "; the state that is carried on stayed finite" if harmless or passing else ""
    if passing:
        about = f"; {seen.times} call{'s' * (seen.times != 1)} in all, and it was finite again{about}"
    shown = seen.shown or Shown(seen.step, exact=True, finite_at=seen.step - 1, every=1)
    what, when = ("loss", f"at its call {shown.step}") if passing else (seen.what, shown.words)
    severity = Severity.INFO if harmless else Severity.LOW if passing else None
    yield RULE.finding(
        f"output {seen.output or 'of'} of {seen.function} ({what}) is {seen.value} {when}{last}"
        f"{about}", Location(file=seen.file, line=seen.line, step=seen.step, rank=seen.rank), "the running process",
        bearing=Bearing.SIGN, severity=severity,
        measured={"what": seen.what, "kind": kind, "step": seen.step, "exact": shown.exact,
                  "finite_step": shown.finite_at, "looked_every": shown.every, "call": seen.call,
                  "function": seen.function, "last_finite": seen.before,
                  "onset": "from-start" if seen.before is None else "abrupt"})
