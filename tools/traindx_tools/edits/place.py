"""Where a remedy is made: what its acts say in the text, and the names that a row's texts are made of."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import Any

from traindx_tools.edits.source_edit import Unsure, source_of, sure
from traindx_tools.invariants.breach import Remedy
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import Syntax, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.program.moments import Act


class Side:
    """One act of a remedy: what happens, its call and its statement. `rest`: what else a reader left for the edit.

    In texts: `{owner}` what it is called on, `{called}` the function, `{argument}` the first argument. Raises Unsure
    for what there is not.
    """

    def __init__(self, act: Act | None) -> None:
        origin: Any = act.origin if act is not None else None
        self.at: Any = act.at if act is not None else None
        self.origin: Any = origin
        self._event, *self.rest = origin if isinstance(origin, tuple) and origin else (origin,)

    @property
    def event(self) -> Event:
        """The event of the follower."""
        if not isinstance(self._event, Event):
            raise Unsure
        return self._event

    @property
    def node(self) -> Any:
        """The expression or statement that stands there."""
        return self._event.node

    @cached_property
    def file(self) -> SourceFile:
        """The file that is edited."""
        return self.event.file

    @property
    def code(self) -> Syntax:
        """Its syntax."""
        return syntax(self.file)

    @property
    def call(self) -> ast.Call:
        """The call."""
        return call_of(self.node)

    @cached_property
    def statement(self) -> Any:
        """The innermost statement around it."""
        found = syntax(self._event.file).statement(self.node)
        sure(found)
        return found

    @property
    def block(self) -> list[ast.stmt]:
        """The statements among which that one stands."""
        return self.code.block(self.statement)

    @property
    def owner(self) -> str:
        """What it is called on, a name or attributes of one."""
        return _name(owner_of(self.call))

    @property
    def called(self) -> str:
        """The function, a name or attributes of one."""
        return _name(self.call.func)

    @property
    def argument(self) -> str:
        """The first argument, a name or attributes of one."""
        return _name(next(iter(self.call.args), None))

    def source(self, node: Any) -> str:
        """The text of an expression as it is written."""
        return source_of(self.file, node)


class Place(Side):
    """The act of a remedy and its target; `names` are those that a place adds to them."""

    def __init__(self, remedy: Remedy) -> None:
        super().__init__(remedy.act)
        self.act, self.kind, self.text, self.target = remedy.act, remedy.kind, remedy.text, Side(remedy.target)
        self.names: dict[str, str] = {}
        self.gone: tuple[ast.stmt, ...] = ()
        """Statements that are taken out as well."""

    def __getitem__(self, name: str) -> Any:
        return self.names[name] if name in self.names else getattr(self, name)

    def in_one_file(self) -> None:
        """Both stand in one file."""
        sure(self.event.file is self.target.event.file)


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


def target_of(statement: Any) -> Any:
    """What an assignment binds."""
    sure(isinstance(statement, ast.Assign) and len(statement.targets) == 1)
    return statement.targets[0]


def _name(node: Any) -> str:
    sure(isinstance(node, (ast.Name, ast.Attribute)) and re.fullmatch(r"[\w.]+", written(node)))
    return written(node)
