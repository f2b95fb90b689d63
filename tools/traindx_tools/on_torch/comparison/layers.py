"""What a comparison of two sides measured, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """One call of one leaf layer. `own` and `total` are relative differences; `own` is None where it was not run."""

    path: str
    kind: str
    call: int
    total: float
    own: float | None
    tolerance: float

    @property
    def parts(self) -> bool:
        """Whether this layer by itself makes a difference beyond the tolerance."""
        return self.own is not None and self.own > self.tolerance


@dataclass(frozen=True)
class Sides:
    """Two sides over one batch. `layers` in the order of execution on the first side."""

    names: tuple[str, str]
    layers: tuple[Layer, ...]
    output: float
    """Relative difference of the outputs."""
    tolerance: float
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()

    @property
    def first(self) -> Layer | None:
        """The first layer that parts by itself, or None."""
        return next((layer for layer in self.layers if layer.parts), None)

    @property
    def between(self) -> tuple[str, str] | None:
        """(last layer that agrees, first that does not) where code between layers makes the difference."""
        if self.first is not None:
            return None
        before = "(input)"
        for layer in self.layers:
            if layer.total > 4 * layer.tolerance:
                return before, layer.path
            before = layer.path
        return (before, "(output)") if self.output > 4 * self.tolerance else None

    @property
    def same(self) -> bool:
        """Whether nothing parts and no layer is missing on a side."""
        return self.first is None and self.between is None and not self.only_first and not self.only_second

    def table(self, most: int = 40) -> str:
        """A text table: layer, difference on identical input, difference piled up."""
        width = max((len(x.path) for x in self.layers[:most]), default=5)
        rows = [f"{'layer':<{width}}  {'own':>9}  {'total':>9}  {'tolerance':>9}"]
        rows += [f"{x.path:<{width}}  {_number(x.own):>9}  {_number(x.total):>9}  {x.tolerance:>9.1e}"
                 + ("  <- parts here" if x is self.first else "") for x in self.layers[:most]]
        left = len(self.layers) - most
        return "\n".join([*rows, f"... {left} more layers"] if left > 0 else rows)


def _number(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0 else f"{value:.2e}"
