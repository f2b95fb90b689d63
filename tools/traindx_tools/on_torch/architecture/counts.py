"""How many parameters a model has, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """Counts are parameters, each tensor once however often it is tied. `flops` are those of one forward pass."""

    parameters: int
    trainable: int
    bytes: int
    by_part: Mapping[str, int]
    """Top-level children, in the model's order."""
    by_kind: Mapping[str, int]
    """Kinds of layers: embedding, linear, attention, convolution, recurrent, normalisation, other."""
    tied: tuple[tuple[str, str], ...]
    """Pairs of paths that are one tensor."""
    layers: int
    """Leaf layers with parameters."""
    largest: tuple[tuple[str, tuple[int, ...], int], ...]
    """(path, shape, parameters) of the ten largest tensors."""
    flops: int | None = None

    def share(self, kind: str) -> float:
        """Share of all parameters, 0 to 1."""
        return self.by_kind.get(kind, 0) / self.parameters if self.parameters else 0.0

    def table(self) -> str:
        """A text table of the parts and kinds."""
        rows = [f"{self.parameters:,} parameters ({self.trainable:,} trainable, {self.bytes / 2**20:,.1f} MiB) in "
                f"{self.layers} layers" + (f", {self.flops:,} FLOPs a forward pass" if self.flops else "")]
        for title, counts in (("part", self.by_part), ("kind", self.by_kind)):
            rows += [f"  {title} {name}: {n:,} ({n / max(1, self.parameters):.1%})" for name, n in counts.items()]
        return "\n".join([*rows, *(f"  tied: {a} = {b}" for a, b in self.tied)])
