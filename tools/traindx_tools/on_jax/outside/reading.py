"""Which values a function reads from outside of its arguments, in the functions that it calls too; nothing is run.

Read is what the way through the conditions leads to: a branch whose condition is known not to hold is left out, and so
are both where it is not known. What is only printed, logged, asserted or counted is no read, and neither is what the
function itself sets.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from traindx_tools.on_jax.outside import source
from traindx_tools.on_jax.outside.paths import MISSING, Path, attribute
from traindx_tools.on_jax.outside.tests import truth
from traindx_tools.on_jax.places import is_users
from traindx_tools.on_jax.tokens import PLAIN

MOST_FUNCTIONS, MOST_READS, MOST_ENTRIES = 40, 64, 16
_QUIET = frozenset({"print", "warn", "warning", "info", "debug", "error", "exception", "log", "write", "append", "add",
                    "extend", "len", "isinstance", "hasattr", "type", "id", "repr", "str", "format"})
_OF_SHAPE = frozenset({"shape", "ndim", "dtype", "size"})


@dataclass(frozen=True)
class Read:
    """One value from outside, and the line that reads it. `via`: the function in which that line is."""

    path: Path
    file: str
    line: int
    via: str


def outside_reads(fn: Callable[..., Any], given: Mapping[str, Any] | None = None) -> list[Read]:
    """The reads of a function and of the user's functions that it calls; `given`: arguments of it that stay."""
    reader = _Reader()
    reader.call(fn, {name: Path(value, name, "object") for name, value in (given or {}).items()})
    return [r for r in reader.reads.values() if r.path.kind != "object" or len(r.path.steps) > 0]


class _Reader:
    def __init__(self) -> None:
        self.reads: dict[str, Read] = {}
        self.stored: set[str] = set()
        self._seen: set[tuple[CodeType, tuple[str, ...]]] = set()

    def call(self, called: Any, bound: Mapping[str, Path]) -> None:
        """Reads what a callable leads to, if it is the user's."""
        names = dict(bound)
        fn, first = _plain(called, names)
        code = getattr(fn, "__code__", None)
        if not isinstance(code, CodeType) or not is_users(code.co_filename) or len(self._seen) >= MOST_FUNCTIONS:
            return
        key = (code, tuple(f"{n}={p}" for n, p in sorted(names.items())))
        node = source.node_of(code)
        if node is None or key in self._seen:
            return
        self._seen.add(key)
        if first is not None and source.parameters(node):
            names[source.parameters(node)[0]] = first
        self.stored |= source.stored(node)
        for name in source.stored(node):
            self.reads.pop(name, None)
        scope = _Scope(self, fn, node, _certain(node, names))
        body = node.body if isinstance(node, ast.FunctionDef) else [ast.Expr(node.body)]
        scope.block(body)

    def keep(self, path: Path, node: ast.expr, code: CodeType) -> None:
        """A read."""
        if str(path) not in self.stored and len(self.reads) < MOST_READS:
            self.reads.setdefault(str(path), Read(path, code.co_filename, node.lineno, code.co_name))


def _plain(called: Any, names: dict[str, Path]) -> tuple[Any, Path | None]:
    """The function below jit, partial and bound methods; what these give it goes into `names`."""
    first: Path | None = None
    for _ in range(20):
        if isinstance(called, functools.partial):
            names.update({k: Path(v, k, "object") for k, v in called.keywords.items()})
            called = called.func
        elif isinstance(called, MethodType):
            first, called = Path(called.__self__, "self", "object"), called.__func__
        else:
            below = attribute(called, "__wrapped__")
            if below is MISSING and type(called).__module__.startswith("jax"):
                below = getattr(called, "__wrapped__", MISSING)
            if not callable(below):
                break
            called = below
    return called, first


def _certain(node: source.Function, names: Mapping[str, Path]) -> dict[str, Path]:
    """Parameters that are what they were given wherever they are read."""
    rebound = source.rebound(node)
    return {name: path for name, path in names.items() if name not in rebound}


class _Scope:
    """One function that is read. `names`: parameters and local names whose object is known."""

    def __init__(self, reader: _Reader, fn: FunctionType, node: source.Function, names: dict[str, Path]) -> None:
        self.reader, self.code, self.names = reader, fn.__code__, names
        self.once = source.assigned_once(node)
        self.own = source.own_names(node)
        self.globals = fn.__globals__
        self.cells = dict(zip(self.code.co_freevars, fn.__closure__ or (), strict=True))

    # ---- statements

    def block(self, body: Sequence[ast.stmt]) -> bool:
        """Reads statements in order; True where they end the function."""
        return any(self._statement(one) for one in body)

    def _statement(self, one: ast.stmt) -> bool:
        if isinstance(one, (ast.Assert, ast.Raise, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return isinstance(one, ast.Raise)
        if isinstance(one, ast.If):
            return self._branch(one)
        if isinstance(one, ast.FunctionDef):
            self.block(one.body)
            return False
        if isinstance(one, ast.Assign):
            self._alias(one)
        for part in ast.iter_child_nodes(one):
            if isinstance(part, ast.expr):
                self.read(part)
        for part in (getattr(one, "items", None) or ()):
            self.read(part.context_expr)
        inner = getattr(one, "body", None)
        ended = self.block(inner) if isinstance(inner, list) else False
        return isinstance(one, ast.Return) or (ended and isinstance(one, ast.With))

    def _branch(self, one: ast.If) -> bool:
        if all(_only_tells(s) for s in (*one.body, *one.orelse)):
            return False
        self.read(one.test)
        holds = truth(one.test, self.path)
        return False if holds is None else self.block(one.body if holds else one.orelse)

    def _alias(self, one: ast.Assign) -> None:
        target = one.targets[0]
        if isinstance(target, ast.Name) and target.id in self.once:
            path = self.path(one.value)
            if path is not None and not _is_leaf(path.value()):
                self.names[target.id] = path

    # ---- expressions

    def read(self, node: ast.AST) -> None:
        """Reads an expression."""
        if isinstance(node, (ast.JoinedStr, ast.Constant)):
            return
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.IfExp):
            self.read(node.test)
            holds = truth(node.test, self.path)
            if holds is not None:
                self.read(node.body if holds else node.orelse)
        elif isinstance(node, ast.BoolOp):
            self._joined(node)
        elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            self._chain(node)
        elif isinstance(node, ast.Lambda):
            self.read(node.body)
        else:
            for part in ast.iter_child_nodes(node):
                self.read(part)

    def _joined(self, node: ast.BoolOp) -> None:
        for part in node.values:
            self.read(part)
            holds = truth(part, self.path)
            if holds is None or holds is isinstance(node.op, ast.Or):
                return

    def _chain(self, node: ast.Name | ast.Attribute | ast.Subscript) -> None:
        """A name with what is reached from it: the first value on the way that is a number or an array is read."""
        links: list[ast.expr] = []
        part: ast.expr = node
        while isinstance(part, (ast.Attribute, ast.Subscript)):
            links.append(part)
            part = part.value
        if not isinstance(part, ast.Name):
            self.read(part)
        for link in links:
            if isinstance(link, ast.Subscript):
                self.read(link.slice)
        links.append(part)
        for i, link in reversed(list(enumerate(links))):
            path = self.path(link)
            value = path.value() if path is not None else MISSING
            if path is None or value is MISSING:
                return
            last = i == 0
            after = links[i - 1] if i else None
            if _is_leaf(value) or (last and _is_small(value)):
                if not (isinstance(after, ast.Attribute) and after.attr in _OF_SHAPE) and not _of_a_state(path, value):
                    self.reader.keep(path, link, self.code)
                return
            if isinstance(value, property) and path.steps:
                self._asked(value.fget, path.owner())
                return

    def _asked(self, getter: Any, this: Path) -> None:
        if isinstance(getter, FunctionType):
            self._method(getter, this, {})

    def _call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _QUIET and not (isinstance(node.func, ast.Name) and name in self.own):
            return
        for part in (*node.args, *(k.value for k in node.keywords)):
            self.read(part)
            self._passed(part)
        entry = self.path(node)
        if entry is not None:
            if _is_leaf(entry.value()):
                self.reader.keep(entry, node, self.code)
            return
        path = self.path(node.func)
        called = path.value() if path is not None else MISSING
        if path is None or called is MISSING:
            self.read(node.func)
        elif _is_method(path, called):
            self._method(called, path.owner(), self._given(node, called, 1))
        else:
            self.reader.call(called, self._given(node, called, 0))

    def _passed(self, part: ast.expr) -> None:
        """A function that is handed on, as to `grad` or `scan`, is called there."""
        path = self.path(part)
        called = path.value() if path is not None else MISSING
        if path is not None and _is_method(path, called):
            self._method(called, path.owner(), {})
        elif callable(called) and called is not MISSING and not isinstance(called, type):
            self.reader.call(called, {})

    def _method(self, fn: FunctionType, this: Path, given: Mapping[str, Path]) -> None:
        definition = source.node_of(fn.__code__) if is_users(fn.__code__.co_filename) else None
        if definition is not None and source.parameters(definition):
            self.reader.call(fn, {source.parameters(definition)[0]: this, **given})

    def _given(self, node: ast.Call, called: Any, first: int) -> dict[str, Path]:
        """The objects among the arguments of a call, by the names of its parameters."""
        fn, bound = _plain(called, {})
        code = getattr(fn, "__code__", None)
        if not isinstance(code, CodeType) or any(isinstance(a, ast.Starred) for a in node.args):
            return {}
        names = code.co_varnames[first + (bound is not None):code.co_argcount]
        told = [*zip(names, node.args, strict=False), *((k.arg, k.value) for k in node.keywords if k.arg)]
        found = {}
        for name, part in told:
            path = self.path(part)
            if isinstance(part, ast.Constant):
                found[name] = Path(part.value, name, "object")
            elif path is not None and path.value() is not MISSING:
                found[name] = path
        return found

    def path(self, node: ast.expr) -> Path | None:
        """The way to what an expression names, None for anything else."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.path(node.value)
            return owner.further(".", node.attr) if owner is not None else None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner = self.path(node.value)
            return owner.further("[", node.slice.value) if owner is not None else None
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
                and node.args and isinstance(node.args[0], ast.Constant)):
            owner = self.path(node.func.value)
            told = owner is not None and isinstance(owner.value(), dict)
            return owner.further("[", node.args[0].value) if owner is not None and told else None
        return None

    def _name(self, name: str) -> Path | None:
        if name in self.names:
            return self.names[name]
        if name in self.own:
            return None
        if name in self.cells:
            return Path(self.cells[name], name, "cell")
        return Path(self.globals, name, "global") if name in self.globals else None


def _is_method(path: Path, called: Any) -> bool:
    """Whether a function is found on the class of what it is asked of: it is given that object first."""
    if not isinstance(called, FunctionType) or not path.steps or path.steps[-1][0] != ".":
        return False
    owner = path.owner().value()
    return not isinstance(owner, (type, ModuleType)) and path.steps[-1][1] not in getattr(owner, "__dict__", {})


def _is_leaf(value: Any) -> bool:
    return value is not None and not callable(value) and (
        isinstance(value, (*PLAIN, np.generic, np.ndarray)) or (
            type(value).__module__.startswith("jax") and hasattr(value, "shape") and hasattr(value, "dtype")))


def _of_a_state(path: Path, value: Any) -> bool:
    """Whether it is one of the arrays of a tree, as parameters are: old ones are what J705 looks for."""
    return bool(getattr(value, "ndim", 0)) and any(how == "[" for how, _ in path.steps)


def _is_small(value: Any) -> bool:
    """A list, tuple or dict of a few plain values, read as a whole."""
    parts = list(value.values()) if isinstance(value, dict) else value
    return isinstance(parts, (list, tuple)) and 0 < len(parts) <= MOST_ENTRIES and all(
        isinstance(p, (bool, int, float)) for p in parts)


def _only_tells(one: ast.stmt) -> bool:
    """A statement that prints or logs."""
    if isinstance(one, ast.Pass):
        return True
    called = one.value.func if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _QUIET
