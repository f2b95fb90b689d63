"""Ratios of probabilities of which both sides are what the policy of this very step says."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import Tensor, Thing, number
from traindx_tools.program.results import OwnRatio

_NEW_SAMPLES = frozenset({"sample", "rsample", "generate", "rollout", "collect"})


def own_ratios(project: Project) -> Iterator[OwnRatio]:
    """Every one that a loop without new samples repeats."""
    told: set[str] = set()
    for loop in project.training_loops:
        asked = {(p.event.file.path, p.event.line): p for p in loop.of("log_prob")}
        ratios = {_taken(p.event): p.event for p in loop.of("exp")}
        for place in loop.places if ratios else ():
            event, ratio = place.event, ratios.get(place.event.result)
            if event.kind != "operation" or event.name != "-" or ratio is None or str(ratio.site) in told:
                continue
            new, old = event.args[:2]
            if not isinstance(new, Tensor) or not isinstance(old, Tensor) or new.grad is False or old.grad is not False:
                continue
            first, second = (asked.get((v.site.path, v.site.line)) if v.site else None for v in (new, old))
            around = next((b for b in reversed(place.loops) if _repeats(loop, b)), None)
            if around is not None and first is not None and second is not None and _same(first, second, place):
                told.add(str(ratio.site))
                yield OwnRatio(ratio.file.segment(ratio.node), spot_of(ratio), str(old.site), around.line,
                               number(around.count))


def _taken(event: Event) -> object:
    return event.args[0] if event.args else event.receiver


def _same(first: Place, second: Place, at: Place) -> bool:
    """Whether two distributions of one kind are asked for the same, in the turn of the loop in which they meet."""
    one, other = first.event.receiver, second.event.receiver
    kinds = [v.type if isinstance(v, Thing) else v for v in (one, other)]
    given = [[ast.unparse(a) for a in e.node.args] if isinstance(e.node, ast.Call) else []
             for e in (first.event, second.event)]
    return kinds[0] == kinds[1] and given[0] == given[1] and first.loops == second.loops == at.loops


def _repeats(loop: TrainingLoop, block: Block) -> bool:
    """Whether a loop over a range goes several times over samples that are made outside of it."""
    if not (isinstance(block.subject, Thing) and block.subject.type == "range") or _NEW_SAMPLES & block.methods:
        return False
    times = number(block.count)
    acts = any(p.event.args and block in p.path for p in loop.of("step"))
    return not acts and (times is None or times >= 2) and "step" in block.methods
