"""One layer stands several times in a list where separate ones are meant.

`[layer] * n` and a loop that appends the same object give a stack whose layers share all their weights. Models that
share on purpose (a recurrence over depth) usually call one layer several times and hold it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.rules import Rule

RULE = Rule(
    id="T337",
    name="layers-are-one",
    title="Layers of a stack are one object",
    severity=Severity.MEDIUM,
    sees="the identity of the modules in each ModuleList and Sequential",
    matters="the model has a fraction of the parameters that its depth suggests",
    alike=("weights that are shared over depth on purpose",),
    confirm=("print(len(layers), len({id(m) for m in layers}))",),
)


@dataclass(frozen=True)
class Stack:
    """A container: its places, and the distinct modules with parameters in them."""

    path: str
    kind: str
    places: int
    distinct: int


def check(stacks: Sequence[Stack], where: Where) -> Iterator[Finding]:
    """One finding a container."""
    for stack in stacks:
        yield RULE.finding(
            f"the {stack.places} places of {stack.path} hold {stack.distinct} distinct {stack.kind}: what stands there "
            "several times shares all its weights", Where(stack.path, where.step, where.rank).at(), SOURCE,
            bearing=Bearing.SIGN, measured={"times": stack.places, "distinct": stack.distinct, "module": stack.path})
