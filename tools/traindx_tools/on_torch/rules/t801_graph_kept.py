"""A variable keeps the autograd graphs of finished steps.

After the optimizer's step nothing needs the graph of that step any more: it is freed when the last tensor of it goes.
A variable that keeps such tensors (`losses.append(loss)`, `total += loss`, a hidden state carried over without
`detach()`) keeps every activation of every step. Memory grows by a step's activations each step until an allocation
fails somewhere that is not at fault.

The walk starts at the program's own variables and compares what they hold at steps 4, 8, 16, 32 and so on: a variable
whose tensors with a graph grow at each look, or whose graph is half as large again and more at each, is the one that
keeps them. The variable is named, with how many steps it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.memory.growth import Growth

RULE = Rule(
    id="T801",
    name="graph-kept",
    title="A variable keeps the autograd graphs of finished steps",
    severity=Severity.CRITICAL,
    sees="the program's variables at steps 4, 8, 16, ...: how many tensors with a graph each holds, and how long it is",
    matters="every kept graph holds its step's activations: memory grows each step until an allocation fails",
    alike=("a replay buffer or a window: bounded; what was said while it filled up is taken back once it holds no more",
           "a longer sequence or a larger batch from some step on: memory steps up once and stays"),
    confirm=("`print(type(VARIABLE[-1].grad_fn))` after a step: anything but NoneType keeps a graph",
             "append `.item()` or `.detach()`: the growth is gone in the next run"),
    thresholds={
        "gain between two looks": Threshold(2, "tensors", "more than a step's own variables vary by"),
        "chained graph": Threshold(1.5, "x nodes a look", "looks lie a factor of two apart: a chain doubles"),
    },
)


def check(growths: tuple[Growth, ...], source: str, rank: int) -> Iterator[Finding]:
    """One finding for each variable whose graphs grow; at most three."""
    kept = [g for g in growths if g.graphs_per_step > 0 or g.nodes_per_step > 0]
    for growth in kept[:3]:
        where = growth.where(rank)
        yield RULE.finding(_statement(growth), where, source, bearing=Bearing.CAUSE, measured={
            "variable": growth.variable, "tensors_per_step": round(growth.graphs_per_step, 3),
            "nodes_per_step": round(growth.nodes_per_step, 1), "tensors": growth.with_graph})


def _statement(growth: Growth) -> str:
    span = f"between steps {growth.first_step} and {growth.last_step}"
    if growth.graphs_per_step > 0:
        return (f"{growth.in_words} holds {growth.with_graph} tensors with their autograd graph and gains "
                f"{growth.graphs_per_step:.2g} a step {span}: the activations of every step are kept")
    return (f"the autograd graph behind {growth.in_words} grows by {growth.nodes_per_step:.0f} nodes a step {span}: "
            "each step's graph is chained to the next and none is freed")
