"""Of all in which a good and a bad run differ, a smallest part makes the symptom come.

The good run with this part shows the symptom, and with any one member of the part left out it does not: both were run,
twice. Everything else in which the two differ is as in the good run, so that none of it is needed. Whether it is the
only cause is said beside it: the bad run without the part was run too. Of commits, the state after the named one shows
the symptom, and the state before it does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.isolating.isolate import Isolated
from traindx_tools.experiments.isolating.outcomes import Shown
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="X201",
    name="smallest-difference",
    title="The smallest difference that makes the symptom come",
    severity=Severity.HIGH,
    sees="Runs of the same program with parts of the difference between a good and a bad one: configuration, commits, "
         "data, environment, weights.",
    matters="It is the nearest to a proof of a cause that two versions of anything can give.",
    alike=("a difference that only uncovers a fault which both have: a longer run, a larger batch",
           "a condition that another symptom meets as well: give a narrower --fails-if"),
    confirm=("undo it alone in the bad run: the symptom goes",
             "traindx isolate runs, where the symptom comes and goes"),
    thresholds={"repeats": Threshold(2, "runs", "of each deciding set; where they disagree, rates are tested (Wald)")},
)


def _statement(result: Isolated, named: str, symptom: str) -> str:
    count = f"{len(result.labels):,}"
    if result.without is None:  # a list in order: commits
        return f"the symptom ({symptom}) comes with {named}, one of {count}; the state before it does not show it"
    several = len(result.causes)
    more = "" if result.without is not Shown.PASS else " and the bad run without it does not show it" if (
        several == 1) else f"; {several} causes do so, each by itself"
    return f"of {count} differences {named} alone makes the symptom ({symptom}) come{more}"


def check(result: Isolated, symptom: str, source: str) -> Iterator[Finding]:
    """One finding a cause. `symptom`: the condition; `source`: the isolation that says so."""
    for cause in result.named if result.status == "found" else ():
        named = "; ".join(cause[:6]) + (f" and {len(cause) - 6} more" if len(cause) > 6 else "")
        yield RULE.finding(
            _statement(result, named, symptom), Location(module=named[:200]), source, bearing=Bearing.CAUSE,
            measured={"differences": len(result.labels), "needed": len(cause), "causes": len(result.causes),
                      "runs": result.runs + result.known, "symptom": symptom})
