"""A jitted function is compiled again and again: its arguments differ from call to call in what the cache looks at.

The number of signatures in the function's cache is read after every call; when it grows, shapes, dtypes, weak types,
static values and the structure of the arguments are compared with those of the compilation before, so that the finding
names the argument and the property that changed. A few signatures are normal (a last batch that is smaller,
evaluation); it counts from eight on, where they are more than a tenth of the calls. Values of a static argument that
are new again and again (a rate, a temperature, a counter that is a plain number) count from four on, where compiling
for them takes a quarter of the time after the first call: in a short run too, and where they change now and then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J601",
    name="jax-recompilations",
    title="A function is compiled again and again",
    severity=Severity.MEDIUM,
    sees="the size of a jitted function's cache after each call, and what changed in the arguments",
    matters="each compilation takes as long as hundreds of steps, and keeps its program in memory",
    alike=("a few shapes at the start, or one smaller last batch",),
    confirm=("JAX_LOG_COMPILES=1",
           "JAX_EXPLAIN_CACHE_MISSES=1"),
    thresholds={"compilations": Threshold(8, "signatures", "a train, an eval and a last batch in two dtypes"),
                "values": Threshold(4, "values of a static argument", "a flag has two, a few sizes may be meant"),
                "time": Threshold(0.25, "of the time after the first call", "beyond it stalls are seen"),
                "share": Threshold(0.1, "of the calls", "beyond it compiling outweighs running")},
)


@dataclass(frozen=True)
class Recompiled:
    """How often one function was compiled in how many calls, and what differed the last time."""

    function: str
    compilations: int
    calls: int
    argument: str
    prop: str
    """"shape", "dtype", "weak type", "static value", "structure"."""
    before: str
    now: str
    place: tuple[str, int] | None
    share: float | None = None
    """Of the time after the first call that compiling again took, where that is why it is told."""


def check(it: Recompiled) -> Iterator[Finding]:
    """The finding for it."""
    file, line = it.place or (None, None)
    where = Location(file=file, line=line) if file is not None else Location(module=it.function)
    change = f": the {it.prop} of {it.argument} changed from {it.before} to {it.now}" if it.prop else ""
    took = "" if it.share is None else (f"; compiling again took {100 * it.share:.0f} % of the time after the first "
                                        "call")
    yield RULE.finding(
        f"{it.function} was compiled {it.compilations} times in {it.calls} calls{change}{took}", where,
        "the running process", bearing=Bearing.CAUSE,
        measured={"kind": it.prop or "unknown", "compilations": it.compilations, "calls": it.calls,
                  "argument": it.argument, "before": it.before, "now": it.now, "function": it.function})
