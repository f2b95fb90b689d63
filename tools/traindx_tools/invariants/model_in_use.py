"""The optimizer that is stepped holds the model by which the loss is computed.

A model is rebuilt, or copied, after the optimizer was built over the first one: gradients reach the second, the steps
go over the first. Told only where everything is known: what the one optimizer of the loop holds, and by which modules
each loss of the loop is computed. A module that it holds and that is called in the loop may take part by a way that
the reader did not see.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach
from traindx_tools.program.entities import Model, Optimizer
from traindx_tools.program.moments import Section, Spot, training_loop
from traindx_tools.program.timeline import Moment


def over_another_model(run: Section) -> Iterator[Breach]:
    """Look at every loop of a run that trains with one optimizer."""
    seen: dict[int, Section] = {}
    for _, path in run.acts(Moment.STEP):
        loop = training_loop(path)
        if loop is not None:
            seen.setdefault(id(loop), loop)
    for loop in seen.values():
        yield from _breaches(run, loop)


def _breaches(run: Section, loop: Section) -> Iterator[Breach]:
    steps = loop.acts(Moment.STEP)
    moved = {id(o): o for a, _ in steps for o in a.optimizers}
    passes = [a.reached for a, _ in loop.acts(Moment.BACKWARD)]
    if len(moved) != 1 or not all(passes):
        return
    optimizer = next(iter(moved.values()))
    owned = frozenset(i for m in optimizer.holds or () for i in m.inside)
    used = frozenset(i for reached in passes for i in reached)
    if not owned or owned & used or not all(m.born is not None or m.layers_known for m in optimizer.holds or ()):
        return
    called = [m for a, _ in run.acts(Moment.FORWARD) for m in a.models or ()]
    if any(m.inside & owned for a, _ in loop.acts(Moment.FORWARD) for m in a.models or ()):
        return
    trained = [m for m in {id(m): m for m in called}.values() if m.born is not None and m.inside & used]
    trained.sort(key=lambda m: (m.born.file, m.born.line))
    if trained:
        yield _breach(steps[0][0].at, optimizer, trained[0])


def _breach(step: Spot, optimizer: Optimizer, trained: Model) -> Breach:
    held = next(iter(optimizer.holds or ()))
    return Breach(
        "C108",
        f"The optimizer stepped at {step} holds the model made at {held.made}, but the loss is computed by another "
        f"one, made at {trained.born}: what is trained is never updated",
        trained.born, optimizer.known,
        {"kind": "other model", "held": held.made or "?", "trained_line": trained.born.line})
