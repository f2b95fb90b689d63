"""Whose arrays a value holds: origins, each with the part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Origin = tuple[int, tuple[str, ...], int]
"""What a value was made by, the part of it, and the number of the call that took it (0: it is there)."""


@dataclass(frozen=True)
class Held:
    """What a name holds: origins, and parts of it that are known one by one."""

    origins: frozenset[Origin] = frozenset()
    parts: Mapping[str, Held] = field(default_factory=dict)

    def part(self, name: str) -> Held:
        """An attribute or item of it."""
        if name in self.parts:
            return self.parts[name]
        return Held(frozenset((root, (*path, name), gone) for root, path, gone in self.origins))

    def all(self) -> frozenset[Origin]:
        """Every origin in it."""
        return self.origins.union(*(p.all() for p in self.parts.values()))

    def joined(self, other: Held) -> Held:
        """What either may hold."""
        if self == other:
            return self
        names = self.parts.keys() | other.parts.keys()
        return Held(self.origins | other.origins, {n: self.part(n).joined(other.part(n)) for n in names})

    def without(self, taken: Origin, call: int) -> Held:
        """The same after a call took an origin: what is at or below it is gone, what holds it has a part that is."""
        root, path, _ = taken
        parts = {n: p.without(taken, call) for n, p in self.parts.items()}
        own: set[Origin] = set()
        for origin in self.origins:
            if origin[0] == root and origin[1][: len(path)] == path and not origin[2]:
                origin = (root, origin[1], call)
            elif origin[0] == root and path[: len(origin[1])] == origin[1] and not origin[2]:
                name = path[len(origin[1])]
                below = self.part(name) if name not in parts else parts[name]
                parts[name] = below.without(taken, call)
            own.add(origin)
        return Held(frozenset(own), parts)


def overlap(a: Origin, b: Origin) -> bool:
    short = min(len(a[1]), len(b[1]))
    return a[0] == b[0] and a[1][:short] == b[1][:short] and not a[2] and not b[2]


def overlapping_parts(held: Held) -> list[str]:
    """Two parts of one value that hold the same arrays."""
    parts = list(held.parts.items())
    for i, (name, one) in enumerate(parts):
        for other, two in parts[i + 1 :]:
            if any(overlap(a, b) for a in one.all() for b in two.all()):
                return [name, other]
    return []
