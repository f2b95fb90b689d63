"""Shards that belong together: fields in files of their own become one table, tables with the same fields one set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from traindx_tools.on_data.names import number_of, pattern_of, split_of, words_only
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

NEAR = 0.1
"""Files whose lengths differ by less than this share were meant to hold the same rows."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A shard and where its file lies below what was named."""

    shard: Shard
    below: PurePath

    @property
    def folder(self) -> str:
        """The folders without the words for splits."""
        parts = (pattern_of(p) if split_of(p) else p for p in self.below.parts[:-1])
        return "/".join(p for p in parts if p)


def with_split(placed: Placed) -> Placed:
    """With the split that the name of the file says, else its folder, where the arrays in it do not."""
    if placed.shard.split:
        return placed
    said = next(filter(None, map(split_of, (placed.below.stem, *reversed(placed.below.parts[:-1])))), "")
    return replace(placed, shard=replace(placed.shard, split=said))


def joined(placed: Sequence[Placed]) -> list[Placed]:
    """Files that hold one array each, joined to tables where folder, split, number and length agree."""
    groups: dict[tuple[str, str, str, str], list[Placed]] = {}
    out: list[Placed] = []
    for p in placed:
        if len(p.shard.columns) == 1 and p.shard.format in ("npy", "pt"):
            key = ("/".join(p.below.parts[:-1]), p.shard.split, number_of(p.below.stem), p.shard.format)
            groups.setdefault(key, []).append(p)
        else:
            out.append(p)
    for group in groups.values():
        out += _joined(group)
    return out


def _told_apart(names: list[str]) -> list[str]:
    """The names without the words that all of them have: "x_part" and "y_part" are "x" and "y"."""
    common = set.intersection(*(set(n.split("_")) for n in names))
    short = ["_".join(w for w in n.split("_") if w not in common) for n in names]
    return short if len(names) > 1 and all(short) else names


def _joined(group: list[Placed]) -> list[Placed]:
    names = _told_apart([words_only(p.below.stem) or "values" for p in group])
    if len(group) == 1 or len(set(names)) < len(group):
        return group
    votes = Counter(p.shard.total for p in group)
    total = max(votes, key=lambda n: (votes[n], n))
    near = [(p, n) for p, n in zip(group, names, strict=True) if abs(p.shard.total - total) < NEAR * total]
    rest = [p for p in group if all(p is not q for q, _ in near)]
    same = [(p, n) for p, n in near if p.shard.total == total and p.shard.rows == near[0][0].shard.rows]
    if len(near) < 2:
        return group
    columns = {n: replace(next(iter(p.shard.columns.values())), name=n) for p, n in same}
    odd = {n: p.shard.total for p, n in near if p.shard.total != total}
    first = same[0][0].shard
    whole = replace(first, columns=columns, odd_lengths=odd, damage=tuple(d for p, _ in near for d in p.shard.damage))
    return [Placed(whole, same[0][0].below), *rest]


def data_sets(placed: Sequence[Placed]) -> tuple[DataSet, ...]:
    """Sets of shards: same folder (but for the split), same format, and the same fields or the same pattern of name."""
    by_pattern: dict[tuple[str, str, str], list[Placed]] = {}
    for p in placed:
        table = p.shard.name.partition(f"{p.below.name}:")[2]  # one of several in the file
        by_pattern.setdefault((p.folder, p.shard.format, f"{pattern_of(p.below.stem)}:{table}"), []).append(p)
    merged: dict[tuple[str, str, frozenset[str]], list[Placed]] = {}
    for (folder, form, _), group in by_pattern.items():
        votes = Counter(frozenset(p.shard.columns) for p in group)
        merged.setdefault((folder, form, votes.most_common(1)[0][0]), []).extend(group)
    return tuple(_data_set(folder, group) for (folder, _, _), group in merged.items())


def _data_set(folder: str, group: Sequence[Placed]) -> DataSet:
    ordered = sorted(group, key=lambda p: _natural(str(p.below)))
    return DataSet(folder or ordered[0].below.name, tuple(p.shard for p in ordered))


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Numbers in names by their size: shard 10 comes behind shard 9."""
    import re

    return tuple((int(t), "") if t.isdigit() else (-1, t) for t in re.findall(r"\d+|\D+", name))


def total_rows(sets: Sequence[DataSet]) -> Mapping[str, int]:
    """Rows by set."""
    return {d.name: sum(s.total for s in d.shards) for d in sets}
