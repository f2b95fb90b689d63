"""Of two checkpoints of one run a part of the state that follows the model is the same to the bit, and the model moved.

Moments of an optimizer change with each step, a moving average with each update, a schedule with each count. They are
found by their place in the file's own tree (`optimizer`, `opt_state.0.mu`, `ema`, `scheduler.last_epoch`). An average
is told where each of its tensors has a counterpart in what moved. A reference or a teacher that is kept on purpose,
an optimizer whose own parameters stood still as well, and averages of frozen blocks are left alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.averages import AVERAGE, followed
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.state_tree import FEWEST, Branch, leaves, same, still_branches
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W122",
    name="part-stood-still",
    title="A part of the training state stood still while the model moved",
    severity=Severity.HIGH,
    sees="Every tensor of two files by its place in them, bit by bit: moments, averages, target networks, schedules.",
    matters="What should follow the model does not: it was not updated, or an old copy of it is saved again and again.",
    alike=("a reference model kept on purpose", "a target network that is copied every so many steps",
           "the optimizer of a network that was not trained between the two files"),
    confirm=("compare the part with a third checkpoint", "print one of its values before and after the update"),
    thresholds={
        "moved": Threshold(0.5, "share of the model's tensors that moved", "else most is frozen"),
        "paired": Threshold(0.8, "share of the part's tensors with a counterpart that moved", "buffers need not"),
    },
)
_MOVED, _PAIRED = 0.5, 0.8
_MOMENT = re.compile(r"^(?:mu|nu|trace|momentum\w*|velocity|exp_avg|exp_avg_sq|square_avg|sum|sum_of_squares|m|v)$")
_SELDOM = re.compile(r"(?:^|\.)max_exp_avg_sq(?:\.|$)")
"""A maximum need not grow."""
_STEPS = ("global_step", "step", "steps", "iteration", "iter", "num_steps", "trainer_step")


def check(seen: Seen) -> Iterator[Finding]:
    """Once a pair of files."""
    if seen.other is None or not seen.main:
        return
    before, after = leaves(seen.checkpoint), leaves(seen.other.checkpoint)
    both = {k: t for k, t in before.items() if k in after and after[k].shape == t.shape and not _SELDOM.search(k)}
    roots = _optimizer_roots(seen, both)
    follows = {k for k in both if _under(k, roots) or followed(k)}
    model = [k for k in both if k not in follows]
    still = frozenset(k for k, t in both.items() if same(t, after[k]))
    moved = [k for k in model if k not in still]
    if len(moved) < max(FEWEST, _MOVED * len(model)):
        return
    yield from _schedules(seen)
    for branch in still_branches(both, still):
        if len(branch.keys) >= FEWEST:
            yield from _told(seen, branch, both, roots, [k for k in model if k in still], moved)


def _optimizer_roots(seen: Seen, keys: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Where the states of optimizers lie: those of torch, and what flax and others call so."""
    found = [o.key or "optimizer" for o in seen.checkpoint.optimizers]
    for key in keys:
        parts = key.split(".")
        at = next((i for i, p in enumerate(parts[:-1]) if re.match(r"(?i)(?:\w*_)?opt(?:im\w*|_\w+|_?state\w*)?$", p)),
                  None)
        if at is not None:
            found.append(".".join(parts[:at + 1]))
    return tuple(dict.fromkeys(found))


def _under(key: str, roots: tuple[str, ...]) -> str:
    return next((r for r in roots if key.startswith(f"{r}.")), "")


def _told(seen: Seen, branch: Branch, both: Mapping[str, Tensor], roots: tuple[str, ...], frozen: list[str],
          moved: list[str]) -> Iterator[Finding]:
    root = _under(branch.keys[0], roots) or _under(f"{branch.path}.", roots)
    if root:
        if f"{root}.".startswith(f"{branch.path}.") or _MOMENT.match(branch.path.rpartition(".")[2]):
            yield from _optimizer(seen, branch, both, frozen, moved)
        return
    copies: dict[str, list[str]] = {}
    for key in branch.keys:
        copies.setdefault(followed(key), []).append(key)
    for head, keys in copies.items():
        whole = sum(k.startswith(f"{head}.") for k in both)
        if not head or len(keys) < FEWEST:
            continue
        if len(keys) == whole:
            if _paired([both[k] for k in keys], [both[k] for k in moved]) >= _PAIRED:
                yield _average(seen, head, len(keys), len(moved), len(moved) + len(frozen))
        elif AVERAGE.search(head) and _weights_moved(keys, head, moved):
            yield _average(seen, branch.path, len(keys), len(moved), len(moved) + len(frozen))


def _weights_moved(keys: Iterable[str], head: str, moved: Iterable[str]) -> bool:
    """Whether the weights of a part of an average, by their names, all moved."""
    ends = {k.partition(".")[2] for k in moved} | set(moved)
    return all(k.removeprefix(f"{head}.") in ends for k in keys)


def _paired(ones: list[Tensor], others: list[Tensor]) -> float:
    """The share of tensors for which there is another one of the same shape, each taken once."""
    left = Counter(t.shape for t in others)
    return sum(min(n, left[s]) for s, n in Counter(t.shape for t in ones).items()) / len(ones)


def _optimizer(seen: Seen, branch: Branch, both: Mapping[str, Tensor], frozen: list[str], moved: list[str]
               ) -> Iterator[Finding]:
    """Moments of parameters that moved, and that no part that stood still explains."""
    shapes = {both[k].shape for k in branch.keys}
    held = {both[k].shape for k in frozen}
    if len(shapes & {both[k].shape for k in moved}) < _PAIRED * len(shapes) or len(shapes & held) > len(shapes) / 2:
        return
    assert seen.other is not None
    yield _finding(
        seen, branch.path, f"is the same to the bit in both files ({len(branch.keys)} tensors) while {len(moved)} of "
        f"{len(moved) + len(frozen)} tensors of the model moved: each step changes moments, so they are of an earlier "
        "save, or of an optimizer that did not step", "moments", Bearing.CAUSE, None, len(branch.keys), len(moved))


def _average(seen: Seen, head: str, tensors: int, moved: int, of: int) -> Finding:
    target = not AVERAGE.search(head)
    why = ("it was not updated, unless it is copied only every so many steps" if target
           else "it was not updated, or an old copy was saved")
    return _finding(
        seen, head, f"is the same to the bit in both files ({tensors} tensors) while {moved} of {of} tensors of the "
        f"model moved: {why}", "target" if target else "average", Bearing.SIGN if target else Bearing.CAUSE,
        Severity.MEDIUM if target else None, tensors, moved)


def _schedules(seen: Seen) -> Iterator[Finding]:
    """A schedule that counted as the run does in the first file, and did not count on with it."""
    assert seen.other is not None
    one, two = seen.checkpoint.values, seen.other.checkpoint.values
    grew = [k for k, v in one.items() if k.rpartition(".")[2] in (*_STEPS, "epoch") and _number(v)
            and _number(two.get(k)) and float(two[k]) > float(v)]
    for key in (k for k in one if k.rpartition(".")[2] == "last_epoch"):
        count, later = one[key], two.get(key)
        counter = next((k for k in grew if _number(count) and abs(float(one[k]) - float(count)) <= 1 < float(count)),
                       None)
        if counter is not None and later == count:
            yield _finding(
                seen, key, f"is {count} in both files while {counter} went from {one[counter]} to {two[counter]}: the "
                "schedule stood still, or an old copy was saved", "schedule", Bearing.CAUSE, Severity.MEDIUM, 1, 0)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _finding(seen: Seen, part: str, what: str, kind: str, bearing: Bearing, severity: Severity | None, tensors: int,
             moved: int) -> Finding:
    assert seen.other is not None
    return RULE.finding(
        f"{part} {what} ({seen.path}, {seen.other.path})", Location(file=seen.path, module=part), seen.path,
        bearing=bearing, severity=severity, measured={"kind": kind, "name": part, "tensors": tensors, "moved": moved})
