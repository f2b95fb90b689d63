"""Which optimizers, schedulers, models and loaders a program hands to Accelerate's prepare() or Fabric's setup()."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written

_PREPARES = re.compile(
    r"prepare(_model|_optimizer|_scheduler|_data_loader)?|_?setup(_module|_optimizers|_dataloaders)?"
)
_OWNERS = re.compile(r"accel|fabric|^acc$", re.IGNORECASE)
_MAKERS = frozenset({"Accelerator", "Fabric"})
_DEEP = 4
_MOST_CALLERS = 12
_UNKNOWN = "?"


@dataclass(frozen=True)
class Part:
    """A part that was not handed over: its name where it is bound, and the call that took its fellows."""

    code: Syntax
    name: ast.expr
    call: ast.Call
    path: tuple[ast.AST, ...]
    """The place of use, and the calls through which it is reached."""


@dataclass(frozen=True, eq=False)
class Wrapping:
    """The calls that hand parts over, asked for one part."""

    look: Lookup

    @cached_property
    def makers(self) -> list[tuple[Syntax, ast.Call]]:
        """Every Accelerator(...) and Fabric(...) of the project."""
        return [(c, call) for c in self.look.codes for call in c.calls(*_MAKERS)]

    def makers_of(self, part: Part) -> list[tuple[Syntax, ast.Call]]:
        """The Accelerator or Fabric whose call took the part's fellows; all of them where it is not told."""
        func = part.call.func
        made = part.code.origin(func.value) if isinstance(func, ast.Attribute) else func
        one = [(c, call) for c, call in self.makers if call is made]
        return one or self.makers

    @cached_property
    def _known(self) -> dict[int, list[ast.Call]]:
        return {}

    def takers(self, code: Syntax) -> list[ast.Call]:
        """The calls of a file that hand parts over; nothing where one of them cannot be read."""
        if id(code) not in self._known:
            self._known[id(code)] = self._takers(code)
        return self._known[id(code)]

    def _takers(self, code: Syntax) -> list[ast.Call]:
        found = [c for c in code.of(ast.Call) if self._takes(code, c)]
        for node in code.of(ast.Attribute):
            up = code.parent(node)
            bare = not (isinstance(up, ast.Call) and up.func is node)
            if bare and _PREPARES.fullmatch(node.attr) and self._owner(code, node):
                return []  # map(accelerator.prepare, parts)
        return [] if any(_unreadable(code, c) for c in found) else found

    def _takes(self, code: Syntax, call: ast.Call) -> bool:
        return _PREPARES.fullmatch(last_name(call.func)) is not None and self._owner(code, call.func)

    def _owner(self, code: Syntax, func: ast.expr) -> bool:
        if not isinstance(func, ast.Attribute):
            return False
        made = code.origin(func.value)
        return bool(_OWNERS.search(last_name(func.value))) or (isinstance(made, ast.Call)
                                                               and last_name(made.func) in _MAKERS)  # fmt: skip

    def left_out(self, code: Syntax, name: ast.expr, used: tuple[ast.AST, ...]) -> Iterator[Part]:
        """The part that a name means, where it is certainly handed to no call that takes its fellows."""
        if len(used) > _DEEP or not isinstance(name, (ast.Name, ast.Attribute)):
            return
        bound = code.bindings(name)
        if bound:
            calls = self._around(code, name, bound[0][0])
            if calls and not self._handed_over(code, name, calls, _DEEP):
                main = [c for c in calls if last_name(c.func) in ("prepare", "setup", "prepare_model", "setup_module")]
                yield Part(code, name, (main or calls)[-1], used)
            return
        body = code.function(name)
        if isinstance(name, ast.Name) and isinstance(body, ast.FunctionDef) and name.id in parameters(body):
            spec = [n for n in parameters(body) if n not in ("self", "cls")]
            for other, call in self.look.callers(body, code)[:_MOST_CALLERS]:
                value = argument(call, spec.index(name.id), name.id) if name.id in spec else None
                if value is not None:
                    yield from self.left_out(other, value, (*used, call))

    def _around(self, code: Syntax, name: ast.expr, bound: ast.stmt) -> list[ast.Call]:
        """The calls of the function or class that a name belongs to."""
        home: ast.AST | None = code.owner(name) if isinstance(name, ast.Attribute) else code.scope(bound)
        return [c for c in self.takers(code) if any(a is home for a in code.above(c))]

    def _handed_over(self, code: Syntax, name: ast.expr, calls: list[ast.Call], left: int) -> bool:
        """Whether the name, or what it was made of, is given to one of the calls or comes from one."""
        text = written(name)
        if left <= 0 or any(text == written(a) for c in calls for a in (*c.args, *(k.value for k in c.keywords))):
            return True
        for statement, value in code.bindings(name):
            if any(isinstance(n, ast.Call) and (n in calls or self._takes(code, n)) for n in below(value)):
                return True
            if isinstance(name, ast.Name) and name.id in names_in(value):
                return True  # wrapped by something else
            plain = isinstance(value, (ast.Name, ast.Attribute))
            if plain and (not code.bindings(value) or self._handed_over(code, value, calls, left - 1)):
                return True
            if plain is False and any(_takes_owner(n) for n in below(value)):
                return True
            if isinstance(statement, (ast.With, ast.For)):
                return True
        origins = {id(code.origin(a)) for c in calls for a in c.args}
        return id(code.origin(name)) in origins


def _takes_owner(node: ast.AST) -> bool:
    """Whether a call is given the accelerator: it may prepare what it returns."""
    given = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    return any(_OWNERS.search(last_name(a)) for a in given)


def _unreadable(code: Syntax, call: ast.Call) -> bool:
    """Whether what a call takes is not written there: stars, a loop over parts, entries of a dictionary."""
    given = [*call.args, *(k.value for k in call.keywords)]
    if any(isinstance(a, (ast.Starred, ast.Subscript)) for a in given) or any(k.arg is None for k in call.keywords):
        return True
    for up in code.above(call):
        if isinstance(up, (*FunctionNode, ast.Lambda)):
            return False
        if isinstance(up, (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)):
            return True
        if isinstance(up, ast.For) and any(isinstance(a, ast.Name) and a.id in names_in(up.target) for a in given):
            return True
    return False


def keyword(call: ast.Call, *names: str) -> ast.expr | str | None:
    """A keyword's value; "?" where **options may hold it, None where it is not given."""
    for k in call.keywords:
        if k.arg in names:
            return k.value
    return _UNKNOWN if any(k.arg is None for k in call.keywords) else None
