"""A variable keeps more tensors each step, without their graph, and they are large.

Predictions collected for a metric, features cached "for later", a history of hidden states: detached, so that no graph
is kept, yet on the device and never let go. Harmless where it is a few bytes; a leak where it is a batch a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.memory.growth import Growth

BYTES_PER_STEP = 256 * 1024

RULE = Rule(
    id="T802",
    name="tensors-kept",
    title="A variable keeps more data each step",
    severity=Severity.MEDIUM,
    sees="the program's variables at steps 4, 8, 16, ...: bytes of the tensors and arrays that each holds",
    matters="a batch kept each step is gigabytes after some thousand steps",
    alike=("a replay buffer or a cache that fills up to its capacity and then stays",
           "predictions of one validation pass, let go at its end"),
    confirm=("print the variable's length every hundred steps: it never falls",),
    thresholds={"growth": Threshold(BYTES_PER_STEP, "bytes a step",
                                    "2.5 GiB in 10,000 steps: below that it rarely decides a run")},
)


def check(growths: tuple[Growth, ...], source: str, rank: int) -> Iterator[Finding]:
    """One finding for each variable that grows by more than the threshold a step; at most three."""
    large = [g for g in growths
             if g.bytes_per_step >= BYTES_PER_STEP and not g.graphs_per_step and not g.nodes_per_step]
    for growth in large[:3]:
        where = growth.where(rank)
        statement = (f"{growth.in_words} holds {growth.tensors} tensors or arrays and gains "
                     f"{growth.bytes_per_step / 2**20:.1f} MiB a step between steps {growth.first_step} and "
                     f"{growth.last_step}, without a graph")
        yield RULE.finding(statement, where, source, bearing=Bearing.SIGN, measured={
            "variable": growth.variable, "bytes_per_step": round(growth.bytes_per_step), "tensors": growth.tensors})
