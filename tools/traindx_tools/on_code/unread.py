"""What came out of a file and nobody has read yet: values that names and attributes hold, states that objects took.

The follower notes each where it is put, and forgets it where somebody reads it; a read that only prints is none. What
is bound anew, emptied, or made anew with another state before that is lost, once what stands there instead is read.
What happens under a condition or in a loop that the load is not under, or in another entry, loses nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import Instance, Method, Symbol, Thing, Value, library_of, parts

PUTS_IN = re.compile(r"^((load|restore|set)(_?(from|all|full|weights|states?|dict))*|setstate)$")
"""Methods that put what they are given into their object."""
_FILES = {kind: frozenset(names) for kind, names in table("followed.toml")["files"].items()}
ANY_FILE, TELLING = _FILES["any"], _FILES["telling"]
LOADERS = frozenset(n.rpartition(".")[2] for n in _FILES["checkpoints"] | ANY_FILE | _FILES["methods"])


@dataclass(frozen=True, eq=False)
class Place:
    """A piece of text, and the blocks around it when it ran."""

    node: ast.AST
    file: SourceFile
    path: tuple[Block, ...]

    def is_as_sure_as(self, other: Place) -> bool:
        """Whether it runs wherever the other one did, once."""
        return self.path[0] is other.path[0] and all(
            b in other.path for b in self.path if b.kind in ("branch", "loop"))


@dataclass(frozen=True, eq=False)
class Unread:
    """What was put under a name of a frame or an object (`home`). `state`: it is an object that took a state."""

    value: Value
    name: object
    home: object
    at: Place
    state: bool = False
    lost: Place | None = None
    instead: Value | None = None
    turns: bool = False
    """A loop counts in it."""


@dataclass(eq=False)
class UnreadValues:
    """All of them by their names, objects by their identity. `sure`: the lost ones in whose place others were read."""

    on: bool = False
    """Something was loaded."""
    held: dict[object, list[Unread]] = field(default_factory=dict)
    sure: list[Unread] = field(default_factory=list)
    quiet: int = 0
    """Calls around that only tell."""

    def read(self, name: object, home: object, found: Value, around: bool = False) -> None:
        """A name is read. `around`: it belongs to a scope around, it is not known to which."""
        if not self.quiet:
            self.held.pop(id(found), None)
            for one in self._of(name, home, around):
                self.sure += [one] if one.lost is not None else []
                self._forget(one)

    def bind(self, name: str, home: object, at: Place, old: Value | None, new: Value) -> None:
        """A name gets a value, and another one than it had."""
        loop = at.path[-1]
        turns = loop.kind == "loop" and any(n is at.node for n in below(getattr(loop.node, "target", loop.node)))
        at = replace(at, path=at.path[:-1]) if turns else at
        before = self._of(name, home)
        if id(old) in self.held and isinstance(new, (Thing, Instance)) and new is not old and isinstance(
                getattr(syntax(at.file).statement(at.node), "value", None), ast.Call):
            before = [*before, *self.held[id(old)]]
        for one in before:
            self._forget(one)
        if is_loaded(new):
            self._hold(Unread(new, name, home, at))
            self.put_in(home, at)
            return
        for one in before:
            if one.lost is not None or not at.is_as_sure_as(one.at):
                self._hold(one)
            else:
                self._hold(replace(one, name=name, home=home, lost=at, instead=new, turns=turns))

    def put_in(self, owner: object, at: Place) -> None:
        """An object, and that of which it is a part, took a state."""
        while isinstance(owner, (Symbol, Method)):
            owner = owner.parent if isinstance(owner, Symbol) else owner.receiver
        if isinstance(owner, (Thing, Instance)):
            self.held[id(owner)] = [Unread(owner, id(owner), None, at, state=True)]

    def empty(self, name: str, home: object, at: Place) -> None:
        """`memory.clear()`: what came out of a file is gone, and the same object is used on."""
        for one in self._of(name, home):
            if one.lost is None and at.is_as_sure_as(one.at):
                self._forget(one)
                self._hold(replace(one, lost=at, instead=one.value))

    def concern(self, block: Block) -> bool:
        """Whether a function that runs in a block mentions one of the names: it may do something else this time."""
        names = {n for n in self.held if isinstance(n, str)}
        stack, seen = [block] if names else [], {id(block)}
        for one in stack:
            if one.function is not None and not names.isdisjoint(_mentioned(one.function.node)):
                return True
            inner = [b for b in one.body if isinstance(b, Block) and id(b) not in seen]
            seen.update(map(id, inner))
            stack += inner
        return False

    def _of(self, name: object, home: object, around: bool = False) -> list[Unread]:
        return [o for o in self.held.get(name, ()) if around or o.home is home or o.home == home]

    def _hold(self, one: Unread) -> None:
        self.held.setdefault(one.name, []).append(one)

    def _forget(self, one: Unread) -> None:
        rest = [o for o in self.held.pop(one.name, ()) if o is not one]
        if rest:
            self.held[one.name] = rest


def is_loaded(value: Value) -> bool:
    """Whether a value is what a file held, or was computed from it."""
    return any(isinstance(p, Symbol) and p.role == "call" and _is_source(p) for p in parts(value))


def _is_source(call: Symbol) -> bool:
    name = call.name.partition("@")[0]
    return name in _FILES["checkpoints"] or name in ANY_FILE or (
        name in _FILES["methods"] and library_of(call).startswith(("orbax.", "flax.")))


def is_put(method: str, args: Sequence[Value]) -> bool:
    """Whether a call puts a state that a file held into its object."""
    return PUTS_IN.match(method) is not None and any(map(is_loaded, args))


@cache
def _mentioned(node: ast.AST) -> frozenset[str]:
    """The names and attributes in a function."""
    return frozenset(n.id if isinstance(n, ast.Name) else n.attr for n in below(node)
                     if isinstance(n, (ast.Name, ast.Attribute)))
