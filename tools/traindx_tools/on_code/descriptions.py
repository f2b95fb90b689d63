"""What is known of a value by its content alone: where it arose, a constant, a tensor, a name of an installed package.

None of them holds another value; those that do are in `definitions`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Site:
    """Where a value arose."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Const:
    """A Python constant. `fixed` is False for a default that a caller or a command line may override."""

    value: Any
    fixed: bool = True
    keys: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Of a value of a configuration file: the keys under which it stands, from the root."""


@dataclass(frozen=True)
class Shape:
    """Sizes of the trailing dimensions, None where unknown; `exact` says that there are no further leading ones."""

    dims: tuple[int | None, ...]
    exact: bool = True

    @property
    def rank(self) -> int | None:
        """The number of dimensions, None where unknown."""
        return len(self.dims) if self.exact else None

    def __str__(self) -> str:
        dims = ["?" if d is None else str(d) for d in self.dims]
        return f"({', '.join(dims if self.exact else ['...', *dims])}{',' if self.exact and len(dims) == 1 else ''})"


class Axis(NamedTuple):
    """One axis. `size`: a length, or what it is as long as: two axes with the same text have the same length, "" is
    known to nobody. `role`: "batch", "feature", "space", "scores" (of one against all), "columns" (of different
    quantities), "class" (of one-hot rows), "classes" (one entry each), "inserted" (of length 1, where the program asks
    for it)."""

    size: int | str = ""
    role: str = ""


class Rest(NamedTuple):
    """The axes of an array that nobody counted, without so many in front and behind."""

    of: str
    front: int = 0
    back: int = 0


class Whole(NamedTuple):
    """What sums to 1, or has length 1, along an axis: "softmax", "log_softmax", "normalize"; where that was done."""

    by: str
    axis: int
    site: Site | None = None


@dataclass(frozen=True)
class Axes:
    """The axes of an array, at most one `Rest` among them. `frame`: of a table of pandas."""

    dims: tuple[Axis | Rest, ...] = ()
    whole: Whole | None = None
    frame: bool = False

    @property
    def exact(self) -> bool:
        """Whether their number is known."""
        return not any(isinstance(d, Rest) for d in self.dims)

    def __str__(self) -> str:
        sizes = ["..." if isinstance(d, Rest) else str(d.size) if isinstance(d.size, int) else
                 {"batch": "N", "space": "S"}.get(d.role, "n") for d in self.dims]
        return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


@dataclass(frozen=True)
class Tensor:
    """An array of torch, jax or numpy.

    `kind`: "softmax", "log_softmax", "sigmoid", "relu", "tanh", "linear" (straight out of a linear or convolution
    layer), "" otherwise.
    `grad`: whether an autograd graph hangs on it; None where unknown. `low`, `high`: bounds of its elements that the
    arithmetic reaches, already rounded to the dtype. `models`: ids of the modules it was computed by.
    `tags`: "layer" (a module's output, shape untouched), "column" (a product with a matrix of one column), "batch"
    (came out of a loader), "scaled" (by a GradScaler),
    "gradient", "reduced" (to one number), "one_row" (reduced over some axis), "padded", "integer", "shifted",
    "unit" (rows of length 1), "moved" (a part, or with its axes in another order, of what stands at `site`).
    """

    kind: str = ""
    grad: bool | None = None
    dtype: str | None = None
    low: float | None = None
    high: float | None = None
    site: Site | None = None
    kind_site: Site | None = None
    models: frozenset[int] = frozenset()
    tags: frozenset[str] = frozenset()
    parents: frozenset[Site] = frozenset()
    """Sites of the attached tensors that were added up or weighted into this one."""
    copies: frozenset[tuple[Site, Site, frozenset[int]]] = frozenset()
    """Where numbers that models gave were copied into a new tensor on the way, where those arose, and the models."""
    axes: Axes | None = None
    """Its axes by their lengths and roles, through symbols where no number is known."""

    @property
    def shape(self) -> Shape | None:
        """The sizes that are numbers, from behind where nobody counted the axes."""
        if self.axes is None:
            return None
        at = next((i for i, d in enumerate(self.axes.dims) if isinstance(d, Rest)), -1)
        sizes = tuple(n if isinstance(n := getattr(d, "size", None), int) else None for d in self.axes.dims[at + 1:])
        return Shape(sizes, at < 0) if sizes or at < 0 else None

    def plain(self, **changes: Any) -> Tensor:
        """The same graph, but nothing known of content or form."""
        base = Tensor(grad=self.grad, dtype=self.dtype, site=self.site, models=self.models, parents=self.parents,
                      copies=self.copies)
        return replace(base, **changes)

    def tagged(self, *tags: str) -> Tensor:
        """With further tags."""
        return replace(self, tags=self.tags | frozenset(tags))


@dataclass(frozen=True)
class Ref:
    """A name of an installed package: "torch.nn.functional.cross_entropy"."""

    name: str
