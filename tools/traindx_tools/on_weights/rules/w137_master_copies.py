"""Weights in half precision that are not the rounded values of the float32 copies beside them.

Training in half precision keeps a copy of each weight in float32, steps that, and rounds it into the model: after each
step the one is the other rounded, value by value. Where this holds for most tensors of a file and not for some, these
were not copied back, or are of another step: the first step after loading throws their values away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.moment_names import moment_named
from traindx_tools.on_weights.parameter_names import names_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import CHUNK, STORED, Tensor
from traindx_tools.rules import Rule, Threshold

_SOUND, _ODD, _SHARE, _FEWEST = 0.999, 0.99, 0.75, 4
_VALUES = 2**18
"""Values of a tensor that are compared, its first ones."""

RULE = Rule(
    id="W137",
    name="master-copies",
    title="Weights are not the rounded values of their float32 copies",
    severity=Severity.HIGH,
    sees="Each weight of half precision against the float32 tensor of its name in the same file, value by value.",
    matters="Two values of one weight: what is evaluated is not what training goes on with.",
    alike=("averages and targets, which follow at a distance", "copies of the step before: all differ"),
    confirm=("cast the copy and compare it with the weight", "look for modules that the copying back leaves out"),
    thresholds={
        "sound": Threshold(_SOUND, "of the values", "that are the rounded ones, where the copy is the weight's own"),
        "share": Threshold(_SHARE, "of the weights", "that have such a copy, at least"),
    },
)
_FOLLOWS = re.compile(r"(?i)ema|averag|swa|shadow|polyak|target|teacher|momentum_|best|prev|old|init|pretrain|base")
"""What copies are called that need not be the weights of this step."""


def check(seen: Seen) -> Iterator[Finding]:
    """Once a file."""
    if not seen.main:
        return
    weights = max(({n: t for n, t in p.tensors.items() if t.dtype in ("float16", "bfloat16") and t.size > 1}
                   for p in seen.checkpoint.parts if not p.auxiliary), key=len, default={})
    if len(weights) < _FEWEST:
        return
    shares = {n: (rounded_share(weights[n], copy), copy) for n, copy in _copies(seen, weights).items()}
    odd = {n: (s, c) for n, (s, c) in shares.items() if s < _ODD}
    sound = sum(s >= _SOUND for s, _ in shares.values())
    if not odd or sound < max(_FEWEST, _SHARE * len(shares)):
        return
    name, (share, copy) = min(odd.items(), key=lambda item: item[1][0])
    yield RULE.finding(
        f"{name} in {seen.path} is {weights[name].dtype} and only {share:.1%} of its values are those of its float32 "
        f"copy ({copy.key or copy.name}) rounded; so it is with {len(odd)} of {len(shares)} weights, and {sound} are "
        "their copies to the bit: it was not copied back, or is of another step", seen.where(name), seen.path,
        bearing=Bearing.CAUSE, measured={"kind": "copy", "name": name, "share": round(share, 4), "tensors": len(odd),
                                         "of": len(shares), "names": tuple(odd)[:20]})


def _copies(seen: Seen, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The float32 tensor that belongs to each weight: of its name under another path, or in an optimizer's state."""
    found: dict[str, Tensor] = {}
    for part in seen.checkpoint.parts:
        for name, tensor in part.tensors.items():
            key = tensor.key or f"{part.key}.{name}"
            if tensor.dtype != "float32" or moment_named(name, within=part.auxiliary) is not None:
                continue
            own = next((n for n in _ends(name) if n in weights and weights[n].shape == tensor.shape), None)
            if own is not None and tensor is not weights[own] and not _FOLLOWS.search(key.removesuffix(own)):
                found.setdefault(own, tensor)
    for optimizer in seen.checkpoint.optimizers:
        names = names_of(optimizer, list(weights.values()))
        for key, state in optimizer.state.items():
            for kind, tensor in state.items() if isinstance(state, Mapping) else ():
                weight = weights.get(names.get(key, ""))
                if isinstance(tensor, Tensor) and tensor.dtype == "float32" and "master" in str(kind) and (
                        weight is not None and weight.shape == tensor.shape):
                    found.setdefault(names[key], tensor)
    return found


def _ends(name: str) -> Iterator[str]:
    """A name and its ends, the longest first."""
    while name:
        yield name
        name = name.partition(".")[2]


def rounded_share(weight: Tensor, copy: Tensor) -> float:
    """Share of the values of a weight in half precision that are those of its copy, rounded. Raises UnreadableInput."""
    count = min(weight.size, _VALUES)
    own, wide = (_first(t, count) for t in (weight, copy))
    with np.errstate(all="ignore"):
        if weight.dtype == "float16":
            return float((own == wide.astype(np.float16)).mean())
        bits = wide.view(np.uint32)
        nearest = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return float((own == nearest.astype(np.uint16)).mean())


def _first(tensor: Tensor, count: int) -> NDArray[np.generic]:
    parts = [p.copy() for p in tensor.source.parts(0, count * tensor.itemsize, CHUNK)]
    return np.concatenate(parts).view(STORED[tensor.dtype])
