"""Abstract values: what is known of an expression without running it.

Objects that a program shares by reference (modules, optimizers, lists) are compared by identity; descriptions (tensors,
constants, symbols) are compared by content. What is not known is a `Symbol`, which still has an identity: the same
unknown argument is the same symbol wherever it flows.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from traindx_tools.on_code.nesting import Nested

if TYPE_CHECKING:
    from traindx_tools.on_code.definitions import ClassInfo, FunctionInfo
    from traindx_tools.on_code.trace import Block


@dataclass(frozen=True)
class Site:
    """Where a value arose."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Symbol:
    """Something unknown. `role` says how it came about: "parameter", "attribute", "item", "call", "iteration" ..."""

    role: str
    name: str
    parent: Value | None = None
    depth: int = 0

    def child(self, role: str, name: str) -> Symbol:
        """What is reached from this one; chains longer than 6 lose their head."""
        return Symbol(role, name, self if self.depth < 6 else None, self.depth + 1 if self.depth < 6 else 0)


@dataclass(frozen=True)
class Const:
    """A Python constant. `fixed` is False for a default that a caller or a command line may override."""

    value: Any
    fixed: bool = True


@dataclass(frozen=True)
class Operation:
    """Arithmetic over values of which at least one is unknown: "*", "+", "len", "ceil" ..."""

    op: str
    operands: tuple[Value, ...]
    depth: int = 0
    detail: str = field(default="", compare=False)
    """Of a comparison its operator; of "either" what joins it ("and", "or") where a test does; "gradient": a number
    that was read from gradients."""


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


@dataclass(frozen=True)
class Tensor:
    """An array of torch, jax or numpy.

    `kind`: "softmax", "log_softmax", "sigmoid", "relu", "tanh", "linear" (straight out of a linear or convolution
    layer), "" otherwise.
    `grad`: whether an autograd graph hangs on it; None where unknown. `low`, `high`: bounds of its elements that the
    arithmetic reaches, already rounded to the dtype. `models`: ids of the modules it was computed by.
    `tags`: "layer" (a module's output, shape untouched), "column" (a product with a matrix of one column), "batch"
    (came out of a loader), "scaled" (by a GradScaler),
    "gradient", "reduced" (to one number), "one_row" (reduced over some axis), "padded", "integer", "shifted".
    """

    kind: str = ""
    grad: bool | None = None
    shape: Shape | None = None
    dtype: str | None = None
    low: float | None = None
    high: float | None = None
    site: Site | None = None
    kind_site: Site | None = None
    models: frozenset[int] = frozenset()
    tags: frozenset[str] = frozenset()
    parents: frozenset[Site] = frozenset()
    """Sites of the attached tensors that were added up or weighted into this one."""

    def plain(self, **changes: Any) -> Tensor:
        """The same graph, but nothing known of content or form."""
        base = Tensor(grad=self.grad, dtype=self.dtype, site=self.site, models=self.models, parents=self.parents)
        return replace(base, **changes)

    def tagged(self, *tags: str) -> Tensor:
        """With further tags."""
        return replace(self, tags=self.tags | frozenset(tags))


@dataclass(frozen=True)
class Ref:
    """A name of an installed package: "torch.nn.functional.cross_entropy"."""

    name: str


@dataclass(eq=False)
class Function:
    """A function or lambda of the project, with what it closes over."""

    info: FunctionInfo
    closure: dict[str, Value] | None = None
    closures: tuple[dict[str, Value], ...] = ()
    owner: Value | None = None
    """The object or class that it is bound to."""
    wrappers: tuple[str, ...] = ()
    """Transformations around it: "jax.jit", "jax.vmap", "jax.grad" ..., outermost last."""


@dataclass(eq=False)
class Klass:
    """A class of the project."""

    info: ClassInfo


@dataclass(eq=False)
class ModuleValue:
    """A file of the project, imported."""

    path: str
    names: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Thing(Nested):
    """An object of an installed package: an optimizer, a layer, a loader, a context manager."""

    type: str
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    site: Site
    node: ast.AST
    state: dict[str, Any] = field(default_factory=dict)
    """What later calls did to it: "frozen", "dtype", "prepared", "wraps", "order"."""
    born_in: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        self.settle()

    def settle(self) -> None:
        """Leave out what is too much inside; layers that are left out make the list of layers an open one."""
        if not any(isinstance(a, Nested) for a in (*self.args, *self.kwargs.values())):
            return
        found = self.kept([*enumerate(self.args), *self.kwargs.items()])
        if self.cut:
            args = [v for k, v in found if isinstance(k, int)]
            left_out = len(args) < len(self.args)
            self.args = (Bag("list", args, open=True),) if left_out else self.args
            self.kwargs = {k: v for k, v in found if isinstance(k, str)}

    @property
    def short(self) -> str:
        """The last part of its type."""
        return self.type.rpartition(".")[2]

    def argument(self, position: int, name: str) -> Value | None:
        """A constructor argument by position or name."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[position] if 0 <= position < len(self.args) else None


@dataclass(eq=False)
class Instance:
    """An object of a class of the project."""

    klass: Klass
    site: Site
    node: ast.AST
    attrs: dict[str, Value] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    born_in: tuple[Block, ...] = ()
    args: tuple[Value, ...] = ()
    kwargs: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Bag(Nested):
    """A list, tuple, set or generator. `open` says that it may hold more than `items` (which are then examples)."""

    kind: str
    items: list[Value]
    open: bool = False
    site: Site | None = None
    born_in: tuple[Block, ...] = ()
    cleared: bool = False
    size: Value | None = None
    """How many items it holds, where a loop's count says so."""
    ordered_by: str | None = None
    """The loop variable of its outer loop that also stands in its items: rows made class by class."""
    suspends_grad: bool = False
    """A generator that yields under `no_grad`: a context manager of the project's own."""

    def __post_init__(self) -> None:
        self.settle()

    def settle(self) -> None:
        """Leave out what is too much inside. To be called after `items` has grown."""
        found = self.kept(enumerate(self.items))
        if self.cut:
            self.items[:] = [v for _, v in found]
            self.open = True


@dataclass(eq=False)
class Table(Nested):
    """A dict with the entries that are known; `rest` joins values under unknown keys."""

    items: dict[Any, Value]
    open: bool = False
    rest: Value | None = None
    site: Site | None = None
    born_in: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        self.settle()

    def settle(self) -> None:
        """Leave out what is too much inside. To be called after `items` or `rest` has grown."""
        rest = [] if self.rest is None else [(self, self.rest)]
        found = dict(self.kept([*rest, *self.items.items()]))
        if self.cut:
            self.rest = found.pop(self, None)
            self.items.clear()
            self.items.update(found)
            self.open = True


@dataclass(eq=False)
class Parameters:
    """The parameters of modules: `model.parameters()`, a filtered list, a parameter group.

    `only_trainable`: filtered by requires_grad. `partial`: chosen by some other condition.
    """

    modules: tuple[Value, ...]
    only_trainable: bool = False
    partial: bool = False
    named: bool = False


@dataclass(eq=False)
class Method:
    """A method of something that is not a class of the project."""

    receiver: Value
    name: str


Value = (
    Symbol
    | Const
    | Operation
    | Tensor
    | Ref
    | Function
    | Klass
    | ModuleValue
    | Thing
    | Instance
    | Bag
    | Table
    | Parameters
    | Method
)

NONE = Const(None)
UNKNOWN = Symbol("unknown", "?")


def join(left: Value, right: Value) -> Value:
    """What holds of both: the value after an `if` of which either branch may have run."""
    if left is right or (type(left) is type(right) and left == right):
        return left
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Const) and one.value is None and not isinstance(other, (Const, Operation)):
            return other  # `loss = None` and then, under a condition, a loss: whoever uses it has the loss
    if isinstance(left, (Thing, Instance)) and isinstance(right, (Thing, Instance)) and unwrap(left) is unwrap(right):
        return left if left is not unwrap(left) else right  # `if ddp: model = DDP(model)`: the same module
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return join_tensors(left, right)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Tensor) and isinstance(other, Const) and isinstance(other.value, (int, float)):
            return one  # total = 0, then total = total + loss
    if isinstance(left, Bag) and isinstance(right, Bag):
        return _join_bags(left, right)
    numbers = (Const, Operation, Symbol)
    if isinstance(left, numbers) and isinstance(right, numbers) and (_is_number(left) or _is_number(right)):
        depth = (
            1 + max(v.depth for v in (left, right) if not isinstance(v, Const))
            if not (isinstance(left, Const) and isinstance(right, Const))
            else 1
        )
        return Operation("either", (left, right), depth) if depth <= 8 else UNKNOWN
    return UNKNOWN


def _is_number(value: Value) -> bool:
    return isinstance(value, Operation) or number(value) is not None


def join_tensors(a: Tensor, b: Tensor) -> Tensor:
    """What holds of both tensors; the graph hangs on it only if it hangs on both."""
    detached = frozenset({"maybe_detached"} if (a.grad is False) != (b.grad is False) else ())
    return Tensor(
        kind=a.kind if a.kind == b.kind else "",
        grad=a.grad if a.grad == b.grad else None,
        shape=a.shape if a.shape == b.shape else None,
        dtype=a.dtype if a.dtype == b.dtype else None,
        low=None if a.low is None or b.low is None else min(a.low, b.low),
        high=None if a.high is None or b.high is None else max(a.high, b.high),
        site=a.site,
        kind_site=a.kind_site if a.kind == b.kind else None,
        models=a.models | b.models,
        tags=a.tags & b.tags | detached,
        parents=a.parents | b.parents,
    )


def _join_bags(a: Bag, b: Bag) -> Bag:
    if not a.open and not b.open and len(a.items) == len(b.items):
        return Bag(a.kind, [join(x, y) for x, y in zip(a.items, b.items, strict=False)], site=a.site, born_in=a.born_in)
    return Bag(a.kind, [*a.items, *b.items][:8], open=True, site=a.site, born_in=a.born_in)


_LARGEST = 10**308
"""No float64 is much larger: 1.8e308 (IEEE 754)."""


def finite_or_inf(value: object) -> object:
    """A constant as numbers are reckoned with here: an integer that no float holds is infinite."""
    return math.inf if type(value) is int and value > _LARGEST else value


def number(value: Value | None) -> float | None:
    """The number that a constant holds (a bool is none), else None."""
    if isinstance(value, Const) and isinstance(value.value, (int, float)) and not isinstance(value.value, bool):
        try:
            return float(value.value)
        except OverflowError:
            return None
    return None


def whole(found: float | None) -> int | None:
    """A number as a count or an index; None where it is no number, or infinite as 1e999 is."""
    return int(found) if found is not None and math.isfinite(found) else None


def truth(value: Value | None) -> bool | None:
    """True or False where the program fixes it, else None."""
    if isinstance(value, Const):
        return bool(value.value) if value.fixed else None
    if isinstance(value, (Function, Klass, ModuleValue, Instance, Thing, Method)):
        return True
    return None


def parts(value: Value) -> Iterator[Value]:
    """The value and everything that it was computed or reached from by name or arithmetic."""
    stack: list[Value] = [value]
    for _ in range(200):
        if not stack:
            return
        one = stack.pop()
        yield one
        if isinstance(one, Operation):
            stack.extend(one.operands)
        elif isinstance(one, Symbol) and one.parent is not None:
            stack.append(one.parent)


def unwrap(value: Value) -> Value:
    """The module inside DistributedDataParallel, DataParallel and similar wrappers."""
    for _ in range(5):
        inner = value.state.get("wraps") if isinstance(value, (Thing, Instance)) else None
        if inner is None:
            break
        value = inner
    return value
