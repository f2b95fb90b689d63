"""Files or shards that hold the same fields: siblings, and the sets of one split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from traindx_tools.on_data.roles import label_fields
from traindx_tools.on_data.shard import Shard


@dataclass(frozen=True, eq=False)
class DataSet:
    """Shards that hold the same fields: siblings, and the sets of one split."""

    name: str
    shards: tuple[Shard, ...]
    memo: dict[str, Any] = field(default_factory=dict, repr=False)
    """What was worked out of it and is asked for again, by name."""

    @cached_property
    def splits(self) -> Mapping[str, tuple[Shard, ...]]:
        """The shards by split, in the order in which they were found."""
        return {s: tuple(x for x in self.shards if x.split == s) for s in dict.fromkeys(x.split for x in self.shards)}

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Names of all fields."""
        return tuple(dict.fromkeys(name for s in self.shards for name in s.columns))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The fields that are labels."""
        return label_fields(self.shards)

    def siblings(self, name: str) -> tuple[tuple[Shard, ...], ...]:
        """The shards that hold a field, by split."""
        return tuple(tuple(s for s in group if name in s.columns) for group in self.splits.values())

    @cached_property
    def comparisons(self) -> int:
        """Shards x fields: what every test of this set is divided by."""
        return max(1, sum(len(s.columns) for s in self.shards))
