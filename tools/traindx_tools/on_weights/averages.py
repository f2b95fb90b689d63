"""Averages and target networks in a checkpoint, each beside the weights that it follows, tensor by tensor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from traindx_tools.on_weights.checkpoint import Checkpoint, Part
from traindx_tools.on_weights.tensor import Tensor

AVERAGE = re.compile(r"(?i)(?:^|[._])(?:ema|ema_\w+|\w+_ema|\w*averaged?(?:_\w+)?|swa\w*|shadow\w*|polyak\w*)$")
TARGET = re.compile(r"(?i)(?:^|[._])(?:target|target_(?:net\w*|model|q\w*|critic\w*|actor|params|encoder|policy)"
                    r"|(?:q|critic|actor|policy|network|net|model|encoder)\w*_target|momentum_encoder|encoder_k)$")
"""What an average of the weights, and a network that follows another one, is called."""
_AROUND = re.compile(r"^(?:module|params|model|shadow|_orig_mod|ema_model)\.(?=.)")
_SHARE, _FEWEST = 0.8, 4


@dataclass(frozen=True)
class Beside:
    """An average and its weights by one name. `key`, `of`: where each of them lies in the file."""

    key: str
    of: str
    average: Mapping[str, Tensor]
    weights: Mapping[str, Tensor]
    target: bool

    def modules(self) -> Mapping[str, tuple[str, ...]]:
        """The names by module: the first piece in which they differ, without a last piece (weight, bias)."""
        split = [(n, n.split(".")) for n in self.average]
        depth = 0
        while all(len(p) > depth + 2 for _, p in split) and len({p[depth] for _, p in split}) == 1:
            depth += 1
        found: dict[str, list[str]] = {}
        for name, pieces in split:
            found.setdefault(".".join(pieces[:depth + 1]) if len(pieces) > depth + 1 else "", []).append(name)
        return {m: tuple(names) for m, names in found.items()}


@dataclass(frozen=True)
class _Unit:
    """Tensors under one head, in a part of their own or in a flat file."""

    key: str
    tensors: Mapping[str, Tensor]

    @property
    def average(self) -> bool:
        return AVERAGE.search(self.key) is not None

    @property
    def follows(self) -> bool:
        return self.average or TARGET.search(self.key) is not None


def averages_of(checkpoint: Checkpoint) -> Iterator[Beside]:
    """What is called an average, in a part of its own or in a flat file, each beside the weights with its names."""
    units = [u for p in checkpoint.parts if not p.auxiliary for u in _units(p)]
    weights = [u for u in units if not u.follows]
    for unit in (u for u in units if u.follows):
        best = max(weights, key=lambda one: len(_common(unit.tensors, one.tensors)), default=None)
        common = _common(unit.tensors, best.tensors) if best is not None else []
        if best is not None and len(common) >= max(_FEWEST, _SHARE * len(unit.tensors)):
            yield Beside(unit.key, best.key, {n: unit.tensors[n] for n in common},
                         {n: best.tensors[n] for n in common}, not unit.average)


def _units(part: Part) -> Iterator[_Unit]:
    """A part, split by what its names begin with where that is called an average."""
    held: dict[str, dict[str, Tensor]] = {}
    whole = _Unit(part.key, {}).follows
    for name, tensor in part.tensors.items():
        if tensor.floating:
            plain = name.replace("/", ".")
            head = "" if whole else followed(plain)
            held.setdefault(head, {})[plain.removeprefix(f"{head}.")] = tensor
    for head, tensors in held.items():
        yield _Unit(f"{part.key}.{head}".strip("."), _plain(tensors))


def followed(key: str) -> str:
    """The branch of an average or a target that a tensor lies under, "" for none."""
    parts = key.split(".")
    heads = (".".join(parts[:depth]) for depth in range(1, len(parts)))
    return next((h for h in heads if AVERAGE.search(h) or TARGET.search(h)), "")


def _common(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> list[str]:
    return [n for n, t in one.items() if n in other and other[n].shape == t.shape]


def _plain(tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """By their names without what wraps the whole model."""
    while tensors and all(_AROUND.match(n) for n in tensors):
        tensors = {_AROUND.sub("", n): t for n, t in tensors.items()}
    return tensors
