"""The state of a function that trains: what it was at the first call, and how far it has moved since."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.on_jax.measures.roles import arguments, signature, state_in
from traindx_tools.on_jax.probe import Call
from traindx_tools.on_jax.stale.sample import Sample, sample_of
from traindx_tools.on_jax.state import reference
from traindx_tools.on_jax.tracing import argument_names
from traindx_tools.on_jax.watched import Watched

MOST_LEAVES = 512
"""Arrays of floats of one call whose samples are kept: 8 MiB."""
MOST_VERSIONS = 8
EAGER = 8
"""Calls that are all looked at; later ones where their number is a power of two, or where something was evaluated."""


@dataclass(eq=False)
class Version:
    """What an array was after so many calls. `moved`: the distance to it by now, None before any look."""

    sample: Sample
    step: int = 0
    moved: float | None = None


@dataclass(eq=False)
class Leaf:
    """One array among the arguments. `versions`: its first values, and later ones that a function captured."""

    index: int
    name: str
    versions: list[Version]
    reference: Any

    @property
    def first(self) -> Version:
        """What it was at the first call."""
        return self.versions[0]

    @property
    def keys(self) -> tuple[str, ...]:
        """What its path is made of, without the name of the argument."""
        return keys_of(self.name)


def keys_of(name: str) -> tuple[str, ...]:
    """`("enc", "w")` for `params['enc']['w']`."""
    return tuple(re.findall(r"\w+", name))[1:]


def same_path(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the shorter of two paths is the end of the longer one."""
    n = min(len(one), len(other))
    return n > 0 and tuple(one[-n:]) == tuple(other[-n:])


@dataclass(eq=False)
class Trained:
    """One function that trains, by its calls. `whole`: leaves of arguments whose arrays the output holds again."""

    watched: Watched
    leaves: list[Leaf]
    whole: frozenset[int] = frozenset()
    calls: int = 0
    evaluated: bool = False
    """Something else was called since the last look."""
    waits: bool = True
    """A look is due."""
    sought: dict[bytes, Sample] = field(default_factory=dict)
    """What functions captured that were compiled since the last call: is it the state of now?"""
    last: list[Any] = field(default_factory=list)
    """References to the batch of the last call."""

    @property
    def handed(self) -> frozenset[int]:
        """Numbers of the argument leaves that are handed on from call to call."""
        feeding = self.watched.feeding
        return self.whole | frozenset(feeding.fed.values() if feeding is not None else ())

    def state(self) -> list[Leaf]:
        """The leaves that are handed on, and not its batch."""
        handed = self.handed
        return [leaf for leaf in self.leaves if leaf.index in handed]

    def called(self, leaves: Sequence[Any]) -> None:
        """It is about to be called with these leaves: how far have they moved?"""
        n = self.calls
        self.calls += 1
        self.waits = self.waits or n < EAGER or n & (n - 1) == 0 or self.evaluated or bool(self.sought)
        if n and self.waits and self._look(leaves):
            self.waits = self.evaluated = False

    def _look(self, leaves: Sequence[Any]) -> bool:
        told = []
        for leaf in self.leaves:
            now = sample_of(leaves[leaf.index], wait=bool(self.sought)) if leaf.index < len(leaves) else None
            if now is None:
                return False
            told.append(now)
        for leaf, now in zip(self.leaves, told, strict=True):
            for version in leaf.versions:
                version.moved = version.sample.distance(now)
            if now.telling and now.digest in self.sought and len(leaf.versions) < MOST_VERSIONS:
                leaf.versions.append(Version(now, self.calls - 1))
        self.sought = {}
        return True


def first_call(call: Call, leaves: Sequence[Any]) -> list[Leaf]:
    """What the arguments of a first call are."""
    found: list[Leaf] = []
    for index, (name, leaf) in enumerate(zip(argument_names(call.watched, call.args, call.kwargs), leaves,
                                             strict=True)):
        sample = sample_of(leaf) if len(found) < MOST_LEAVES else None
        if sample is not None:
            found.append(Leaf(index, name, [Version(sample)], reference(leaf)))
    return found


def handed_on(call: Call) -> frozenset[int]:
    """The leaves of arguments whose arrays the output holds one after another."""
    import jax

    given = dict(arguments(call.args, call.kwargs))
    states = state_in({name: signature(value) for name, value in given.items()}, call.output)
    found, index = set(), 0
    for name, value in given.items():
        count = len(jax.tree_util.tree_leaves(value))
        if name in states:
            found |= set(range(index, index + count))
        index += count
    return frozenset(found)
