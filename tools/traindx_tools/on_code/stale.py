"""Python values that compiled code reads and that change afterwards: attributes, globals, entries of dictionaries."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.jitted import JITS, Inside, Jitted, inside, is_pytree, jitted, runs_outside
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, written

_FIRST = re.compile(r"^_?(__init__|__post_init__|setup|build|compile|init|load|restore|configure|create|make|reset|"
                    r"from_|set_up|prepare|__setstate__|__enter__)")  # fmt: skip
"""Methods that run before anything is traced, as a rule."""


@dataclass(frozen=True)
class Stale:
    """A value that is read in traced code at `read` (as `name`) and set anew at `changed`."""

    one: Jitted
    code: Syntax
    read: ast.AST
    name: str
    where: Syntax
    changed: ast.AST
    via: str = ""
    """The property or function in which it is read, where that is not the compiled function."""


def stale_reads(look: Lookup) -> Iterator[Stale]:
    """The first value of each compiled function that is constant inside and changes outside."""
    for one in jitted(look):
        around = inside(look, one)
        bodies = {id(i.node) for i in around}
        found = next((s for i in around for s in _of(look, one, i, bodies)), None)
        if found is not None:
            yield found


def _of(look: Lookup, one: Jitted, here: Inside, bodies: set[int]) -> Iterator[Stale]:
    via = f"{here.node.name} " if here.node is not one.node and isinstance(here.node, ast.FunctionDef) else ""
    is_property = isinstance(here.node, ast.FunctionDef) and any(
        written(d).endswith("property") for d in here.node.decorator_list)  # fmt: skip
    shown = here.via if is_property and here.via is not None else None
    for node in below(here.node):
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        changed: tuple[Syntax, ast.AST] | None = None
        told = here.node is one.node and one.place is one.node and isinstance(one.code.parent(one.node), ast.ClassDef)
        if told:
            continue  # a decorated method with a static self is C514's
        if isinstance(node, ast.Attribute) and written(node.value) == "self":
            changed = _attribute(look, here.code, one, node, bodies)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            changed = _item(look, here, node, node.value, bodies)
        elif isinstance(node, ast.Name):
            changed = _global(look, here, node, bodies)
        if changed is not None and not runs_outside(here.code, node):
            yield Stale(one, here.code, shown or node, written(node), *changed, via)


# --- attributes of the object

def _attribute(look: Lookup, code: Syntax, one: Jitted, node: ast.Attribute,
               bodies: set[int]) -> tuple[Syntax, ast.AST] | None:  # fmt: skip
    """Where another method, or a loop outside, sets the attribute of the object whose self is fixed."""
    owner = one.of
    if owner is None or is_pytree(owner) or code.owner(node) is not owner or _called(code, node):
        return None
    for method in (m for m in owner.body if isinstance(m, ast.FunctionDef)):
        if id(method) in bodies or _FIRST.match(method.name) or _compiles(code, method):
            continue
        holders = [f for f in below(method) if isinstance(f, FunctionNode) and id(f) in bodies]
        inner = {id(n) for f in holders for n in below(f)}
        for stored in _stores(method, "self", node.attr):
            if id(stored) not in inner and not _once(code, stored):
                return code, stored
    for other, stored in look.stores.get(node.attr, ()):
        made = other.origin(stored.value)
        if isinstance(made, ast.Call) and last_name(made.func) == owner.name and other.loops(stored):
            return other, stored
    return None


def _called(code: Syntax, node: ast.AST) -> bool:
    up = code.parent(node)
    return isinstance(up, ast.Call) and up.func is node


def _compiles(code: Syntax, method: ast.FunctionDef) -> bool:
    """Whether a method compiles anew, after which the new value counts."""
    return any(isinstance(n, ast.Call) and code.qualified(n.func) in JITS for n in below(method))


def _stores(body: ast.AST, owner: str, attribute: str) -> Iterator[ast.Attribute]:
    for node in below(body):
        if isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Store) and (
                written(node.value) == owner):  # fmt: skip
            yield node


def _once(code: Syntax, stored: ast.AST) -> bool:
    """Whether a value is kept that is made once: `if self._x is None: self._x = ...`."""
    test = written(next((a.test for a in code.above(stored) if isinstance(a, ast.If)), None))
    return written(stored) in test and ("None" in test or "not " in test)


# --- globals and entries

def _global(look: Lookup, here: Inside, node: ast.Name, bodies: set[int]) -> tuple[Syntax, ast.AST] | None:
    """Where another function declares the name global and sets it, or the module's own loop does."""
    if hasattr(builtins, node.id) or not _is_free(here, node.id):
        return None
    code = here.code
    top = [s for s, _ in code.bindings(node) if isinstance(code.scope(s), ast.Module)]
    if not top:
        return None
    for declared in code.of(ast.Global):
        function = code.function(declared)
        if node.id not in declared.names or function is None or id(function) in bodies or _compiles_any(code, function):
            continue
        for stored in below(function):
            bound = isinstance(stored, ast.Name) and stored.id == node.id and isinstance(stored.ctx, ast.Store)
            if bound and (code.loops(stored) or _called_in_a_loop(look, function.name)):
                return code, stored
    return None


def _item(look: Lookup, here: Inside, node: ast.Subscript, holder: ast.Name,
          bodies: set[int]) -> tuple[Syntax, ast.AST] | None:  # fmt: skip
    """Where a loop outside sets an entry of a dictionary: `knobs["beta"] = ...`."""
    name, key = holder.id, node.slice.value if isinstance(node.slice, ast.Constant) else None
    if not isinstance(key, str) or not _is_free(here, name) or not here.code.bindings(holder):
        return None
    home = here.code.bindings(holder)[0][0]
    for code in look.codes:
        if code is not here.code and name not in code.aliases:
            continue
        for store in code.item_stores.get(name, ()):
            target = store.targets[0]
            if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant):
                continue
            function = code.function(store)
            same = code.bindings(target.value) and code.bindings(target.value)[0][0] is home
            if target.slice.value != key or (function is not None and id(function) in bodies) or not (
                    same or code is not here.code):  # fmt: skip
                continue
            if code.loops(store) or (function is not None and function is not here.code.function(here.node)
                                     and _called_in_a_loop(look, function.name)):  # fmt: skip
                return code, store
    return None


def _is_free(here: Inside, name: str) -> bool:
    """Whether a function takes a name from outside."""
    if name in parameters(here.node):
        return False
    for inner in below(here.node):
        if isinstance(inner, ast.Name) and inner.id == name and not isinstance(inner.ctx, ast.Load):
            return False
        if isinstance(inner, (*FunctionNode, ast.Lambda)) and name in parameters(inner):
            return False
    return True


def _compiles_any(code: Syntax, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(n, ast.Call) and code.qualified(n.func) in JITS for n in below(function))


def _called_in_a_loop(look: Lookup, name: str) -> bool:
    return any(code.loops(call) for code in look.codes for call in code.calls(name))
