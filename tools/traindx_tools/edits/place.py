"""Where an edit is made: the nodes that change, and the names that their new text is made of. `Unsure` is raised where
that is not certain.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from traindx_tools.edits.source_edit import Unsure, sure
from traindx_tools.invariants.breach import Remedy
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.program.moments import Act


@dataclass(frozen=True)
class At:
    """The nodes of one edit, each with a text of its own (of a move: its target) or None; the names in texts."""

    file: SourceFile
    nodes: list[tuple[Any, Any]]
    names: dict[str, str]
    gone: tuple[Any, ...] = ()
    """Statements that are taken out."""


@dataclass
class _Side:
    """What the call of an act says: `{owner}`, `{called}` and `{argument}` of a text."""

    act: Act | None

    def __getattr__(self, name: str) -> str:
        call = call_of(event_of(self.act).node)
        found = owner_of(call) if name == "owner" else call.func if name == "called" else next(iter(call.args), None)
        sure(isinstance(found, (ast.Name, ast.Attribute)) and re.fullmatch(r"[\w.]+", written(found)))
        return written(found)


class Names(dict[str, Any]):
    """Names that a place gives, and those of the remedy: `{text}`, `{owner}` of its act, `{target.owner}`."""

    def __init__(self, remedy: Remedy, given: dict[str, str]) -> None:
        super().__init__(given, text=remedy.text, target=_Side(remedy.target))
        self._act = _Side(remedy.act)

    def __missing__(self, name: str) -> str:
        found: str = getattr(self._act, name)
        return found


def at(file: SourceFile, *nodes: Any, **names: str) -> At:
    """Nodes, or pairs of a node and its own text."""
    return At(file, [n if isinstance(n, tuple) else (n, None) for n in nodes], names)


def event_of(act: Act | None) -> Event:
    """The event of the follower that an act was read from."""
    origin = act.origin if act is not None else None
    if not isinstance(origin, Event):
        raise Unsure
    return origin


def call_of(node: Any) -> ast.Call:
    """A call."""
    if not isinstance(node, ast.Call):
        raise Unsure
    return node


def owner_of(call: ast.Call) -> ast.expr:
    """What a method is called on."""
    if not isinstance(call.func, ast.Attribute):
        raise Unsure
    return call.func.value


def statement_of(event: Any) -> ast.stmt:
    """The statement of an event."""
    return statement_around(event.file, event.node)


def statement_around(file: SourceFile, node: ast.AST) -> ast.stmt:
    """The innermost statement around an expression."""
    found = syntax(file).statement(node)
    if found is None:
        raise Unsure
    return found


def target_of(statement: Any) -> Any:
    """What an assignment binds."""
    sure(isinstance(statement, ast.Assign) and len(statement.targets) == 1)
    return statement.targets[0]
