"""The keys of a low-rank adapter as modules: what each would be laid over, its rank, and what it takes and gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from traindx_tools.on_weights.tensor import Tensor

_KEY = re.compile(r"(?P<module>.+?)(?:\.base_layer)?\.lora_(?P<embedding>embedding_)?(?P<half>[AB])"
                  r"(?:\.(?P<name>[\w-]+))?(?:\.weight)?")
"""PEFT: `base_model.model.<module>.lora_A[.<adapter>].weight`; of embeddings without `.weight`."""
PREFIX = "base_model.model."
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


@dataclass(frozen=True)
class Adapted:
    """One module of an adapter. `first`: (rank, in); `second`: (out, rank); of convolutions with further axes."""

    module: str
    prefixed: bool
    first: Tensor | None
    second: Tensor | None
    embedding: bool

    @property
    def half(self) -> Tensor | None:
        """The one matrix of a module that lacks the other."""
        return (self.first or self.second) if None in (self.first, self.second) else None

    @property
    def rank(self) -> int | None:
        """By the first matrix, None where there is only the other."""
        return self.first.shape[0] if self.first is not None and self.first.shape else None

    @property
    def ends(self) -> tuple[int, int] | None:
        """How many values go out and come in, as a weight of (out, in) has them; None where a half is missing."""
        if self.first is None or self.second is None or len(self.first.shape) < 2 or not self.second.shape:
            return None
        return (self.first.shape[1], self.second.shape[0]) if self.embedding else (
            self.second.shape[0], self.first.shape[1])


def adapted_modules(tensors: Mapping[str, Tensor]) -> dict[str, Adapted]:
    """The modules of an adapter by their names in the base, in the file's order."""
    halves: dict[str, dict[str, Tensor]] = {}
    kinds: dict[str, tuple[bool, bool]] = {}
    for name, tensor in tensors.items():
        found = _KEY.fullmatch(name) if "lora_" in name else None
        if found is None:
            continue
        module = found["module"].removeprefix(PREFIX)
        halves.setdefault(module, {})[found["half"]] = tensor
        kinds[module] = (name.startswith(PREFIX), found["embedding"] is not None)
    return {m: Adapted(m, kinds[m][0], h.get("A"), h.get("B"), kinds[m][1]) for m, h in halves.items()}


def layer_of(module: str) -> int | None:
    """The first part of a name that is a number; None without one: `stage2` is a name."""
    found = _NUMBER.search(module)
    return int(found[0]) if found else None


def kind_of(module: str) -> str:
    """The name with `*` for its layer."""
    return _NUMBER.sub("*", module, count=1)


def shifted(module: str, by: int) -> str:
    """The name with its layer's number moved."""
    return _NUMBER.sub(lambda m: str(int(m[0]) + by), module, count=1)
