"""Where a piece of code runs, and what the parts of the interpreter may ask of the whole.

The meanings of calls are in tables that the interpreter imports, and its parts derive from each other; all of them know
it by this protocol alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from traindx_tools.on_code.definitions import ClassInfo, FunctionInfo
from traindx_tools.on_code.nesting import Nested
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.values import UNKNOWN, Function, Instance, ModuleValue, Site, Thing, Value


@dataclass(eq=False)
class Frame:
    """One activation of a function or of a module's body."""

    file: SourceFile
    module: ModuleValue
    function: FunctionInfo | None = None
    env: dict[str, Value] = field(default_factory=dict)
    closures: tuple[dict[str, Value], ...] = ()
    bound_in: dict[str, tuple[Block, ...]] = field(default_factory=dict)
    """The loops of this frame around the last plain binding of each name."""
    loops: tuple[Block, ...] = ()
    """The loops of this frame around the current statement, outermost first."""
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    yield_grad: bool | None = None
    """The autograd mode at a yield, for context managers written as generators."""
    yield_count: Value | None = None
    """How often it yields, where it yields once in each turn of one loop that says how many they are."""
    globals_: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)

    @property
    def owner(self) -> ClassInfo | None:
        """The class whose method this is."""
        return self.function.owner if self.function else None

    def bind(self, name: str, value: Value) -> None:
        """A plain assignment to a name."""
        if name in self.globals_:
            self.module.names[name] = value
            return
        if name in self.outer:
            for env in self.closures:
                if name in env:
                    env[name] = value
                    return
        self.env[name] = value
        self.bound_in[name] = self.loops

    def lookup(self, name: str) -> Value | None:
        """The value of a name, innermost scope first."""
        if name in self.env:
            return self.env[name]
        for env in self.closures:
            if name in env:
                return env[name]
        return self.module.names.get(name)


@dataclass(frozen=True, eq=False)
class Call:
    """A call to something that is not of the project."""

    name: str
    receiver: Value | None
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    node: ast.AST
    frame: Frame

    @property
    def site(self) -> Site:
        """Where it stands."""
        return Site(self.frame.file.path, getattr(self.node, "lineno", 1))

    def get(self, position: int, name: str) -> Value | None:
        """An argument by position or name."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[position] if 0 <= position < len(self.args) else None

    @property
    def first(self) -> Value:
        """The first argument, unknown if there is none."""
        return self.args[0] if self.args else next(iter(self.kwargs.values()), UNKNOWN)


class Interpreter(Protocol):
    """Follows a program: what each class from `evaluation.Evaluation` to `execute.Interpreter` may ask of the whole."""

    grad: bool | None
    loops: tuple[Block, ...]
    blocks: list[Block]
    created: int
    differentiated: bool
    frozen: list[Thing | Instance]
    reached: set[int]
    assumes: bool

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""

    def call(self, callee: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame) -> Value:
        """The result of calling a value."""

    def invoke(self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> Value:
        """Run a function's body with these arguments, or reuse what an equal call gave."""

    def element(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """What iterating over a value gives, one item standing for all."""

    def iterate(self, target: ast.expr, iterable: Value, node: ast.AST, frame: Frame) -> Block:
        """Open a loop block and bind its target."""

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Bind a target."""

    def define(self, node: ast.Lambda, frame: Frame) -> Function:
        """A lambda as a function."""

    def module(self, file: SourceFile) -> ModuleValue:
        """The module of a file, its top level followed at the first request."""

    def module_of(self, info: FunctionInfo | ClassInfo) -> ModuleValue:
        """The module value of the file in which something is defined."""

    def find_import(self, dotted: str, importer: SourceFile, level: int) -> SourceFile | None:
        """The project's file that an import means."""

    def run_body(self, statements: list[ast.stmt], frame: Frame) -> None:
        """Execute statements in a frame."""

    def attribute(self, base: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        """`base.name`."""

    def set_attribute(self, base: Value, name: str, value: Value, node: ast.AST, frame: Frame) -> None:
        """`base.name = value`."""

    def bound(self, function: Function, owner: Value) -> Function:
        """A method bound to an object; the same object for the same pair."""

    def freeze_parameters(self, parameter: Thing, wanted: bool | None, site: Site) -> None:
        """Set requires_grad of every module that a parameter of a loop stands for."""

    def in_turns(self, kind: str, node: ast.AST, frame: Frame,
                 subject: Value | None = None) -> AbstractContextManager[Block]:
        """A block of its own for what is followed once and runs again and again."""

    def note_cut(self, value: Nested, node: ast.AST, frame: Frame) -> None:
        """Remember that a value holds too much to be looked through."""

    def site(self, node: ast.AST, frame: Frame) -> Site:
        """Where a node stands."""

    def event(self, kind: str, name: str, node: ast.AST, frame: Frame, receiver: Value | None = None,
              args: tuple[Value, ...] = ()) -> Event:
        """An event at this point, appended to the block that is being built."""


Handler = Callable[[Interpreter, Call], "Value | None"]
