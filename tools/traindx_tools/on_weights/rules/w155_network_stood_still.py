"""Of several networks in two checkpoints of one run one is the same to the bit, although its optimizer went on.

An optimizer whose moments changed and whose rate is not zero has made steps, and each step moves its parameters. Where
the weights that are saved beside it did not move, it steps parameters that are no part of the saved network (a copy
of it, the network before it was built anew), or an old copy of the network is saved again and again. A network whose
optimizer stood still as well was not trained between the two, or is frozen, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint, OptimizerState, Part
from traindx_tools.on_weights.networks import networks, parameters, trained_by
from traindx_tools.on_weights.parameter_names import shaped
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.single_values import number_of
from traindx_tools.on_weights.state_tree import same
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W155",
    name="network-stood-still",
    title="A network stood still although its optimizer made steps",
    severity=Severity.HIGH,
    sees="Each optimizer's moments and step counts in two files, and the weights that it trains, bit by bit.",
    matters="The other networks are trained against one that never learns.",
    alike=("a network that is trained only now and then: its optimizer stood still as well",
           "a rate of zero: warm-up, or the end of the schedule", "two files of the same step",
           "a copy that follows (average, target)"),
    confirm=("compare the id of the parameters in optimizer.param_groups with those of the saved network",
             "print one weight before and after optimizer.step()"),
    thresholds={"changed": Threshold(0.8, "share of the moments that changed", "single layers may have no gradient")},
)
_CHANGED = 0.8


def check(seen: Seen) -> Iterator[Finding]:
    """Once a pair of files, for each optimizer of one network among several."""
    if seen.other is None or not seen.main:
        return
    later = {o.key: o for o in seen.other.checkpoint.optimizers}
    moved = [p for p in networks(seen) if _moves(p, seen.other.checkpoint)]
    for optimizer in seen.checkpoint.optimizers:
        mine = trained_by(seen, optimizer)
        if len(mine) != 1 or optimizer.key not in later or not any(p is not mine[0] for p in moved):
            continue
        if _stands(mine[0], seen.other.checkpoint) and _stepped(optimizer, later[optimizer.key]):
            yield _finding(seen, mine[0], optimizer, later[optimizer.key], [p for p in moved if p is not mine[0]])


def _pairs(part: Part, other: Checkpoint) -> list[bool]:
    """Whether each parameter is the same in the part under the same name of the other file; [] where one is not there.
    """
    theirs = next((p for p in other.parts if p.key == part.key), None)
    own = parameters(part)
    if theirs is None or any(t.name not in theirs.tensors for t in own):
        return []
    return [same(t, theirs.tensors[t.name]) for t in own]


def _stands(part: Part, other: Checkpoint) -> bool:
    found = _pairs(part, other)
    return bool(found) and all(found)


def _moves(part: Part, other: Checkpoint) -> bool:
    found = _pairs(part, other)
    return bool(found) and not all(found)


def _stepped(one: OptimizerState, two: OptimizerState) -> bool:
    """Whether it made steps of a size: moments changed, and no rate is zero in either file."""
    rates = [g.get("lr") for o in (one, two) for g in o.groups]
    if not all(isinstance(r, (int, float)) and r > 0 for r in rates):
        return False
    pairs = [(a, b) for k in one.state if (a := shaped(one.state[k])) is not None
             and (b := shaped(two.state.get(k))) is not None]
    changed = sum(not same(a, b) for a, b in pairs)
    counts = _steps(one), _steps(two)
    return bool(pairs) and changed >= _CHANGED * len(pairs) and (None in counts or counts[0] != counts[1])


def _steps(optimizer: OptimizerState) -> float | None:
    states = [s for s in optimizer.state.values() if isinstance(s, Mapping)]
    found = [n for s in states if (n := number_of(s.get("step"))) is not None]
    return max(found, default=None)


def _finding(seen: Seen, part: Part, one: OptimizerState, two: OptimizerState, moved: list[Part]) -> Finding:
    assert seen.other is not None
    counts = [n for n in (_steps(one), _steps(two)) if n is not None]
    went = f" made steps from {min(counts):g} to {max(counts):g}" if len(counts) == 2 else "'s moments changed"
    others = ", ".join(p.key or "the weights" for p in moved[:3])
    return RULE.finding(
        f"all {len(parameters(part))} tensors of {part.key or 'the weights'} are the same to the bit in {seen.path} "
        f"and {seen.other.path}, although {one.key or 'its optimizer'}{went} and {others} moved: "
        "the optimizer steps parameters that are not those saved, or an old copy is saved",
        Location(file=seen.path, module=part.key), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "network", "name": part.key, "optimizer": one.key, "tensors": len(parameters(part)),
                  "moved": tuple(p.key for p in moved[:8])})
