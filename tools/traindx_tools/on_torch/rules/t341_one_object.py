"""Two things of a program that should be two are one.

`kind`: "same-gradient" where two optimizers hold the same parameters and both step on one gradient, so that it is
applied twice; "optimizers" where they hold the same parameters and each has a gradient of its own (an encoder that two
tasks or the phases of an adversarial autoencoder train): a fact. "model" where a second model of the same class, called
without gradients beside the trained one in most steps, shares all parameters with it (`copy.copy`, a constructor that
keeps what it is given), "view" where it is evaluated alone. "loaded-from-itself" and "averaged-with-itself" where a
state is loaded into, or an average is taken with, the very parameters that it comes from: a target network or average
that is the trained model under another name.

Optimizers that step inside of another one's step (SAM, Lookahead), that follow one another (Adam, then L-BFGS), models
that share a trunk, and models one of which holds the other are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: sharing"
TIMES = 3

RULE = Rule(
    id="T341",
    name="one-object",
    title="Two objects are one",
    severity=Severity.MEDIUM,
    sees="the parameters of each optimizer and called model, by their memory, and what is loaded or averaged into what",
    matters="what should stay, or follow slowly, is trained along; or one gradient is applied twice",
    alike=("a trunk that two models share on purpose: never all of the parameters",
           "a second handle of one model that is only evaluated", "one encoder that two losses train in turns"),
    confirm=("print(len({p.data_ptr() for p in a.parameters()} & {p.data_ptr() for p in b.parameters()}))",),
    thresholds={"times": Threshold(TIMES, "times", "once may be a start or an end")},
)


@dataclass(frozen=True)
class Shared:
    """One such pair. `kind` as in the page; `times`: steps, loads or updates in which it was seen."""

    kind: str
    one: str
    other: str
    parameters: int
    times: int
    line: str | None = None
    step: int = 0
    rank: int = 0


_TELLS = {
    "same-gradient": "{one} and {other} hold the same {parameters} parameters and both step on one gradient, without "
                     "a backward pass or a clearing between: it is applied twice ({times} times)",
    "optimizers": "{one} and {other} hold the same {parameters} parameters and step them in turns, each after "
                  "a backward pass of its own ({times} times)",
    "model": "{other} is called without gradients beside {one} in {times} steps, and all its {parameters} parameters "
             "are those of {one}, which is trained: it changes with every step",
    "view": "{other} and {one} share all of their {parameters} parameters; {other} is evaluated alone",
    "loaded-from-itself": "{one} is given its own {parameters} tensors as a state to load, {times} times: nothing is "
                          "copied",
    "averaged-with-itself": "parameters of {one} are averaged with themselves (in {times} looks): the average is "
                            "the trained model",
}
_SEVERITY = {"optimizers": Severity.INFO, "view": Severity.INFO, "averaged-with-itself": Severity.HIGH}
_BEARING = {"optimizers": Bearing.COMPANION, "view": Bearing.COMPANION, "model": Bearing.SIGN}


def check(these: Sequence[Shared]) -> Iterator[Finding]:
    """One finding a pair."""
    for seen in these:
        if seen.times < (2 if seen.kind.endswith("itself") else TIMES):
            continue
        file, _, number = (seen.line or "").rpartition(":")
        where = Location(file=file or None, line=int(number) if number.isdigit() else None,
                         module=f"{seen.one}, {seen.other}" if seen.other else seen.one, step=float(seen.step),
                         rank=seen.rank)
        yield RULE.finding(
            _TELLS[seen.kind].format(one=seen.one, other=seen.other, parameters=seen.parameters, times=seen.times),
            where, SOURCE, bearing=_BEARING.get(seen.kind, Bearing.CAUSE), severity=_SEVERITY.get(seen.kind),
            measured={"kind": seen.kind, "one": seen.one, "other": seen.other, "parameters": seen.parameters,
                      "times": seen.times})
