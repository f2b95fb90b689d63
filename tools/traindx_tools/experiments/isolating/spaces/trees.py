"""Nested settings held against each other: one difference a leaf, and the tree in which some of them are applied."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "not set"})()
"""Stands where one side has no such key."""


@dataclass(frozen=True)
class Difference:
    """One leaf that is not the same on both sides; `MISSING` where a side has none."""

    path: Path
    good: Any
    bad: Any

    @property
    def label(self) -> str:
        """`optim.lr: 0.1 -> 1.0`."""
        return f"{dotted(self.path)}: {_short(self.good)} -> {_short(self.bad)}"


def dotted(path: Path) -> str:
    """`optim.groups[1].lr`."""
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)
    return text.removeprefix(".") or "the whole"


def _short(value: Any) -> str:
    text = "not set" if value is MISSING else value if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def differences(good: Any, bad: Any, path: Path = ()) -> Iterator[Difference]:
    """Leaf by leaf, in the order of the bad tree. Lists of one length are compared place by place, others as a whole.
    """
    if isinstance(good, dict) and isinstance(bad, dict):
        for key in dict.fromkeys([*bad, *good]):
            yield from differences(good.get(key, MISSING), bad.get(key, MISSING), (*path, key))
    elif isinstance(good, list) and isinstance(bad, list) and len(good) == len(bad):
        for index, pair in enumerate(zip(good, bad, strict=True)):
            yield from differences(*pair, (*path, index))
    elif good is MISSING and isinstance(bad, dict) and bad:
        yield from differences({}, bad, path)
    elif bad is MISSING and isinstance(good, dict) and good:
        yield from differences(good, {}, path)
    elif not same(good, bad):
        yield Difference(path, good, bad)


def same(one: Any, other: Any) -> bool:
    """Equal and of one type: 1, 1.0 and true are three settings. NaN is itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(v, other[k]) for k, v in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or repr(one) == repr(other))


def applied(good: Any, changes: Sequence[Difference]) -> Any:
    """The good tree with these leaves as on the bad side; a part that stands in two places changes in the named one."""
    tree = copy.deepcopy(good)
    for change in changes:
        tree = _set(tree, change.path, change.bad)
    return tree


def _set(tree: Any, path: Path, value: Any) -> Any:
    if not path:
        return value if value is MISSING else copy.deepcopy(value)
    key, rest = path[0], path[1:]
    if isinstance(key, int):
        return [*tree[:key], _set(tree[key], rest, value), *tree[key + 1:]]
    tree = dict(tree) if isinstance(tree, dict) else {}
    inner = _set(tree.get(key, {} if rest else MISSING), rest, value)
    if inner is MISSING or (rest and inner == {} and value is MISSING):
        tree.pop(key, None)  # a section whose last key went is gone as well
    else:
        tree[key] = inner
    return tree


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every leaf and where it is."""
    if isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, tree
