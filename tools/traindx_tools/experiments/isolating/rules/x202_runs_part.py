"""Two runs of one command, in equal copies of one workspace, do not compute the same.

Digests of every step were compared in order: batches row by row, random states, parameters, outputs of modules,
gradients. The first value that differs is named, and what was still equal there tells where it comes from. A remedy is
named where all runs with it were equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.isolating.parting.equal_runs import MISSED, EqualRuns
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="X202",
    name="runs-part",
    title="Runs of the same command differ",
    severity=Severity.MEDIUM,
    sees="Digests of the steps of two and more runs of one command, as it is and with seeds set, without workers, with "
         "one thread, with deterministic kernels.",
    matters="What cannot be repeated cannot be compared: a change is judged against the spread of equal runs. A race "
            "in loading or a kernel that reads memory that is not initialised is a fault by itself.",
    alike=("a program that asks for chance on purpose, without a seed",
           "atomic additions on a GPU: small differences that grow, and no fault"),
    confirm=("traindx isolate runs --run CMD with the remedy in the program",),
    thresholds={"by chance": Threshold(MISSED, "probability", "that runs with a remedy were equal by chance alone")},
)


def check(result: EqualRuns, source: str) -> Iterator[Finding]:
    """The first place where they part."""
    found = result.parting
    if result.status != "parts" or found is None:
        return
    equal = f"; they are equal with {' or '.join(' and '.join(r) for r in result.removing)}" if result.removing else ""
    yield RULE.finding(
        found.said + equal, Location(step=found.step, module=found.name[:200], rank=found.rank or None), source,
        bearing=Bearing.SIGN, measured={"origin": found.origin, "kind": found.kind, "runs": result.runs,
                                        "removing": ", ".join(" and ".join(r) for r in result.removing)})
