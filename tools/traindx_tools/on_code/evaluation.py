"""What following a program keeps at hand, and the steps that all parts of it share."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from traindx_tools.on_code.interpreter import Frame, Interpreter
from traindx_tools.on_code.nesting import MOST_PARTS, Nested
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.unread import Place, UnreadValues
from traindx_tools.on_code.values import Instance, Site, Symbol, Thing, Value


class Evaluation(Interpreter):
    """The state of an evaluation, its events and its budget. Expressions, calls and statements are added by the
    classes that derive from it."""

    def __init__(self) -> None:
        self.grad: bool | None = True
        self.autocast: str | None = None
        self.blocks: list[Block] = []
        self.loops: tuple[Block, ...] = ()
        self.differentiated = False
        """Whether the code is being followed inside jax.grad or a relative."""
        self.fuel = 0
        self.omitted: dict[str, tuple[SourceFile, str]] = {}
        """For each file followed in part only, by path: what was left out first."""
        self.created = 0
        """How many objects were made: a function that makes objects is not remembered."""
        self.stored: dict[tuple[Symbol, str], Value] = {}
        """Attributes that were set on what an unknown call gave: `args = parse()`, `args.seed += rank`."""
        self.within_each = 0
        """Loops around that are followed once for each of a few objects."""
        self.frozen: list[Thing | Instance] = []
        """Modules of which all parameters were frozen at some time, in order."""
        self.unread = UnreadValues()
        """What came out of files."""

    def site(self, node: ast.AST, frame: Frame) -> Site:
        """Where a node stands."""
        return Site(frame.file.path, getattr(node, "lineno", 1))

    def place(self, node: ast.AST, frame: Frame) -> Place:
        """A node, and what runs around it."""
        return Place(node, frame.file, tuple(self.blocks))

    def event(self, kind: str, name: str, node: ast.AST, frame: Frame, receiver: Value | None = None,
            args: tuple[Value, ...] = (), kwargs: dict[str, Value] | None = None, result: Value | None = None,
            crossing: int = 0) -> Event:
        """An event at this point, appended to the block that is being built."""
        made = Event(kind, name, name[name.rfind(".") + 1 :], node, frame.file, frame.function, receiver, args, {}
            if kwargs is None else kwargs, result, self.grad, self.autocast, self.differentiated, crossing)
        self.blocks[-1].body.append(made)
        return made

    @contextmanager
    def in_branch(self, node: ast.AST, test: Value, frame: Frame, is_other: bool = False) -> Iterator[Block]:
        """A branch of its own for what is followed meanwhile."""
        block = Block("branch", node, frame.file, frame.function, subject=test, is_other=is_other)
        self.blocks[-1].body.append(block)
        self.blocks.append(block)
        yield block
        self.blocks.pop()

    @contextmanager
    def in_turns(self, kind: str, node: ast.AST, frame: Frame, subject: Value | None = None) -> Iterator[Block]:
        """A block of its own for what is followed once and runs again and again."""
        block = Block(kind, node, frame.file, frame.function, subject=subject)
        self.blocks[-1].body.append(block)
        self.blocks.append(block)
        outer, self.loops = self.loops, (*self.loops, block)
        yield block
        self.blocks.pop()
        self.loops = outer

    def note_cut(self, value: Nested, node: ast.AST, frame: Frame) -> None:
        """Remember that a value holds too much to be looked through."""
        if value.cut:
            self.left_out(frame.file, node, f"values that hold more than {MOST_PARTS:,} parts")

    def left_out(self, file: SourceFile, node: ast.AST, what: str) -> None:
        """Remember what of a file is not followed; the first such place of each file is told."""
        self.omitted.setdefault(file.path, (file, f"{what} are left out (line {getattr(node, 'lineno', 1)})"))

    def spend(self, node: ast.AST, frame: Frame) -> bool:
        """Take one step from the budget of this entry and of the file; False where nothing is left."""
        self.fuel -= 1
        if self.fuel >= 0:
            return True
        self.left_out(frame.file, node, "steps beyond the budget of a file")
        return False
