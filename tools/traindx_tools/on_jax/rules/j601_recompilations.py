"""A jitted function is compiled again and again: its arguments differ from call to call in what the cache looks at.

The number of signatures in the function's cache is read after every call; when it grows, shapes, dtypes, weak types,
static values and the structure of the arguments are compared with those of the compilation before, so that the finding
names the argument and the property that changed. A few signatures are normal (a last batch that is smaller,
evaluation); it counts from eight on, where they are more than a tenth of the calls.
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


def check(it: Recompiled) -> Iterator[Finding]:
    """The finding for it."""
    file, line = it.place or (None, None)
    where = Location(file=file, line=line) if file is not None else Location(module=it.function)
    change = f": the {it.prop} of {it.argument} changed from {it.before} to {it.now}" if it.prop else ""
    yield RULE.finding(
        f"{it.function} was compiled {it.compilations} times in {it.calls} calls{change}", where,
        "the running process", bearing=Bearing.CAUSE,
        measured={"kind": it.prop or "unknown", "compilations": it.compilations, "calls": it.calls,
                  "argument": it.argument, "before": it.before, "now": it.now, "function": it.function})
