"""Which tensors of a flat file are moments of an optimizer, and of which weight: they are no weights.

safetensors, npz and distributed checkpoints hold all tensors under whole names, the moment's name before the weight's
(`optimizer.exp_avg.h.0.weight`) or behind it (`h.0.weight.exp_avg`). Moments come in pairs of one shape: a single
tensor of such a name may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from traindx_tools.on_weights.checkpoint import Checkpoint, Part
from traindx_tools.on_weights.tensor import Tensor

PAIRS = (("exp_avg", "exp_avg_sq"), ("mu", "nu"), ("m", "v"))
"""The mean of gradients and that of their squares in torch, in optax, and in papers and files of one's own."""
FIRST, SECOND = tuple(a for a, _ in PAIRS), tuple(b for _, b in PAIRS)
_LONG = frozenset({*PAIRS[0], "max_exp_avg_sq"})
"""Names that nothing else has; the shorter ones need an optimizer's name before them."""
_WITH = frozenset({*FIRST, *SECOND, *_LONG})
_OPTIMIZER = re.compile(r"(?i)^(?:\w*_)?(?:opt(?:im\w*|_\w+|_?state\w*)?|adam\w*|lamb|nadam)$")
_AROUND = re.compile(r"(?i)^(?:state|states|moments?|\d+)$")
"""What stands between an optimizer's name and a weight's."""


@dataclass(frozen=True)
class Named:
    """A tensor by what it is called. `place`: its name with `*` for the moment's, equal for the moments of a weight."""

    kind: str
    place: str
    weight: str


def moment_named(name: str, within: bool = False) -> Named | None:
    """What a name says of a moment. `within`: whether the part that it lies in is known to be an optimizer's."""
    pieces = name.replace("/", ".").split(".")
    at = _place(pieces, within) if not _WITH.isdisjoint(pieces) else -1
    if at < 0:
        return None
    rest = pieces[at + 1:] or _without_optimizer(pieces[:at])
    return Named(pieces[at], ".".join((*pieces[:at], "*", *pieces[at + 1:])), ".".join(rest)) if rest else None


def _place(pieces: list[str], within: bool) -> int:
    """Which piece is the moment's; -1: none. A module may be called `v` as well: what nothing else has goes first."""
    sure = [i for i, p in enumerate(pieces) if p in _LONG]
    begin = 0 if within else next((i + 1 for i, p in enumerate(pieces) if _OPTIMIZER.match(p)), len(pieces))
    short = [i for i in range(begin, len(pieces)) if pieces[i] in _WITH]
    return sure[0] if sure else short[-1] if short and short[-1] == len(pieces) - 1 else short[0] if short else -1


def _without_optimizer(pieces: list[str]) -> list[str]:
    last = next((i for i in reversed(range(len(pieces))) if _OPTIMIZER.match(pieces[i])), -1)
    rest = pieces[last + 1:]
    while last >= 0 and len(rest) > 1 and _AROUND.match(rest[0]):
        rest = rest[1:]
    return rest


def paired(tensors: Mapping[str, Tensor], within: bool = False) -> Mapping[str, Mapping[str, tuple[Named, Tensor]]]:
    """The moments of each weight by place and kind, where both of a pair are there in one shape."""
    places: dict[str, dict[str, tuple[Named, Tensor]]] = {}
    for name, tensor in tensors.items():
        if (named := moment_named(name, within)) is not None:
            places.setdefault(named.place, {})[named.kind] = (named, tensor)
    return {p: own for p, own in places.items() if any(
        a in own and b in own and own[a][1].shape == own[b][1].shape for a, b in PAIRS)}


def apart_from_weights(checkpoint: Checkpoint) -> Checkpoint:
    """The same with flat moments in a part of their own, `optimizer`."""
    parts: list[Part] = []
    moments: dict[str, Tensor] = {}
    for part in checkpoint.parts:
        own = {} if part.auxiliary else {
            t.name: t for kinds in paired(part.tensors).values() for _, t in kinds.values()}
        left = {n: t for n, t in part.tensors.items() if n not in own}
        parts += [replace(part, tensors=left)] if left and own else [] if own else [part]
        moments |= own
    return replace(checkpoint, parts=(*parts, Part("optimizer", moments))) if moments else checkpoint
