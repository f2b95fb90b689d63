"""Abstract values that hold others, and the project's functions and classes: no judgement, only what stands where.

They are in one file because they hold each other: a class has bases that are values, a bound method is a value with a
definition. What an expression may be is `Value`, at the end of the values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code.descriptions import Axes, Const, Ref, Site, Tensor
from traindx_tools.on_code.nesting import Nested
from traindx_tools.on_code.source import SourceFile, below, children

MOST_BASES = 50
"""Most classes of one inheritance that are looked through; the deepest in the large libraries have under 20."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

MODULE_BASES = words("names.toml", "module_bases")
"""Last parts of base classes that make a class a neural module."""


class Surrounding(Protocol):
    """A block of the trace around the place where an object is made: a `trace.Block`."""

    @property
    def node(self) -> ast.AST:
        """The loop, condition or call as it is written."""


@dataclass(frozen=True)
class Symbol:
    """Something unknown. `role` says how it came about: "parameter", "attribute", "item", "call", "iteration" ..."""

    role: str
    name: str
    parent: Value | None = None
    depth: int = 0
    axes: Axes | None = None
    """Of an array: what is known of its axes. Of "size", the length that it is; of "shape", those that it lists."""

    def child(self, role: str, name: str) -> Symbol:
        """What is reached from this one; chains longer than 6 lose their head."""
        return Symbol(role, name, self if self.depth < 6 else None, self.depth + 1 if self.depth < 6 else 0)


@dataclass(frozen=True)
class Operation:
    """Arithmetic over values of which at least one is unknown: "*", "+", "len", "ceil" ..."""

    op: str
    operands: tuple[Value, ...]
    depth: int = 0
    detail: str = field(default="", compare=False)
    """Of a comparison its operator; of "either" what joins it ("and", "or") where a test does; "gradient": a number
    that was read from gradients."""


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
    statics: frozenset[str] = frozenset()
    """The parameters for each value of which a compilation is made."""


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
    born_in: tuple[Surrounding, ...] = ()

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
    born_in: tuple[Surrounding, ...] = ()
    args: tuple[Value, ...] = ()
    kwargs: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Bag(Nested):
    """A list, tuple, set or generator. `open` says that it may hold more than `items` (which are then examples)."""

    kind: str
    items: list[Value]
    open: bool = False
    site: Site | None = None
    born_in: tuple[Surrounding, ...] = ()
    cleared: bool = False
    size: Value | None = None
    """How many items it holds, where a loop's count says so."""
    ordered_by: str | None = None
    """The loop variable of its outer loop that also stands in its items: rows made class by class."""
    bound: Value | None = None
    """Most items that a deque keeps; None where it is not bounded."""
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
    born_in: tuple[Surrounding, ...] = ()

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
    lazy: bool = False
    """An iterator: it is gone through once."""
    spent: Site | None = None
    """Where it was gone through."""
    loops: int = 0
    """The loops around the place where it was made."""

    def spend(self, site: Site, certain: bool) -> Site | None:
        """Goes through it; where that was done before, if it was."""
        before = self.spent
        if self.lazy and certain:
            self.spent = before or site
        return before


@dataclass(eq=False)
class Method:
    """A method of something that is not a class of the project."""

    receiver: Value
    name: str


Value = (Symbol | Const | Operation | Tensor | Ref | Function | Klass | ModuleValue | Thing | Instance | Bag | Table
         | Parameters | Method)


_SAID = re.compile(r"\b(\w+): \(((?:[A-Z]\w?|batch|samples|rows|time|steps|n|b)(?:,[ \w+*/-]*)*)\)")


@dataclass(eq=False)
class FunctionInfo:
    """A function definition."""

    node: FunctionNode
    file: SourceFile
    name: str
    owner: ClassInfo | None = None
    is_static: bool = False
    is_classmethod: bool = False
    is_property: bool = False
    grad: bool | None = None
    """What a decorator sets autograd to: False under `@torch.no_grad()`, None where none says."""
    unknown_decorator: bool = False
    wrappers: tuple[str, ...] = ()
    statics: frozenset[str] = frozenset()

    @property
    def qualified(self) -> str:
        """ "Class.method" or the plain name."""
        return f"{self.owner.name}.{self.name}" if self.owner else self.name

    @cached_property
    def parameters(self) -> list[str]:
        """The names of what it takes, in order."""
        spec = self.node.args
        return [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]

    @cached_property
    def said_ranks(self) -> dict[str, int]:
        """How many axes a parameter has by the docstring: `x: (batch, time, features)`."""
        text = "" if isinstance(self.node, ast.Lambda) or not self.node.body else ast.get_docstring(self.node) or ""
        found = {n: [a for a in s.split(",") if a.strip()] for n, s in _SAID.findall(text) if n in self.parameters}
        return {n: len(axes) for n, axes in found.items()}

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """The body; a lambda's is its one return."""
        if isinstance(self.node, ast.Lambda):
            return [ast.copy_location(ast.Return(self.node.body), self.node.body)]
        return self.node.body

    @cached_property
    def is_generator(self) -> bool:
        """Whether its own body yields."""
        first, last = self.node.lineno - 1, self.node.end_lineno or self.node.lineno
        if not any("yield" in line for line in self.file.lines[first:last]):  # most functions: no walk over them
            return False
        return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_nodes(self.statements))


@dataclass(eq=False)
class ClassInfo:
    """A class definition with its bases resolved to values."""

    node: ast.ClassDef
    file: SourceFile
    name: str
    bases: tuple[Value, ...] = ()
    methods: dict[str, Function] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)
    is_dataclass: bool = False

    @cached_property
    def _changes(self) -> list[ast.Assign | ast.AugAssign]:
        """The assignments of the methods, those of the constructor aside."""
        bodies = [f.info.node for name, f in self.methods.items() if name != "__init__"]
        return [n for body in bodies for n in below(body) if isinstance(n, (ast.Assign, ast.AugAssign))]

    @cached_property
    def counters(self) -> frozenset[str]:
        """The attributes to which a method adds 1: they count calls."""
        return frozenset(n.target.attr for n in self._changes if isinstance(n, ast.AugAssign)
                         and isinstance(n.target, ast.Attribute) and isinstance(n.op, ast.Add)
                         and isinstance(n.value, ast.Constant) and n.value.value == 1)

    @cached_property
    def flags(self) -> frozenset[str]:
        """The attributes that a method other than the constructor sets to True or False."""
        return frozenset(t.attr for n in self._changes if isinstance(n, ast.Assign)
                         and isinstance(n.value, ast.Constant) and isinstance(n.value.value, bool)
                         for t in n.targets if isinstance(t, ast.Attribute))

    def lineage(self) -> tuple[ClassInfo, ...]:
        """This class and its project bases, nearest first; no more than `MOST_BASES`."""
        return self._lineage

    @cached_property
    def _lineage(self) -> tuple[ClassInfo, ...]:
        found: list[ClassInfo] = []
        seen: set[int] = set()
        queue: list[ClassInfo] = [self]
        for info in queue:
            if id(info) not in seen:
                seen.add(id(info))
                found.append(info)
                queue.extend(b.info for b in info.bases if isinstance(b, Klass))
            if len(found) == MOST_BASES:
                break
        return tuple(found)

    def method(self, name: str, after: ClassInfo | None = None) -> Function | None:
        """The method of that name; with `after`, the one that `super()` in that class finds."""
        passed = after is None
        for info in self.lineage():
            if passed and name in info.methods:
                return info.methods[name]
            passed = passed or info is after
        return None

    def attribute(self, name: str) -> Value | None:
        """A class attribute by name."""
        return next((i.attributes[name] for i in self.lineage() if name in i.attributes), None)

    @cached_property
    def foreign_bases(self) -> frozenset[str]:
        """Qualified names of the installed packages' classes that it derives from."""
        return frozenset(b.name for info in self.lineage() for b in info.bases if isinstance(b, Ref))

    def derives(self, *last_parts: str) -> bool:
        """Whether a base of an installed package ends in one of these names."""
        return any(b.rpartition(".")[2] in last_parts for b in self.foreign_bases)

    @cached_property
    def is_module(self) -> bool:
        """Whether it is a neural module of torch, flax or equinox."""
        return any(b.rpartition(".")[2] in MODULE_BASES or b.endswith("PreTrainedModel") for b in self.foreign_bases)


def own_nodes(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a function's own body, without those of functions and classes defined in it."""
    stack: list[ast.AST] = list(statements)
    while stack:
        node = stack.pop()
        yield node
        if node.__class__ not in _SCOPES:
            stack += children(node)


_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda})
