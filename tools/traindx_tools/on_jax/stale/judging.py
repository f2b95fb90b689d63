"""Which functions compute with a copy of the state that the training has moved away from.

An array that the training moves is compared with what other functions hold. Roles decide what that means: whoever
computes with the newer values as well compares the two (a penalty on the distance, a reference policy); whoever makes
a state sets one back; what goes into the training is its target or teacher; and where another function evaluates the
newer values, the copy is a baseline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.on_jax.places import Place
from traindx_tools.on_jax.rules import j705_stale_state as rule
from traindx_tools.on_jax.rules.j705_stale_state import MOVED, StaleUse
from traindx_tools.on_jax.stale.others import Given, Look, Other
from traindx_tools.on_jax.stale.trained import Leaf, Trained, Version, keys_of, same_path

BESIDE = 0.5
"""Share of the training's steps from which a function is called beside them and is a part of them."""
MOST = 0.5
"""Share of the arrays that training moves which a copy has to hold."""


@dataclass(frozen=True, eq=False)
class _Copy:
    """A leaf of the state in an older version, and where it is used."""

    leaf: Leaf
    version: Version
    place: Place | None = None


def stale_states(trained: Sequence[Trained], others: Sequence[Other]) -> Iterator[StaleUse]:
    """At most one use for each function."""
    for other in others:
        found = [u for u in (_use(one, other, others) for one in trained) if u is not None]
        if found:
            yield max(found, key=lambda u: len(u.names))


def _use(one: Trained, other: Other, others: Sequence[Other]) -> StaleUse | None:
    moved = [leaf for leaf in one.state() if (leaf.first.moved or 0.0) > 0.0]
    if other.trains:
        return _in_training(one, other, moved) if other.watched is one.watched else None
    if not moved or not other.after.get(one.watched.number) or _makes_state(other, moved):
        return None
    held = list(_held(other, moved))
    unread = [c for c in held if _given_and_not_read(one, other, c.leaf)]
    steps = _steps_after(one, other, min((c.version.step for c in held), default=0))
    compared = any(_newer(one, look, moved, other) for look in other.looks)
    batch = _takes_batch(one, other)
    evaluated = compared or any(_newer_read(one, o, moved) and (_takes_batch(one, o) or not batch)
                                for o in others if o is not other and not o.trains)
    if unread and steps:
        return _told(rule.UNREAD, one, other, unread, moved, steps, evaluated)
    if evaluated or _part_of_training(one, other, steps):
        return None
    held = [c for c in held if c.version.sample.telling]
    if steps and _most(held, moved):
        return _told(rule.CAPTURED, one, other, held, moved, steps, False)
    passed, times = _passed(one, other, moved)
    return _told(rule.PASSED, one, other, passed, moved, times, False) if times and _most(passed, moved) else None


def _told(kind: str, one: Trained, other: Other, copies: Sequence[_Copy], moved: Sequence[Leaf], times: int,
          evaluated: bool) -> StaleUse | None:
    far = max((c.version.moved or 0.0 for c in copies), default=0.0)
    if far < MOVED:
        return None
    place = next((c.place for c in copies if c.place is not None), None)
    made = other.watched.place
    return StaleUse(kind, other.watched.name, one.watched.name, tuple(c.leaf.name for c in copies), len(moved),
                    max(c.version.step for c in copies), far, other.calls, times, one.calls, evaluated,
                    (place.file, place.line) if place is not None else made, place.quote if place is not None else "")


def _in_training(one: Trained, other: Other, moved: Sequence[Leaf]) -> StaleUse | None:
    """The step itself holds an array of its state as a constant and does not read the one that it is given."""
    if other.jaxpr is None or len(other.inputs) != len(other.jaxpr.jaxpr.invars):
        return None
    unread = [c for c in _held(other, moved) if (i := other.inputs.get(c.leaf.index)) is not None
              and not other.reads >> i & 1]
    return _told(rule.TRAINING, one, other, unread, moved, one.calls - 1, False) if unread and one.calls > 1 else None


def _held(other: Other, moved: Sequence[Leaf]) -> Iterator[_Copy]:
    """What a function captured that is an older version of a leaf: equal bytes, or the very object."""
    for leaf in moved:
        for version in leaf.versions:
            told = next((c for c in other.constants if c.sample.type == version.sample.type and (
                (version.sample.telling and c.sample.digest == version.sample.digest)
                or (version is leaf.first and c.reference is not None and c.reference is leaf.reference))), None)
            if told is not None:
                yield _Copy(leaf, version, told.place)
                break


def _steps_after(one: Trained, other: Other, step: int) -> int:
    return sum(count > step for count in other.after.get(one.watched.number, ()))


def _is(given: Given, leaf: Leaf) -> bool:
    return given.sample.type == leaf.first.sample.type and same_path(keys_of(given.name), leaf.keys)


def _is_old(given: Given, leaf: Leaf) -> bool:
    return given.sample.digest == leaf.first.sample.digest


def _given_and_not_read(one: Trained, other: Other, leaf: Leaf) -> bool:
    """The newer values come in as an argument, and no output is computed from them."""
    late = [look for look in other.looks if look.steps.get(one.watched.number, 0) > 0]
    given = [g for look in late for g in look.given if _is(g, leaf)]
    return any(not _is_old(g, leaf) for g in given) and not any(other.does_read(g) for g in given)


def _newer(one: Trained, look: Look, moved: Sequence[Leaf], other: Other) -> bool:
    """Whether what is computed with holds the state in other than its first values: by its paths, or by its types."""
    telling = [leaf for leaf in moved if leaf.first.sample.telling]
    first = {leaf.first.sample.digest for leaf in telling}
    types = Counter({leaf.first.sample.type for leaf in telling})
    given = [g for g in look.given if g.sample.digest not in first and g.sample.type in types and other.does_read(g)]
    by_path = any(_is(g, leaf) for g in given for leaf in telling)
    distinct = len(first)
    return look.steps.get(one.watched.number, 0) > 0 and (
        by_path or len(given) >= (1 if distinct == 1 else max(2, MOST * distinct)))


def _newer_read(one: Trained, other: Other, moved: Sequence[Leaf]) -> bool:
    """Whether another function computes something of the newer values that is no state again."""
    return not _makes_state(other, moved) and any(_newer(one, look, moved, other) for look in other.looks)


def _takes_batch(one: Trained, other: Other) -> bool:
    """Whether it has arrays as arguments beside those of a state."""
    state = {leaf.first.sample.type for leaf in one.state()}
    return any(look.types - state for look in other.looks)


def _makes_state(other: Other, moved: Sequence[Leaf]) -> bool:
    """Whether arrays of the state come out of it: an update, an average, a way back to the start."""
    wanted = Counter(leaf.first.sample.type for leaf in moved if leaf.first.sample.telling)
    made = Counter(other.computes)
    return bool(wanted) and sum((wanted & made).values()) >= MOST * sum(wanted.values())


def _part_of_training(one: Trained, other: Other, steps: int) -> bool:
    """Its output goes into the training, or it is called beside most steps with the same batch."""
    return other.fed > 0 or (steps >= BESIDE * one.calls and other.shared >= BESIDE * steps)


def _passed(one: Trained, other: Other, moved: Sequence[Leaf]) -> tuple[list[_Copy], int]:
    """Arguments with the first values, in every look after the training has begun; and in how many looks."""
    late = [look for look in other.looks if look.steps.get(one.watched.number, 0) > 0]
    telling = [leaf for leaf in moved if leaf.first.sample.telling]
    found = [leaf for leaf in telling
             if late and all(any(_is_old(g, leaf) and other.does_read(g) for g in look.given) for look in late)]
    return [_Copy(leaf, leaf.first) for leaf in found], len(late)


def _most(copies: Sequence[_Copy], moved: Sequence[Leaf]) -> bool:
    """Whether they are most of what moves, each value counted once: an average begins with the same ones."""
    telling = {leaf.first.sample.digest for leaf in moved if leaf.first.sample.telling}
    return bool(telling) and len({c.leaf.first.sample.digest for c in copies} & telling) >= MOST * len(telling)
