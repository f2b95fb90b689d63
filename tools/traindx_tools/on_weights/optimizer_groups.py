"""What each group of an optimizer holds: its settings, and the kinds of its parameters by name and shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindx_tools.on_weights.checkpoint import Checkpoint, OptimizerState
from traindx_tools.on_weights.parameter_names import names_of, shaped
from traindx_tools.on_weights.tensor import Tensor

_SPARED = re.compile(r"(?i)emb|tok|pos|wte|wpe|vocab|cls|norm|scale|gain|bias|lora|gate|router|alpha|beta|gamma|"
                     r"codebook|query|prompt|a_log|(?:^|[._])(?:d|ln\w*|bn\w*)(?:[._]|$)")
"""Names of what is commonly spared weight decay, whatever its shape."""
_NO_DECAY = re.compile(r"(?i)(?:^|_|\b)(?:no|non|without|un)_?-?(?:weight_?)?deca?y|(?:^|_)nodecay|(?:^|_)no_?wd")
_DECAY = re.compile(r"(?i)^(?:with_)?(?:weight_?)?(?:decay(?:ed)?|wd)$")
_TABLE = 4
"""Times as tall as wide from which on a matrix without a name may be an embedding."""
VECTOR, MATRIX, UNSURE = "vector", "matrix", "unsure"


@dataclass(frozen=True)
class Group:
    """One group of one optimizer. `kinds`: of the parameters that are known, by number or path."""

    where: str
    settings: Mapping[str, Any]
    count: int
    kinds: Mapping[Any, str]
    names: Mapping[Any, str]

    def number(self, key: str) -> float | None:
        """A setting that is a number."""
        value = self.settings.get(key)
        if isinstance(value, Tensor) and value.size == 1:
            value = float(value.load().reshape(-1)[0])
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def of(self, kind: str) -> list[Any]:
        """Its parameters of a kind."""
        return [k for k, own in self.kinds.items() if own == kind]

    def called(self, key: Any) -> str:
        """The name of a parameter, else its number."""
        return self.names.get(key, f"parameter {key}")


def groups_of(optimizer: OptimizerState, weights: Sequence[Tensor]) -> list[Group]:
    """The groups of a torch optimizer. `weights`: tensors that may be parameters."""
    names = names_of(optimizer, weights)
    by_name = {w.name: w for w in weights}
    made = []
    for at, group in enumerate(optimizer.groups):
        keys = list(group.get("params") or ())
        kinds = {}
        for key in keys:
            tensor = by_name.get(names.get(key, "")) or shaped(optimizer.state.get(key))
            if tensor is not None:
                kinds[key] = kind_of(tensor.shape, names.get(key, ""))
        own = {k: names[k] for k in keys if k in names}
        made.append(Group(f"{optimizer.key}.param_groups.{at}".lstrip("."), group, len(keys), kinds, own))
    return made


def kind_of(shape: Sequence[int], name: str) -> str:
    """A vector (biases, scales, tokens), a matrix, or what is commonly spared or may be an embedding."""
    if sum(n > 1 for n in shape) < 2:
        return VECTOR
    if name:
        return UNSURE if _SPARED.search(name) and not _SPARED_MODULE.search(name) else MATRIX
    return UNSURE if shape[0] > _TABLE * shape[-1] or (len(shape) == 3 and shape[0] == 1) else MATRIX


_SPARED_MODULE = re.compile(r"(?i)(?:q|k|v|o|qkv|query|key|value|out|fc\d*|up|down|gate)_?(?:proj\w*)?"
                            r"\.(?:weight|kernel)$")
"""Matrices whose module's name only sounds like what is spared."""


def labelled(checkpoint: Checkpoint) -> Iterator[Group]:
    """Labels of optax (`inner_states.<label>`) that say by their name whether they decay, with what they hold.

    A setting of 1 stands for a decay of which the tree holds no number.
    """
    for part in checkpoint.parts:
        if not part.auxiliary:
            continue
        held: dict[str, dict[Any, str]] = {}
        for name, tensor in part.tensors.items():
            pieces = name.replace("/", ".").split(".")
            at = pieces.index("inner_states") if "inner_states" in pieces else -1
            first = next((i for i, p in enumerate(pieces) if p in ("mu", "trace", "m") and i > at), -1)
            if 0 <= at < first - 1:
                path = ".".join(pieces[first + 1:])
                held.setdefault(pieces[at + 1], {})[path] = kind_of(tensor.shape, path)
        for label, kinds in held.items():
            decay = 0.0 if _NO_DECAY.search(label) else 1.0 if _DECAY.search(label) else None
            if decay is not None:
                yield Group(f"{part.key}.inner_states.{label}".lstrip("."), {"weight_decay": decay}, len(kinds), kinds,
                            {k: str(k) for k in kinds})


def beside_each_other(group: Group, steps: Mapping[Any, float]) -> list[tuple[str, str]]:
    """Weights and biases of one module in the group that made different numbers of steps, though gradients reach both.
    """
    by_name = {group.names[k]: steps[k] for k in group.names if k in steps}
    found = []
    for name, count in by_name.items():
        bias = re.sub(r"(?:weight|kernel|scale)$", "bias", name)
        if bias != name and bias in by_name and by_name[bias] != count:
            found.append((name, bias))
    return found


def usual_share(values: Sequence[float]) -> tuple[float, int]:
    """The most frequent of values that are alike to a thousandth, and how often it is there."""
    rounded = Counter(float(f"{v:.3g}") for v in values)
    return rounded.most_common(1)[0]
