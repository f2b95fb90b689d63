"""Trees of arrays that were read from a file, and which of their arrays a function is given afterwards.

Read are trees of flax (msgpack), orbax and pickle. The first function that is given a good part of a tree shows what
became of it: an array of the tree that is not among its arguments, while another one of the same path and shape is, was
left behind on the way. States of JAX are immutable: a `replace` whose result is not kept does that without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.on_jax.rules.j711_restored_in_part import FEWEST, SHARE, Lost
from traindx_tools.on_jax.stale.sample import Sample, sample_of
from traindx_tools.on_jax.stale.trained import keys_of, same_path

MOST_LEAVES = 512
MOST_CALLS = 64
"""Calls after the reading in which it is looked for."""


@dataclass(frozen=True, eq=False)
class ReadLeaf:
    """One array of a tree that was read."""

    keys: tuple[str, ...]
    sample: Sample


@dataclass(eq=False)
class ReadTree:
    """One tree, and the line that read it."""

    leaves: tuple[ReadLeaf, ...]
    place: tuple[str, int] | None
    calls: int = 0


@dataclass
class Restored:
    """The trees of a process that wait for a function, and what was found."""

    waiting: list[ReadTree] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)

    def read(self, tree: Any, place: tuple[str, int] | None) -> None:
        """A tree was read."""
        import jax

        leaves = []
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0][:MOST_LEAVES]:
            sample = sample_of(leaf)
            if sample is not None:
                leaves.append(ReadLeaf(keys_of("tree" + jax.tree_util.keystr(path)), sample))
        if sum(one.sample.telling for one in leaves) >= FEWEST and len(self.waiting) < 8:
            self.waiting.append(ReadTree(tuple(leaves), place))

    def called(self, function: str, names: Sequence[str], leaves: Sequence[Any]) -> None:
        """A function is called with these arrays."""
        given = [(keys_of(n), s) for n, leaf in zip(names, leaves, strict=True)
                 if (s := sample_of(leaf, wait=False)) is not None][:MOST_LEAVES]
        known = {(s.type[0], s.digest) for _, s in given}
        for tree in list(self.waiting):
            tree.calls += 1
            found = [one for one in tree.leaves if (one.sample.type[0], one.sample.digest) in known]
            telling = [one for one in tree.leaves if one.sample.telling]
            if sum(one.sample.telling for one in found) >= max(FEWEST, SHARE * len(telling)):
                self.waiting.remove(tree)
                self._judge(function, tree, found, given)
            elif tree.calls >= MOST_CALLS:
                self.waiting.remove(tree)

    def _judge(self, function: str, tree: ReadTree, found: Sequence[ReadLeaf],
               given: Sequence[tuple[tuple[str, ...], Sample]]) -> None:
        entries: dict[str, list[tuple[ReadLeaf, Sample]]] = {}
        for one in tree.leaves:
            others = [s for keys, s in given if same_path(one.keys, keys) and s.type[0] == one.sample.type[0]]
            if one not in found and len(others) == 1 and one.keys:
                entries.setdefault(one.keys[0], []).append((one, others[0]))
        for entry, pairs in entries.items():
            whole = [one for one in tree.leaves if one.keys[:1] == (entry,)]
            if any(one in found and one.sample.telling for one in whole):
                continue  # a part of it arrived: the rest was changed on purpose (a new head), or goes on
            one, other = pairs[0]
            self.lost.append(Lost(
                entry, function, len(pairs), len(tree.leaves), len(found), ".".join(one.keys),
                _few(one.sample), _few(other), tree.place, _per_parameter(pairs, found)))


def _per_parameter(pairs: Sequence[tuple[ReadLeaf, Sample]], found: Sequence[ReadLeaf]) -> bool:
    """Whether most of them have the path and shape of another array of the tree below a path of their own."""
    def twin(one: ReadLeaf) -> bool:
        return any(len(f.keys) > 1 and one.keys[-len(f.keys[1:]):] == f.keys[1:]
                   and f.sample.type[0] == one.sample.type[0] for f in found)

    return sum(twin(one) for one, _ in pairs) * 2 > len(pairs)


def _few(sample: Sample) -> tuple[float, ...]:
    return tuple(float(v) for v in sample.values.reshape(-1)[:3].astype(float))
