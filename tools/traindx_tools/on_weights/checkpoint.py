"""What a checkpoint holds: tensors by name in parts, states of optimizers, and plain values beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from traindx_tools.on_weights.tensor import Tensor

MOST_NODES = 2_000_000
"""Containers and leaves visited in one file: what refers to itself many times is larger unfolded than on disk."""
_COPIES = frozenset({"ema", "average", "averaged", "avg", "swa", "target", "teacher", "reference", "ref"})
DEEPEST = 40
"""Levels of containers that are looked into."""
WRAPPERS = frozenset({"state_dict", "model", "model_state_dict", "model_state", "module", "net", "network", "params",
                      "weights", "batch_stats", "ema", "ema_params", "ema_state_dict"})  # fmt: skip
"""Keys under which trainers keep the weights, beside epoch and optimizer."""


@dataclass(frozen=True)
class OptimizerState:
    """A state dict of a torch optimizer."""

    key: str
    """Where it lies in the file."""
    state: Mapping[Any, Any]
    groups: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Part:
    """Tensors that belong together: the weights of one model. `key`: where they lie in the file, "" at the top."""

    key: str
    tensors: Mapping[str, Tensor]

    @property
    def auxiliary(self) -> bool:
        """Whether it is state of an optimizer, and no weights."""
        return "opt" in self.key.lower()

    @property
    def copy(self) -> bool:
        """Whether it is called as a copy of the weights: a moving average, a target network."""
        return not _COPIES.isdisjoint(re.split(r"[._/]", self.key.lower()))


@dataclass(frozen=True, eq=False)
class MomentPair:
    """The mean of gradients and that of their squares of a weight, told by their values (`unnamed_moments.py`)."""

    first: Tensor
    second: Tensor
    weight: str


_NO_PART = Part("", {})
"""The weights of a file that holds an optimizer alone."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """One file, or several that are the shards of one."""

    path: str
    format: str
    parts: tuple[Part, ...]
    optimizers: tuple[OptimizerState, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    """Plain values by their path in the file: epoch, global_step, scheduler.last_epoch."""
    notes: tuple[str, ...] = ()
    moment_pairs: tuple[MomentPair, ...] = ()
    """Moments whose names say nothing."""

    @property
    def tensors(self) -> Iterator[Tensor]:
        """All tensors of all parts."""
        for part in self.parts:
            yield from part.tensors.values()

    @cached_property
    def weights(self) -> Part:
        """The part with the most values: the model, and not a copy of it of the same size."""
        judged = [p for p in self.parts if not p.auxiliary]
        return max(judged, key=lambda p: (sum(t.size for t in p.tensors.values() if t.floating), not p.copy),
                   default=_NO_PART)


def of_tree(path: str, form: str, tree: Any, notes: tuple[str, ...] = ()) -> Checkpoint:
    """A checkpoint of nested containers, as torch.save, flax and orbax write them."""
    walker = _Walker()
    walker.walk(tree, ())
    parts = [Part(".".join(key), tensors) for key, tensors in walker.parts.items() if tensors]
    said = (*notes, *walker.notes)
    return Checkpoint(path, form, tuple(parts), tuple(walker.optimizers), walker.values, said)


class _Walker:
    """Goes once through nested containers."""

    def __init__(self) -> None:
        self.parts: dict[tuple[str, ...], dict[str, Tensor]] = {}
        self.optimizers: list[OptimizerState] = []
        self.values: dict[str, Any] = {}
        self.notes: list[str] = []
        self.left = MOST_NODES

    def walk(self, node: Any, path: tuple[str, ...]) -> None:
        self.left -= 1
        if self.left < 0 or len(path) > DEEPEST:
            self.notes[:] = [f"only the first {MOST_NODES:,} values down to {DEEPEST} levels were looked at"]
            return
        if isinstance(node, Tensor):
            self._tensor(node, path)
        elif isinstance(node, Mapping):
            if _is_optimizer(node):
                self.optimizers.append(OptimizerState(".".join(path), node["state"], tuple(node["param_groups"])))
                return
            for key, value in node.items():
                self.walk(value, (*path, str(key)))
        elif isinstance(node, (list, tuple)) and not _plain(node):
            for index, value in enumerate(node):
                self.walk(value, (*path, str(index)))
        elif path and (node is None or isinstance(node, (bool, int, float, str, list, tuple))):
            self.values[".".join(path)] = node

    def _tensor(self, tensor: Tensor, path: tuple[str, ...]) -> None:
        path = path or ("tensor",)  # a file that holds one tensor and nothing around it
        head = _part_of(path)
        name = ".".join(path[len(head):])
        self.parts.setdefault(head, {})[name] = replace(tensor, name=name, key=".".join(path))


def _part_of(path: tuple[str, ...]) -> tuple[str, ...]:
    """The containers around a tensor that are no part of its name.

    Names with dots in them are those of a state dict: what is around that is not. Of names without, only what trainers
    call the whole of the weights, or of an optimizer's state, is around them.
    """
    if "." in path[-1]:
        return path[:-1]
    return path[:1] if len(path) > 1 and (path[0] in WRAPPERS or "opt" in path[0].lower()) else ()


def _is_optimizer(node: Mapping[Any, Any]) -> bool:
    groups = node.get("param_groups")
    return (isinstance(node.get("state"), Mapping) and isinstance(groups, (list, tuple))
            and all(isinstance(g, Mapping) for g in groups))


def _plain(node: list[Any] | tuple[Any, ...]) -> bool:
    return all(isinstance(v, (bool, int, float, str)) or v is None for v in node)
