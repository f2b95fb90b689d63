"""What a program does, in order, as far as it can be known without running it.

A trace is a tree. Its leaves are events (a call, a store, an operation on two tensors); its inner nodes are blocks: a
loop, a `with`, a branch, the body of a called function. A function that is called twice with the same arguments shares
one block.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from traindx_tools.on_code.definitions import FunctionInfo
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.values import Site, Value
from traindx_tools.program.moments import Spot

MAX_EVENTS = 30_000
"""Most events that one walk over a block visits; shared blocks are visited at each call."""
MAX_REPEATS = 3_000
"""Most steps of one walk through blocks that it has passed before: calls of calls of calls multiply."""


@dataclass(eq=False)
class Event:
    """One thing that happens. `kind`: "call", "store", "augmented" (x += y or x = x + y), "blended"
    (x = a * x + b * y), "carried" (x = f(x)), "operation", "delete", "named" (an attribute that stands as a statement
    of its own), "read" (a module's mode is kept), "alias" (an object gets another name).

    `name` is the qualified name of a called function or "<type>.<method>"; `method` its last part. `grad` is whether
    autograd records at this point (None where unknown), `autocast` the dtype of an enclosing autocast.
    """

    kind: str
    name: str
    method: str
    node: ast.AST
    file: SourceFile
    function: FunctionInfo | None
    receiver: Value | None = None
    args: tuple[Value, ...] = ()
    kwargs: dict[str, Value] = field(default_factory=dict)
    result: Value | None = None
    grad: bool | None = True
    autocast: str | None = None
    differentiated: bool = False
    """Whether it runs inside jax.grad or a relative."""
    crossing: int = 0
    """For "augmented" names: how many of the innermost loops of this function lie between the binding and here; -1
    where the name is an outer function's."""
    framework: str = ""
    """The framework hook whose body this is: "training_step", "validation_step" ..., else ""."""

    @property
    def line(self) -> int:
        """1-based line of the event."""
        return int(getattr(self.node, "lineno", 1))

    @property
    def site(self) -> Site:
        """File and line."""
        return Site(self.file.path, self.line)

    @property
    def spot(self) -> Spot:
        """Its place, with the line quoted and the function named."""
        return Spot(self.file.path, self.line, getattr(self.node, "end_lineno", None), self.file.quote(self.line),
                    self.function.qualified if self.function else None)

    @property
    def text(self) -> str:
        """Its text, on one line."""
        return self.file.segment(self.node)

    @property
    def owner(self) -> str:
        """What a method is called on, as it is written."""
        function = self.node.func if isinstance(self.node, ast.Call) else None
        return self.file.segment(function.value) if isinstance(function, ast.Attribute) else ""

    def argument(self, position: int, name: str) -> Value | None:
        """A call's argument by position or name."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[position] if 0 <= position < len(self.args) else None


@dataclass(eq=False)
class Block:
    """Events that belong together. `kind`: "root", "loop", "scan" (a loop of `jax.lax`), "map" (a function over rows),
    "with", "branch", "call"."""

    kind: str
    node: ast.AST
    file: SourceFile
    function: FunctionInfo | None = None
    body: list[Event | Block] = field(default_factory=list)
    subject: Value | None = None
    """What a loop iterates over, the context manager of a `with`, the test of a branch, the callee of a call."""
    count: Value | None = None
    """How often a loop runs, as a value, where it says so."""
    framework: str = ""
    result: Value | None = None
    """What a followed call returned."""
    is_other: bool = False
    """Of a branch: it runs where its subject is not true."""
    renewed: tuple[Value, ...] = ()
    """What a turn of a loop is given, and what names, or a carry, held before it and hold no more behind it."""
    left: str = ""
    """How a branch is certainly left: "return", "raise", "break", "continue"; "" where what follows it runs too."""

    @property
    def line(self) -> int:
        """1-based line where it begins."""
        return int(getattr(self.node, "lineno", 1))

    @property
    def spot(self) -> Spot:
        """The place where it begins."""
        return Spot(self.file.path, self.line, None, self.file.quote(self.line),
                    self.function.qualified if self.function else None)

    @cached_property
    def methods(self) -> frozenset[str]:
        """The last parts of the names of all calls inside. Read it only after the interpreter is done."""
        names: set[str] = set()
        for item in self.body:
            names |= {item.method} if isinstance(item, Event) else item.methods
        return frozenset(names)

    @cached_property
    def overwritten(self) -> frozenset[int]:
        """The identities of what attributes held that are set inside. Read it only after the interpreter is done."""
        stores = [p.event for p in self.places if p.event.name.startswith("attribute.")]
        return frozenset(id(e.args[1]) for e in stores if len(e.args) > 1)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Everything that happens inside, in order. Read it only after the interpreter is done."""
        return tuple(walk(self))


@dataclass(eq=False, slots=True)
class Place:
    """An event together with the blocks around it, outermost first."""

    event: Event
    path: tuple[Block, ...]
    order: int

    @property
    def loops(self) -> tuple[Block, ...]:
        """The loops around it, outermost first."""
        return tuple(b for b in self.path if b.kind == "loop")

    @property
    def branches(self) -> tuple[Block, ...]:
        """The conditions around it, outermost first."""
        return tuple(b for b in self.path if b.kind == "branch")


def walk(block: Block, only: frozenset[str] | None = None) -> Iterator[Place]:
    """The events inside a block in order, with their paths (the block itself included).

    With `only`, blocks that hold none of these methods are passed over.
    """
    if only is not None and not only & block.methods:
        return
    budget, order, repeats = MAX_EVENTS, 0, MAX_REPEATS
    passed: set[int] = set()
    body, at = block.body, 0
    path: tuple[Block, ...] = (block,)
    outer: list[tuple[list[Event | Block], int, tuple[Block, ...]]] = []
    while True:
        if at == len(body):
            if not outer:
                return
            body, at, path = outer.pop()
            continue
        item = body[at]
        at += 1
        if isinstance(item, Event):
            if only is None or item.method in only:
                yield Place(item, path, order)
            order += 1
            budget -= 1
            if not budget:
                return
        elif len(path) < 80 and (only is None or not only.isdisjoint(item.methods)):
            if id(item) in passed:
                repeats -= 1 + len(item.body)
                if repeats < 0:
                    continue
            passed.add(id(item))
            outer.append((body, at, path))
            body, at, path = item.body, 0, (*path, item)


def unique_events(roots: list[Block]) -> Iterator[Event]:
    """Every event once, however often its block is shared."""
    seen: set[int] = set()
    stack: list[Event | Block] = list(reversed(roots))
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Event):
            yield item
        else:
            stack.extend(reversed(item.body))
