"""Functions and classes of the project as they are written: no judgement, only what stands where."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from traindx_tools.on_code.source import SourceFile, children
from traindx_tools.on_code.values import Function, Klass, Ref, Value

MOST_BASES = 50
"""Most classes of one inheritance that are looked through; the deepest in the large libraries have under 20."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

MODULE_BASES = frozenset(
    {
        "Module",
        "LightningModule",
        "PreTrainedModel",
        "GenerationMixin",
        "Sequential",
        "ModuleList",
        "FairseqModel",
    }
)
"""Last parts of base classes that make a class a neural module."""


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

    @property
    def qualified(self) -> str:
        """ "Class.method" or the plain name."""
        return f"{self.owner.name}.{self.name}" if self.owner else self.name

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
    def counters(self) -> frozenset[str]:
        """The attributes to which a method adds 1: they count calls."""
        bodies = [f.info.node for name, f in self.methods.items() if name != "__init__"]
        return frozenset(n.target.attr for body in bodies for n in ast.walk(body) if isinstance(n, ast.AugAssign)
                         and isinstance(n.target, ast.Attribute) and isinstance(n.op, ast.Add)
                         and isinstance(n.value, ast.Constant) and n.value.value == 1)

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
