"""A function is mapped over keys, or over members, and draws with one outer key.

`jax.vmap(lambda _: init(key))(jnp.arange(n))` runs init n times with the same key: all rows are equal, and they stay
equal in training on the same batches. An ensemble made so has no spread, populations do not explore, Monte Carlo
samples agree. The same with `[model.init(key, x) for k in keys]`, with a key that is tiled, and with lax.map. The
mapped function has to draw with its own argument: `jax.vmap(init)(jax.random.split(key, n))`.

Left alone: functions that use their argument, copies on purpose (a learning-rate sweep from one start names its
argument), generators that hand out a new key at each call, tests and measurements.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Body, Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C563",
    name="mapped-key-ignored",
    title="A mapped function draws every row with the same key",
    severity=Severity.HIGH,
    sees="Functions under vmap, pmap or lax.map, and comprehensions over keys, that ignore their argument and draw "
         "with a key from outside; keys that are tiled and mapped over.",
    matters="All members of an ensemble are equal and stay so: their spread is zero.",
    alike=("copies of one start on purpose, for a sweep", "a function that folds its index into the key",
           "a generator that hands out a new key at each call"),
    confirm=("print the spread of one weight over the members right after they are made: it is 0",),
)  # fmt: skip
_MAPS = frozenset({"jax.vmap", "jax.pmap", "equinox.filter_vmap", "equinox.filter_pmap", "flax.nnx.vmap",
                   "flax.nnx.pmap"})  # fmt: skip
_MAKES = re.compile(r"^jax\.random\.(PRNGKey|key|fold_in|split|clone)$")
_COPIES = re.compile(r"copies|copy|same|shared|replicat|broadcast|sweep|repeat|bench|timeit|perf_counter|determin|"
                     r"reproduc|^test_")  # fmt: skip
_KEY = re.compile(r"^(\w+_)?(prng_?)?key(_\w+)?$|^(prng|rng)$", re.IGNORECASE)


@dataclass(frozen=True)
class _Mapped:
    """A function that is run for each row: where it is mapped, and the rows that it is given."""

    code: Syntax
    at: ast.expr
    body: Body
    where: Syntax
    """The source of the body."""
    rows: tuple[ast.expr, ...]


def check(project: Project) -> Iterator[Finding]:
    """Look at every mapped function and every comprehension over keys."""
    if not any("jax" in f.text for f in project.files):
        return
    look = lookup(project)
    seen: set[int] = set()
    for code in look.codes:
        if "jax" not in code.file.text and "equinox" not in code.file.text:
            continue
        for one in _mapped(look, code):
            if id(one.at) not in seen:
                seen.add(id(one.at))
                yield from _judged(look, one)
        for listed in code.of(ast.ListComp):
            yield from _listed(look, code, listed)
        for generated in code.of(ast.GeneratorExp):
            yield from _listed(look, code, generated)
        yield from _tiled(look, code)


def _mapped(look: Lookup, code: Syntax) -> Iterator[_Mapped]:
    for call in (c for c in code.of(ast.Call) if code.qualified(c.func) in _MAPS or _lax_map(code, c)):
        given = argument(call, 0, "fun", "f")
        found = look.function(code, given) if given is not None else None
        if found is None:
            continue
        up = code.parent(call)
        if _lax_map(code, call):
            rows = tuple(r for r in (argument(call, 1, "xs"),) if r is not None)
            yield _Mapped(code, call, found[1], found[0], rows)
        elif isinstance(up, ast.Call) and up.func is call:
            yield _Mapped(code, call, found[1], found[0], tuple(up.args))
        elif isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
            for used in code.calls(up.targets[0].id):
                yield _Mapped(code, call, found[1], found[0], tuple(used.args))
    for body in code.of(ast.FunctionDef):
        if any(code.qualified(d.func if isinstance(d, ast.Call) else d) in _MAPS for d in body.decorator_list):
            for used in code.calls(body.name):
                yield _Mapped(code, used, body, code, tuple(used.args))


def _lax_map(code: Syntax, call: ast.Call) -> bool:
    return code.qualified(call.func) == "jax.lax.map"


def _judged(look: Lookup, one: _Mapped) -> Iterator[Finding]:
    given = [n for n, default in parameters(one.body).items() if default is None and n not in ("self", "cls")]
    inner = one.body.body if isinstance(one.body, ast.Lambda) else ast.Module(list(one.body.body), [])
    if not given or not one.rows or one.body.args.vararg is not None:
        return
    used = names_in(inner)
    unused = [n for n in given if n not in used]
    keys = [n for n, row in zip(given, one.rows, strict=False) if n in unused and _are_keys(look, one.code, row)]
    if len(unused) < len(given) and not keys:
        return
    if _on_purpose(one.code, one.at) or _COPIES.search(getattr(one.body, "name", "")):
        return
    drawn = _drawn(look, one.where, inner, one.body)
    if drawn is not None:
        name = (keys or unused)[0]
        why = f"The function that is mapped at {one.code.at(one.at)} ignores its argument `{name}`"
        yield _finding(one.where, drawn[0], drawn[1], why, "mapped", _patch(one, drawn, name) if keys else ())


def _drawn(look: Lookup, code: Syntax, inner: ast.AST, body: ast.AST | None) -> tuple[ast.Call, ast.expr] | None:
    """A call that is given a key from outside, with the key."""
    local = {n.id for n in below(inner) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for call in (n for n in below(inner) if isinstance(n, ast.Call)):
        if _MAKES.match(code.qualified(call.func)) and not code.qualified(call.func).endswith(".split"):
            continue
        given = [*call.args, *(k.value for k in call.keywords)]
        for value in [*given, *(v for g in given if isinstance(g, ast.Dict) for v in g.values)]:
            if names_in(value) & local:
                continue
            if _is_key(look, code, value, call):
                return call, value
    return None


def _is_key(look: Lookup, code: Syntax, value: ast.expr, call: ast.Call) -> bool:
    """Whether a value is one key: made by jax.random, or a parameter that is called a key and drawn from."""
    if isinstance(value, ast.Call):
        return code.qualified(value.func) in ("jax.random.PRNGKey", "jax.random.key")
    if not isinstance(value, (ast.Name, ast.Attribute)):
        return False
    where, made = look.origin(code, value)
    if isinstance(made, ast.Subscript):
        where, made = look.origin(where, made.value)
    if isinstance(made, ast.Call):
        return _MAKES.match(where.qualified(made.func)) is not None
    draws = code.qualified(call.func).startswith("jax.random.") or last_name(call.func) == "init"
    bound = isinstance(value, ast.Name) and bool(code.bindings(value))
    split = bound and all(_comes_from_keys(code, v) for _, v in code.bindings(value))
    return split or (not bound and draws and bool(_KEY.match(last_name(value))) and _is_argument(code, value))


def _is_argument(code: Syntax, value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and any(
        value.id in parameters(a) for a in code.above(value) if isinstance(a, FunctionNode))  # fmt: skip


def _comes_from_keys(code: Syntax, value: ast.expr) -> bool:
    made = value.value if isinstance(value, ast.Subscript) else value
    return isinstance(made, ast.Call) and _MAKES.match(code.qualified(made.func)) is not None


def _are_keys(look: Lookup, code: Syntax, row: ast.expr) -> bool:
    """Whether rows are the keys of a split."""
    where, made = look.origin(code, row)
    if isinstance(made, ast.Subscript):
        where, made = look.origin(where, made.value)
    return isinstance(made, ast.Call) and where.qualified(made.func) == "jax.random.split"


def _on_purpose(code: Syntax, node: ast.AST) -> bool:
    """Whether the place says that copies, a measurement or a test are meant."""
    statement, function = code.statement(node), code.function(node)
    targets = " ".join(map(written, statement.targets)) if isinstance(statement, ast.Assign) else ""
    timed = function is not None and re.search(r"perf_counter|timeit|block_until_ready|assert_|allclose|array_equal",
                                               written(function)) is not None  # fmt: skip
    return timed or any(_COPIES.search(t) for t in (targets, getattr(function, "name", "")))


def _listed(look: Lookup, code: Syntax, node: ast.ListComp | ast.GeneratorExp) -> Iterator[Finding]:
    """`[init(key) for k in keys]`, and `[model.init(key, x) for _ in range(n)]`."""
    if len(node.generators) != 1 or node.generators[0].ifs:
        return
    over, used = node.generators[0], names_in(node.elt)
    pairs = _rows(over)
    unused = [n for n, _ in pairs if n not in used]
    keys = [n for n, row in pairs if n in unused and row is not None and _are_keys(look, code, row)]
    drawn = _drawn(look, code, node.elt, None)
    if drawn is None or _on_purpose(code, node) or not (keys or len(unused) == len(pairs)):
        return
    if keys or last_name(drawn[0].func) == "init":
        whose = f"ignores `{keys[0]}`" if keys else "uses one key for every member"
        yield _finding(code, drawn[0], drawn[1], f"{written(node)[:80]} at {code.at(node)} {whose}", "listed",
                       _renamed(code, drawn[1], keys[0]) if keys else ())  # fmt: skip


def _rows(over: ast.comprehension) -> list[tuple[str, ast.expr | None]]:
    """The variables of a comprehension with what each of them runs over."""
    target = over.target
    if isinstance(target, ast.Name):
        return [(target.id, over.iter)]
    names = [last_name(e) for e in target.elts] if isinstance(target, ast.Tuple) else []
    kind = last_name(over.iter.func) if isinstance(over.iter, ast.Call) else ""
    rows: list[ast.expr | None] = list(over.iter.args) if isinstance(over.iter, ast.Call) and kind == "zip" else []
    if isinstance(over.iter, ast.Call) and kind == "enumerate":
        rows = [None, *over.iter.args]
    return list(zip(names, rows, strict=False)) if len(rows) == len(names) else [(n, None) for n in names]


_TILES = frozenset({"tile", "repeat", "broadcast_to", "stack", "array", "asarray", "full"})


def _tiled(look: Lookup, code: Syntax) -> Iterator[Finding]:
    """`jax.vmap(init)(jnp.tile(key, (n, 1)))`: rows that are one key again and again."""
    for call in code.of(ast.Call):
        if not isinstance(call.func, ast.Call) or code.qualified(call.func.func) not in _MAPS:
            continue
        for row in call.args:
            where, made = look.origin(code, row)
            key = _copied(where, made)
            if code.qualified(call.func.func).endswith("pmap"):
                continue  # replicas on devices have to begin alike
            if key is not None and _is_key(look, where, key, call) and not _on_purpose(code, call):
                yield _finding(where, made, key, f"The rows that {code.at(call)} maps over are copies of one key",
                               "tiled", ())  # fmt: skip


def _copied(code: Syntax, made: ast.expr) -> ast.expr | None:
    if not isinstance(made, ast.Call) or last_name(made.func) not in _TILES or not made.args:
        return None
    if not code.qualified(made.func).startswith("jax.numpy."):
        return None
    first: ast.expr = made.args[0]
    if last_name(made.func) in ("stack", "array", "asarray"):
        several = isinstance(first, ast.BinOp) and isinstance(first.op, ast.Mult)
        listed = first.left if isinstance(first, ast.BinOp) and several else None
        first = listed.elts[0] if isinstance(listed, ast.List) and len(listed.elts) == 1 else ast.Constant(None)
    return first.value if isinstance(first, ast.Subscript) else first


def _patch(one: _Mapped, drawn: tuple[ast.Call, ast.expr], name: str) -> tuple[Patch, ...]:
    return _renamed(one.where, drawn[1], name) if isinstance(one.body, ast.Lambda) and name != "_" else ()


def _renamed(code: Syntax, key: ast.expr, name: str) -> tuple[Patch, ...]:
    """The outer key replaced by the row's own."""
    if name == "_" or isinstance(key, ast.Call):
        return ()
    return Change(code.file, "draw with the row's own key").replace(key, name).patches()


def _finding(code: Syntax, node: ast.expr, key: ast.expr, why: str, kind: str, patch: tuple[Patch, ...]) -> Finding:
    drawn = f"{written(node)[:80]} (line {node.lineno}) draws with the same key `{written(key)[:40]}` for each of them"
    return RULE.finding(f"{why}: {drawn}, so that all rows, all members, are identical copies", code.place(node),
                        code.file.path, bearing=Bearing.CAUSE, measured={"kind": kind}, patch=patch)  # fmt: skip
