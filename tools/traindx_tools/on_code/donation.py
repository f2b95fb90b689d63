"""Which names hold the arrays that a call gives away (`donate_argnums`), followed statement by statement.

`target = params` makes no copy: both names hold the same arrays, and a call that takes the memory of one takes that of
the other. The statements of a scope are gone through in order, a loop twice, both branches of a condition. A value is a
set of origins, each with a path in it: `state.params` is the part "params" of what `state` holds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from traindx_tools.on_code.donated_values import Held, overlap, overlapping_parts
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, written

_SAME = frozenset({"asarray", "device_put", "stop_gradient", "freeze", "unfreeze", "dict", "FrozenDict", "astype",
                   "reshape", "block_until_ready"})  # fmt: skip
"""Calls that hand the same arrays on, measured with JAX 0.10: none of them copies where there is nothing to convert."""
_SHAPES = frozenset({"shape", "dtype", "size", "ndim", "nbytes", "sharding", "is_deleted", "apply_fn", "tx",
                     "tree_def"})  # fmt: skip
_NO_READ = frozenset({"len", "type", "isinstance", "id", "hasattr", "tree_structure", "structure", "eval_shape",
                      "is_deleted", "del", "clear", "delete", "prod"})  # fmt: skip
_TREES = re.compile(r"param|target|ema|average|opt_state|batch_stats|variables|weights|model|online|critic|actor"
                    r"|memory")  # fmt: skip
_ARRAYS = re.compile(r"param|state|stats|variables|weights|ema|target|online|model|best|prev|old|slow|average|critic"
                     r"|actor|memory|cache|carry|buffer")  # fmt: skip
_MOST = 4000


@dataclass(frozen=True)
class Reuse:
    """An array that is read after a call took it: the call, the name that was given, the read and its name."""

    call: ast.Call
    given: str
    read: ast.AST
    name: str
    made: ast.AST | None = None
    """Where the second name was given to the arrays."""
    twice: bool = False
    """Whether it is another argument of the same call, or part of the donated one."""


Env = dict[str, Held]


@dataclass
class _Exit:
    """Environments that leave a loop early."""

    breaks: list[Env] = field(default_factory=list)
    continues: list[Env] = field(default_factory=list)


class Donation:
    """One scope, gone through in order. `takes` says which arguments of a call are donated."""

    def __init__(self, code: Syntax, takes: Callable[[ast.Call], Sequence[ast.expr]]) -> None:
        self._code = code
        self._takes = takes
        self._count = 0
        self._steps = 0
        self._calls: list[tuple[ast.Call, str]] = []
        self._ended: list[Env] = []
        self._named: dict[int, list[tuple[str, ast.AST]]] = {}
        self.found: list[Reuse] = []

    def scope(self, bodies: Sequence[Sequence[ast.stmt]]) -> None:
        """Go through a function's body; of a class the constructor first, then its methods, twice."""
        env: Env = {}
        for body in (bodies[0], *bodies[1:], *bodies[1:]):
            after = self._block(body, {k: v for k, v in env.items() if k.startswith("self.")}, None)
            env = _joined([*self._ended, *([after] if after is not None else [])]) or env
            self._ended.clear()

    # --- statements

    def _block(self, body: Sequence[ast.stmt], env: Env, out: _Exit | None) -> Env | None:
        """The environment after a block; None where it never ends normally."""
        now: Env | None = env
        for statement in body:
            self._steps += 1
            if now is None or self._steps > _MOST:
                return now
            now = self._statement(statement, now, out)
        return now

    def _statement(self, node: ast.stmt, env: Env, out: _Exit | None) -> Env | None:
        if isinstance(node, ast.If):
            self._value(node.test, env)
            first, second = self._block(node.body, dict(env), out), self._block(node.orelse, dict(env), out)
            return _joined([e for e in (first, second) if e is not None])
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return self._loop(node, env)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._value(item.context_expr, env)
            return self._block(node.body, env, out)
        if isinstance(node, ast.Try):
            after = self._block(node.body, env, out)
            return self._block(node.finalbody, after, out) if after is not None else None
        if isinstance(node, (*FunctionNode, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return env
        if isinstance(node, ast.Assign):
            held = self._value(node.value, env)
            for target in node.targets:
                self._bind(target, held, env)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._bind(node.target, self._value(node.value, env), env)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                env[written(target)] = self._fresh()
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self._read(node.value, self._value(node.value, env))
            self._ended.append(env)
            return None
        elif isinstance(node, ast.Raise):
            return None
        elif isinstance(node, (ast.Break, ast.Continue)):
            if out is not None:
                (out.breaks if isinstance(node, ast.Break) else out.continues).append(dict(env))
            return None
        else:
            for value in ast.iter_child_nodes(node):
                if isinstance(value, ast.expr):
                    self._value(value, env)
            if isinstance(node, ast.AugAssign):
                self._bind(node.target, self._fresh(), env)
        return env

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, env: Env) -> Env | None:
        over = node.test if isinstance(node, ast.While) else node.iter
        self._value(over, env)
        ends: list[Env] = [] if _always(over) else [dict(env)]
        now: Env | None = env
        for _ in range(2):
            if now is None:
                break
            out = _Exit()
            if not isinstance(node, ast.While):
                self._bind(node.target, self._fresh(), now)
            now = self._block(node.body, dict(now), out)
            now = _joined([e for e in (now, *out.continues) if e is not None])
            ends += out.breaks
            if now is not None:
                ends.append(now)
        return self._block(node.orelse, _joined(ends) or {}, None) if ends else None

    # --- values

    def _bind(self, target: ast.expr, held: Held, env: Env) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for i, part in enumerate(target.elts):
                self._bind(part, held.part(str(i)), env)
            return
        if isinstance(target, ast.Starred):
            return
        name = written(target)
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
            name = written(target.value)
            held = env.get(name, Held()).joined(held)
        self._note(target, held)
        for key in [k for k in env if k.startswith((name + ".", name + "["))]:
            del env[key]
        env[name] = held

    def _note(self, target: ast.expr, held: Held) -> None:
        name = written(target.value if isinstance(target, ast.Subscript) else target)
        for root, _, _ in held.all():
            self._named.setdefault(root, []).append((name, target))

    def _second_name(self, held: Held, *names: str) -> ast.AST | None:
        """Where the later of two names was bound to the same arrays."""
        for root, _, _ in held.all():
            bound = [node for name, node in self._named.get(root, ()) if any(n == name or n.startswith((name + ".",
                     name + "[")) for n in names)]  # fmt: skip
            if bound and len({n for n, _ in self._named[root]}) > 1:
                return bound[-1]
        return None

    def _fresh(self) -> Held:
        self._count += 1
        return Held(frozenset({(self._count, (), 0)}))

    def _value(self, node: ast.expr, env: Env) -> Held:
        """What an expression holds. Arrays that it computes with are read."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return self._place(node, env)
        if isinstance(node, (ast.Tuple, ast.List)):
            return Held(parts={str(i): self._value(e, env) for i, e in enumerate(node.elts)})
        if isinstance(node, ast.Dict):
            known = {str(k.value): self._value(v, env) for k, v in zip(node.keys, node.values, strict=True)
                     if isinstance(k, ast.Constant)}  # fmt: skip
            return Held(parts=known)
        if isinstance(node, ast.IfExp):
            return self._value(node.body, env).joined(self._value(node.orelse, env))
        if isinstance(node, ast.Call):
            return self._call(node, env)
        if isinstance(node, (ast.Lambda, ast.Constant, ast.JoinedStr)):
            return self._fresh()
        if isinstance(node, ast.Compare) and all(isinstance(o, (ast.Is, ast.IsNot)) for o in node.ops):
            return self._fresh()
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            if not _only_shapes(node):
                for made in node.generators:
                    self._read(made.iter, self._value(made.iter, env))
            return self._fresh()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._read(child, self._value(child, env))
        return self._fresh()

    def _place(self, node: ast.Name | ast.Attribute | ast.Subscript, env: Env) -> Held:
        name = written(node)
        if name in env:
            return env[name]
        if isinstance(node, ast.Name) or (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            env[name] = self._fresh()
            return env[name]
        if isinstance(node, ast.Attribute):
            if node.attr in _SHAPES or not _ARRAYS.search(node.attr):
                return self._fresh()
            return self._value(node.value, env).part(node.attr)
        if isinstance(node.slice, ast.Constant):
            return self._value(node.value, env).part(str(node.slice.value))
        if isinstance(node.slice, ast.Slice):
            return self._fresh()
        self._read(node.slice, self._value(node.slice, env))
        held = self._value(node.value, env)
        return held if not held.parts else Held(held.all())

    def _call(self, node: ast.Call, env: Env) -> Held:
        name = last_name(node.func)
        given = [a.value if isinstance(a, ast.Starred) else a for a in node.args] + [k.value for k in node.keywords]
        if isinstance(node.func, ast.Attribute) and name in ("append", "insert", "appendleft") and given:
            owner = written(node.func.value)
            added = self._value(given[-1], env)
            self._note(node.func.value, added)
            env[owner] = env.get(owner, self._fresh()).joined(Held(added.all()))
            return self._fresh()
        if name in _NO_READ:
            return self._fresh()
        if name in ("tree_map", "map") and given and "tree" in written(node.func):
            if _identity(given[0]):
                return self._value(given[1], env) if len(given) > 1 else self._fresh()
            if _only_shapes(given[0]):
                return self._fresh()
        taken = {id(t) for t in self._takes(node)}
        values = [(v, self._value(v, env)) for v in given]
        same = self._kept(node, name, env, {id(v): held for v, held in values})
        if same is not None:
            return same
        for read, held in values:
            self._read(read, held)
        if isinstance(node.func, ast.Attribute):
            of = node.func.value
            if not (isinstance(of, ast.Name) and of.id in self._code.aliases):
                self._read(of, self._value(of, env))
        if taken:
            self._take(node, values, taken, env)
        return self._fresh()

    def _kept(self, node: ast.Call, name: str, env: Env, given: Mapping[int, Held]) -> Held | None:
        """What a call hands on unchanged: a cast that has nothing to do, a state that is put together."""
        if name in _SAME:
            inner = node.func.value if isinstance(node.func, ast.Attribute) and name in (
                "astype", "reshape", "block_until_ready") and not node.keywords else None  # fmt: skip
            if inner is not None and not self._code.qualified(node.func):
                return self._value(inner, env) if name == "block_until_ready" else None
            if node.args and not node.keywords and name not in ("astype", "reshape"):
                return given[id(node.args[0])]
        if self._code.qualified(node.func) == "copy.copy" and node.args:
            return given[id(node.args[0])]
        trees = {k.arg: given[id(k.value)] for k in node.keywords
                 if k.arg is not None and _TREES.search(k.arg)}  # fmt: skip
        if name in ("replace", "_replace") and isinstance(node.func, ast.Attribute) and not self._code.qualified(
                node.func):  # fmt: skip
            base = self._value(node.func.value, env)
            if not node.keywords:
                return None
            others = {k.arg: self._fresh() for k in node.keywords if k.arg is not None and k.arg not in trees}
            known = {n: base.part(n) for n in ("params", "opt_state", "target_params", "ema_params", "batch_stats")}
            return Held(parts={**known, **base.parts, **trees, **others})
        made = name if name != "create" else last_name(getattr(node.func, "value", None))
        if trees and made[:1].isupper() and "State" in made:
            return Held(parts=trees)
        return None

    # --- what is given away, and what is read then

    def _take(self, call: ast.Call, values: list[tuple[ast.expr, Held]], taken: set[int], env: Env) -> None:
        for value, held in values:
            if id(value) not in taken:
                continue
            name = written(value)
            twice = overlapping_parts(held)
            if twice:
                self.found.append(Reuse(call, name, call, " and ".join(twice), twice=True))
            for other, kept in values:
                if other is not value and any(overlap(a, b) for a in held.all() for b in kept.all()):
                    self.found.append(Reuse(call, name, other, written(other),
                                            self._second_name(kept, name, written(other)), twice=True))
            self._calls.append((call, name))
            for origin in held.all():
                for key in env:
                    env[key] = env[key].without(origin, len(self._calls))

    def _read(self, node: ast.expr, held: Held) -> None:
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List)):
            return
        gone = next((g for _, _, g in held.all() if g), 0)
        if gone:
            call, given = self._calls[gone - 1]
            self.found.append(Reuse(call, given, node, written(node), self._second_name(held, given, written(node))))


def _joined(envs: list[Env]) -> Env | None:
    if not envs:
        return None
    joined = dict(envs[0])
    for env in envs[1:]:
        for key, held in env.items():
            joined[key] = joined[key].joined(held) if key in joined else held
    return joined


def _always(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _identity(node: ast.expr) -> bool:
    """`lambda x: x`."""
    if not isinstance(node, ast.Lambda) or len(node.args.args) != 1:
        return False
    return isinstance(node.body, ast.Name) and node.body.id in parameters(node)


def _only_shapes(node: ast.AST) -> bool:
    """Whether an expression asks its arrays for shapes alone, which a deleted array still has."""
    own = node.body if isinstance(node, ast.Lambda) else getattr(node, "elt", None)
    return own is not None and any(isinstance(n, ast.Attribute) and n.attr in _SHAPES for n in below(own))


def reuses(code: Syntax, bodies: Sequence[Sequence[ast.stmt]],
           takes: Callable[[ast.Call], Sequence[ast.expr]]) -> Iterator[Reuse]:
    """Every read of arrays that a call of this scope took, the first of each call and name."""
    run = Donation(code, takes)
    run.scope(bodies)
    seen: set[tuple[int, str]] = set()
    for one in run.found:
        if (id(one.call), one.name) not in seen:
            seen.add((id(one.call), one.name))
            yield one
