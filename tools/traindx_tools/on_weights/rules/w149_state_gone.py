"""Of two training checkpoints of one run the later one has lost a part of its state, or keeps an old loss scale.

A run that goes on needs more than weights: the state of the loss scale, of the schedule, of the random generators and
of the average. Where the earlier checkpoint keeps it beside the optimizer and the later one keeps the optimizer alone,
something stopped to write it. The loss scale counts the steps since it last changed: a count that is the same after
many more steps is that of the earlier checkpoint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule, Threshold

_FEWEST = 2

RULE = Rule(
    id="W149",
    name="state-gone",
    title="A part of the training state is gone, or old",
    severity=Severity.MEDIUM,
    sees="entries beside the optimizer in the earlier checkpoint and in the later one; the count of the loss scale",
    matters="Resuming starts this part anew: another scale, another order of the data, another rate.",
    alike=("a last checkpoint for use alone: it has no optimizer either", "an entry that was renamed: it is there"),
    confirm=("print the keys of both checkpoints", "compare what the program saves with what it loads"),
    thresholds={"fewest": Threshold(_FEWEST, "values or a tensor", "that an entry holds: a single number is no state")},
)
_STATE = re.compile(r"(?i)(?:^|_)(?:rngs?|random\w*|(?:grad_?)?scaler\w*|loss_scale\w*|(?:lr_?)?sched\w*|ema\w*"
                    r"|sampler\w*|data_?loader\w*|normali[sz]er\w*)(?:$|_)")
"""How trainers call what they keep beside the weights and the optimizer."""
_STEP = re.compile(r"(?i)(?:^|\.)(?:global_?|train_?|num_?)?(?:step|steps|iteration|iter|iters|updates?)$")
_NESTED = frozenset({"torch", "msgpack", "orbax"})
"""Formats that keep what belongs together under one key."""


def check(seen: Seen) -> Iterator[Finding]:
    """Of a later checkpoint beside an earlier one, where the weights moved."""
    if seen.other is None or not seen.main or not any(c > 0 for c in seen.changes.values()):
        return
    earlier, later = seen.other.checkpoint, seen.checkpoint
    more = _further(later, earlier)
    if not more or later.format not in _NESTED or not _training(later) or not _training(earlier):
        return
    kept = _entries(later)
    for entry, count in _entries(earlier).items():
        renamed = any(_STATE.search(k) and k not in _entries(earlier) for k in kept)
        if count >= _FEWEST and not kept.get(entry) and _STATE.search(entry) and not renamed:
            yield _finding(seen, "gone", entry, f"{earlier.path} keeps '{entry}' beside the optimizer and "
                           f"{later.path}, {more:,} steps later, does not: resuming starts it anew")
    yield from _scale(seen, earlier, later, more)


def _further(later: Checkpoint, earlier: Checkpoint) -> int:
    """The steps that a checkpoint is ahead by its own count of them; 0 where it is not, or does not say."""
    found = [int(v) - int(b) for k, v in later.values.items() if _STEP.search(k) and k.count(".") <= 1
             and type(v) is int and type(b := earlier.values.get(k)) is int]
    return max(0, min(found, default=0))


def _training(checkpoint: Checkpoint) -> bool:
    return bool(checkpoint.optimizers) or any(p.auxiliary for p in checkpoint.parts)


def _entries(checkpoint: Checkpoint) -> Counter[str]:
    """What lies at the top of the file beside the model: values, and twice as many for a tensor."""
    found = Counter(k.partition(".")[0] for k in checkpoint.values)
    for part in checkpoint.parts:
        if part is not checkpoint.weights:
            for tensor in part.tensors.values():
                found[tensor.key.partition(".")[0]] += _FEWEST
    return found


def _scale(seen: Seen, earlier: Checkpoint, later: Checkpoint, more: int) -> Iterator[Finding]:
    """A loss scale whose count of steps stood still."""
    for key, count in later.values.items():
        head, _, last = key.rpartition(".")
        if last != "_growth_tracker" or type(count) is not int or count <= 0 or earlier.values.get(key) != count:
            continue
        scale, interval = later.values.get(f"{head}.scale"), later.values.get(f"{head}.growth_interval")
        if scale is not None and scale == earlier.values.get(f"{head}.scale") and more != interval:
            yield _finding(seen, "old", head, f"the loss scale in {later.path} has counted {count:,} steps since it "
                           f"last changed, as {more:,} steps earlier in {earlier.path}: it is of that checkpoint")


def _finding(seen: Seen, kind: str, entry: str, statement: str) -> Finding:
    return RULE.finding(statement, seen.where(next(iter(seen.part.tensors))), seen.path, bearing=Bearing.SIGN,
                        measured={"kind": kind, "name": entry})
