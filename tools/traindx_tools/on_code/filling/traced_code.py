"""Functions that JAX traces, with what in them happens once, or is set anew outside."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from typing import Any

from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.compiled import (
    JITS,
    Inside,
    Traced,
    depends,
    inside,
    is_pytree,
    runs_outside,
    traced,
    values_traced,
)
from traindx_tools.on_code.definitions import own_nodes
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, written
from traindx_tools.program.traced import Effect, OutsideRead, TracedFunction

_FIRST = re.compile(r"^_?(__init__|__post_init__|setup|build|compile|init|load|restore|configure|create|make|reset|"
                    r"from_|set_up|prepare|__setstate__|__enter__)")  # fmt: skip
"""Methods that run before anything is traced, as a rule."""
_GENERATORS = ("numpy.random.", "random.")
_CLOCK = ("time.time", "time.perf_counter", "datetime.datetime.now")
_SEEDED = frozenset({"default_rng", "RandomState", "Random", "Generator"})


def traced_functions(project: Project, look: Lookup) -> Iterator[TracedFunction]:
    """Every traced function of which something is to be said, with what it calls."""
    told: set[int] = set()
    for one in traced(project):
        effects = tuple(_effects(one.code, one, told))
        owner = one.code.parent(one.node)
        plain = owner.name if isinstance(owner, ast.ClassDef) and _traces_self(one, owner) else ""
        reads: tuple[OutsideRead, ...] = ()
        if one.how in JITS:
            around = inside(project, one)
            reads = tuple(_outside_reads(look, one, around))
            effects += tuple(e for here in around for e in (*_drawn(here, told), *_kept(here, one, told)))
        if effects or plain or reads:
            yield TracedFunction(one.name, one.how, one.code.spot(one.node), reads, effects, plain)


def _traces_self(one: Traced, owner: ast.ClassDef) -> bool:
    plain = not is_pytree(owner) and "nnx" not in one.how and (
        f"register_pytree_node({owner.name}" not in one.code.file.text)
    return plain and next(iter(parameters(one.node)), "") == "self" and "self" not in one.static and (
        one.place is one.node and "jit" in one.how and "filter" not in one.how)


# --- what happens once

def _effects(code: Syntax, one: Traced, told: set[int]) -> Iterator[Effect]:
    names = values_traced(one.node, one.static)
    own = {n.id for n in below(one.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | names
    seen: set[str] = set()
    body = one.node.body if not isinstance(one.node, ast.Lambda) else []
    nodes: list[Any] = [n for n in own_nodes(body) if hasattr(n, "lineno")]
    for node in sorted(nodes, key=lambda n: (n.lineno, n.col_offset)):
        found = _once(code, node) or _leak(code, one, node, names, own)
        if found is not None and found[0] not in seen:
            seen.add(found[0])
            told.add(id(node))
            yield Effect(*found, code.spot(node))


def _drawn(here: Inside, told: set[int]) -> Iterator[Effect]:
    """The first draw in a function that a compiled one calls."""
    nodes = list(below(here.node))
    if any(id(n) in told for n in nodes if isinstance(n, ast.Call)):
        return
    for node in nodes:
        found = _once(here.code, node) or _counted(here, node)
        if found is not None and not runs_outside(here.code, node):
            told.add(id(node))
            yield Effect(*found, here.code.spot(node))
            return


def _kept(here: Inside, one: Traced, told: set[int]) -> Iterator[Effect]:
    """An object of the project that keeps traced values: it appends them, or computes its attribute anew of them."""
    owner, code, call = here.code.owner(here.node), here.within, here.via
    if owner is None or owner is one.of or is_pytree(owner) or code is None or not isinstance(call, ast.Call):
        return
    around, made = [a for a in code.above(call) if isinstance(a, ast.FunctionDef)], here.made
    if made is None or (made.path == code.file.path and any(
            a.lineno <= made.line <= (a.end_lineno or 0) for a in around if a not in one.code.above(one.node))):
        return  # an object that the trace makes itself
    names = {n for a in around for n in values_traced(a)}
    if id(call) in told or isinstance(here.node, ast.Lambda) or not any(
            depends(a, names) for a in (*call.args, *(k.value for k in call.keywords))):  # fmt: skip
        return
    rest = [a.arg for a in (here.node.args.vararg, here.node.args.kwarg) if a is not None]
    given = {*parameters(here.node), *rest}
    for node in below(here.node):
        value = node.value if isinstance(node, (ast.Assign, ast.AugAssign)) else node.args[0] if isinstance(
            node, ast.Call) and last_name(node.func) == "append" and node.args else None  # fmt: skip
        target = getattr(node, "target", node.targets[0] if isinstance(node, ast.Assign) else getattr(
            getattr(node, "func", None), "value", None))  # fmt: skip
        again = not isinstance(node, ast.Assign) or written(target) in written(node.value)
        if value is not None and again and written(target).startswith("self.") and depends(value, given - {"self"}):
            told.add(id(call))
            yield Effect("append" if isinstance(node, ast.Call) else "attribute", written(call), code.spot(call))
            return


def _counted(here: Inside, node: ast.AST) -> tuple[str, str] | None:
    """A Python counter of a function around: `seen["n"] += 1`, `nonlocal n; n += 1`."""
    head: ast.AST | None = node.target if isinstance(node, ast.AugAssign) else None
    while isinstance(head, (ast.Subscript, ast.Attribute)):
        head = head.value
    if not isinstance(node, ast.AugAssign) or not isinstance(head, ast.Name):
        return None
    scope = here.code.function(node)
    said = [n.names for n in here.code.inside(scope, ast.Nonlocal)] if scope is not None else []
    said += [n.names for n in here.code.inside(scope, ast.Global)] if scope is not None else []
    shared = any(head.id in names for names in said)
    free = head is not node.target and _is_free(here, head.id)
    read = scope is not None and any(r is not head for r in here.code.reads(scope, head.id))  # else it counts traces
    return ("counter", written(node)) if read and (shared or free) else None


def _once(code: Syntax, call: ast.AST) -> tuple[str, str] | None:
    """A draw of numpy or Python, the clock, the next item of an iterator that is made outside."""
    if not isinstance(call, ast.Call):
        return None
    name, text = code.qualified(call.func), written(call)
    if name in _CLOCK:
        return "clock", text
    if name.startswith(_GENERATORS) and not name.startswith("random.PRNG"):
        return None if last_name(call.func) in _SEEDED and call.args else ("random", text)
    given = call.args[0] if name == "" and last_name(call.func) == "next" and len(call.args) == 1 else None
    holder = given if given is not None else getattr(call.func, "value", None)
    made = code.origin(holder) if isinstance(holder, (ast.Name, ast.Attribute)) else None
    outer = next((f for f in code.above(call) if isinstance(f, FunctionNode) and isinstance(made, ast.Name)
                  and made.id in parameters(f)), None)
    if given is not None and outer is not None and outer is not code.function(call):
        return "iterator", text  # what a function around was given
    if not isinstance(made, ast.Call) or code.function(made) is code.function(call):
        return None
    if given is not None:
        return "iterator", text
    return ("random", text) if code.qualified(made.func).startswith(("numpy.random.", "random.Random")) else None


def _leak(code: Syntax, one: Traced, node: ast.AST, names: set[str], own: set[str]) -> tuple[str, str] | None:
    """A print of a tracer, a tracer put into a list outside, a write to self or a global."""
    if isinstance(node, ast.Call):
        shown = any(depends(a, names) for a in node.args)
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            return ("print", written(node)) if shown else None
        owner = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "append" else None
        outer = isinstance(owner, ast.Name) and owner.id not in own
        kept = isinstance(owner, ast.Attribute) and written(owner.value) == "self"
        return ("append", written(node)) if shown and (outer or kept) else None
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    for target in targets:
        if isinstance(target, ast.Attribute) and written(target.value) == "self" and "nnx" not in one.how:
            return "attribute", written(target)
    return ("global", f"the global {', '.join(node.names)}") if isinstance(node, ast.Global) else None


# --- what is read from outside

def _outside_reads(look: Lookup, one: Traced, around: list[Inside]) -> Iterator[OutsideRead]:
    """The first value that is fixed inside and set anew outside."""
    bodies = {id(i.node) for i in around}
    static = one.place is one.node and isinstance(one.code.parent(one.node), ast.ClassDef)
    for here in around:
        for node in below(here.node):
            if not isinstance(getattr(node, "ctx", None), ast.Load) or runs_outside(here.code, node):
                continue
            changed = _changed(look, one, here, node, bodies)
            if changed is not None:
                where, store = changed
                via = getattr(here.node, "name", "") if here.node is not one.node else ""
                shown = here.via if via and here.via is not None and _is_property(here.node) else node
                yield OutsideRead(written(node), here.code.spot(shown), where.spot(store),
                                  written(where.statement(store))[:60].split("\n")[0], via,
                                  static and not via and written(node).startswith("self."))
                return


def _is_property(node: ast.AST) -> bool:
    return any(written(d).endswith("property") for d in getattr(node, "decorator_list", ()))


def _changed(look: Lookup, one: Traced, here: Inside, node: ast.AST, bodies: set[int]) -> tuple[Syntax, ast.AST] | None:
    """Where the same place gets another value again and again, outside of what is traced."""
    code = here.code
    up = code.parent(node)
    if isinstance(up, ast.Call) and up.func is node:
        return None
    head = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else node
    if not isinstance(head, ast.Name):
        return None
    if isinstance(node, ast.Attribute) and head.id == "self":
        return _of_self(look, code, one, node, bodies)
    if hasattr(builtins, head.id) or not _is_free(here, head.id):
        return None
    if isinstance(node, ast.Attribute):
        return _of_object(look, head.id, node.attr, bodies)
    stores = _entries(look, code, head, node) if isinstance(node, ast.Subscript) else _names(look, one, code, head)
    return next(((c, s) for c, s in stores if id(c.function(s)) not in bodies and _again(look, c, s)
                 and not _compiles(c, c.function(s))), None)


def _again(look: Lookup, code: Syntax, store: ast.AST) -> bool:
    """Whether a line runs again and again: in a loop, or in a function that a loop calls."""
    body = code.function(store)
    return bool(code.loops(store)) or (body is not None and any(
        c.loops(call) for c in look.codes for call in c.calls(body.name)))


def _runs_once(look: Lookup, body: ast.FunctionDef | ast.AsyncFunctionDef, left: int = 4) -> bool:
    """Whether one line calls a function, in no loop, and so it is with the function around that line."""
    calls = look.calls.get(body.name, [])
    if len(calls) != 1 or calls[0][0].loops(calls[0][1]) or not left:
        return False
    outer = calls[0][0].function(calls[0][1])
    return outer is None or _runs_once(look, outer, left - 1)


def _compiles(code: Syntax, body: ast.AST | None) -> bool:
    """Whether a function compiles anew, after which the new value counts."""
    return isinstance(body, FunctionNode) and any(code.qualified(n.func) in JITS for n in code.inside(body, ast.Call))


def _names(look: Lookup, one: Traced, code: Syntax, name: ast.Name) -> Iterator[tuple[Syntax, ast.AST]]:
    """Stores of a global in other functions, and of a name in loops of its scope that call the compiled function."""
    bound = code.bindings(name)
    home = code.scope(bound[0][0]) if bound else None
    called = {one.name, *(last_name(m.targets[0]) for _, m in look.made_with.get(one.name, ()))} - {""}
    for store in code.stores.get(name.id, ()) if home is not None else ():
        if code.scope(store) is home and not isinstance(code.statement(store), (ast.For, ast.AsyncFor)):
            for loop in code.loops(store):
                calls = any(last_name(c.func) in called for c in code.inside(loop, ast.Call))
                if calls and not any(n is one.node for n in below(loop)):
                    yield code, store
        elif isinstance(home, ast.Module) and (body := code.function(store)) is not None and any(
                name.id in g.names for g in code.inside(body, ast.Global)):  # fmt: skip
            yield code, store


def _entries(look: Lookup, code: Syntax, holder: ast.Name, node: ast.Subscript) -> Iterator[tuple[Syntax, ast.AST]]:
    """Stores of the same entry of a dictionary: `knobs["beta"] = ...`."""
    home = [b[0] for b in code.bindings(holder)[:1]]
    for other in look.codes if home else ():
        for store in other.item_stores.get(holder.id, ()):
            target = store.targets[0]
            same = other is not code or [b[0] for b in code.bindings(target.value)[:1]] == home  # type: ignore[attr-defined]
            if isinstance(target, ast.Subscript) and same and isinstance(node.slice, ast.Constant) and (
                    written(target.slice) == written(node.slice)) and (other is code or holder.id in other.aliases):
                yield other, store


def _of_object(look: Lookup, name: str, attribute: str, bodies: set[int]) -> tuple[Syntax, ast.AST] | None:
    """Where an attribute of an object of a module's top is set, by itself or by a method that a loop calls."""
    homes = [c for c in look.codes if name in _tops(c)]
    for code, store in look.stores.get(attribute, ()):
        body = code.function(store)
        own = body is not None and name in parameters(body)
        if code in homes and written(store.value) == name and id(body) not in bodies and not own and (
                _again(look, code, store)):  # fmt: skip
            return code, store
    made = {last_name(s.value.func) for c in homes for s in c.file.tree.body if isinstance(s, ast.Assign)
            and isinstance(s.value, ast.Call) and written(s.targets[0]) == name}  # fmt: skip
    return _by_method(look, made, attribute, lambda call: written(getattr(call.func, "value", None)) == name)


@kept
def _tops(code: Syntax) -> set[str]:
    """What the top of a file binds: by an assignment, an import or a class (of settings)."""
    bound: set[str] = set(code.aliases)
    for s in code.file.tree.body:
        bound |= {s.name} if isinstance(s, ast.ClassDef) else {
            t.id for t in s.targets if isinstance(t, ast.Name)} if isinstance(s, ast.Assign) else set()  # fmt: skip
    return bound


def _by_method(look: Lookup, kinds: set[str], attribute: str, meant: Callable[[ast.Call], bool]
               ) -> tuple[Syntax, ast.AST] | None:
    """A call in a loop of a method that sets the attribute of self."""
    for code, kind in (k for n in kinds for k in look.classes.get(n, ())):
        for store in code.inside(kind, ast.Attribute):
            body = code.function(store)
            sets = store.attr == attribute and isinstance(store.ctx, ast.Store)
            if not sets or body is None or _FIRST.match(body.name):
                continue
            for where, call in look.calls.get(body.name, ()):
                if meant(call) and where.loops(call):
                    return where, call
    return None


def _of_self(look: Lookup, code: Syntax, one: Traced, node: ast.Attribute, bodies: set[int]
             ) -> tuple[Syntax, ast.AST] | None:
    """Where another method, or a loop outside, sets the attribute of the object whose self is fixed."""
    owner = one.of
    if owner is None or is_pytree(owner) or code.owner(node) is not owner:
        return None
    for store in code.inside(owner, ast.Attribute):
        body = code.function(store)
        mine = store.attr == node.attr and isinstance(store.ctx, ast.Store) and written(store.value) == "self"
        if not mine or body is None or id(body) in bodies or _FIRST.match(body.name) or _compiles(code, body) or (
                not code.loops(store) and _runs_once(look, body)):  # fmt: skip
            continue
        tests = " ".join(written(a.test) for a in code.above(store) if isinstance(a, ast.If))
        if not (written(store) in tests and ("None" in tests or "not " in tests)):  # a value that is made once
            return code, store
    return next(((c, s) for c, s in look.stores.get(node.attr, ()) if c.loops(s) and isinstance(
        made := c.origin(s.value), ast.Call) and last_name(made.func) == owner.name), None)


def _is_free(here: Inside, name: str) -> bool:
    """Whether a function takes a name from outside."""
    return name not in _bound(here.code, here.node)


@kept
def _bound(code: Syntax, body: ast.AST) -> set[str]:
    """The names that a function, or one inside it, binds or takes."""
    found: set[str] = set()
    for node in below(body):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, (*FunctionNode, ast.ClassDef)) and node is not body:
            found.add(node.name)
        if isinstance(node, (*FunctionNode, ast.Lambda)):
            found.update(parameters(node))
    return found
