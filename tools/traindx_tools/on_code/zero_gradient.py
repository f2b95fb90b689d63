"""Which values of a differentiated function depend on its parameters, and which only through steps without a gradient.

argmax, round, sign, a comparison, a cast to int, one_hot and stop_gradient have the gradient 0 everywhere. JAX goes on
without an error where torch would refuse. A value is followed statement by statement, through functions of the project:
it does not depend on the parameters, depends on them through such steps alone, or has a gradient (what is not known
has one).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, written

NONE, CUT, FLOWS = 0, 1, 2
_ZERO = frozenset({
    "argmax", "argmin", "argsort", "round", "rint", "around", "floor", "ceil", "trunc", "sign", "one_hot", "equal",
    "not_equal", "greater", "greater_equal", "less", "less_equal", "isnan", "isfinite", "isinf", "digitize",
    "heaviside",
    "searchsorted", "bincount", "stop_gradient", "floor_divide", "categorical", "bernoulli", "nonzero", "logical_not",
    "logical_and", "logical_or", "count_nonzero", "argpartition",
})  # fmt: skip
_STATIC = frozenset({"shape", "ndim", "dtype", "size"})
_INTEGERS = frozenset({"int", "bool", "jnp.int32", "jnp.int64", "jnp.bool_", "jnp.uint8", "np.int32", "jnp.int8",
                       "jax.numpy.int32", "'int32'", "'bool'", "bool_"})  # fmt: skip
_NO_PARAMETERS = frozenset({"Dropout", "Lambda", "Identity", "MaxPool", "AvgPool", "MaxPool2d", "AvgPool2d"})
_DEEP = 5
_PRODUCTS = frozenset({"dot", "matmul", "einsum", "tensordot", "conv_general_dilated", "conv", "dot_general"})


@dataclass
class Cut:
    """A step without a gradient, and the trained step behind it that what it gives goes into."""

    code: Syntax
    node: ast.AST
    into: ast.AST | None = None


@dataclass
class _Value:
    level: int
    cuts: list[Cut] = field(default_factory=list)


def _most(values: list[_Value]) -> _Value:
    level = max((v.level for v in values), default=NONE)
    return _Value(level, [c for v in values for c in v.cuts] if level == CUT else [])


class Flow:
    """The flow of gradients through functions of a project."""

    def __init__(self, look: Lookup) -> None:
        self._look = look
        self.hidden: list[Cut] = []
        """Values without a gradient that go into trained steps."""

    def result(self, code: Syntax, function: ast.FunctionDef, given: dict[str, _Value], left: int = _DEEP) -> _Value:
        """What a function returns; of a pair (loss, extras) the loss alone."""
        env = dict(given)
        out: list[_Value] = []
        self._block(code, function.body, env, out, left)
        return _most(out) if out else _Value(FLOWS)

    # --- statements

    def _block(self, code: Syntax, body: list[ast.stmt], env: dict[str, _Value], out: list[_Value], left: int) -> None:
        for statement in body:
            if isinstance(statement, ast.Return):
                if statement.value is not None:
                    value = statement.value
                    first = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
                    out.append(self._of(code, first, env, left))
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    self._bind(code, target, statement.value, env, left)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self._bind(code, statement.target, statement.value, env, left)
            elif isinstance(statement, ast.AugAssign):
                name = written(statement.target)
                env[name] = _most([env.get(name, _Value(NONE)), self._of(code, statement.value, env, left)])
            elif isinstance(statement, ast.If):
                one, two = dict(env), dict(env)
                self._block(code, statement.body, one, out, left)
                self._block(code, statement.orelse, two, out, left)
                for name in one.keys() | two.keys():
                    env[name] = _most([e[name] for e in (one, two) if name in e])
            elif isinstance(statement, (ast.For, ast.While, ast.With)):
                if isinstance(statement, ast.For):
                    self._bind(code, statement.target, statement.iter, env, left)
                for _ in range(2 if not isinstance(statement, ast.With) else 1):
                    self._block(code, statement.body, env, out, left)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                call = statement.value
                if isinstance(call.func, ast.Attribute) and call.args:  # rows.append(value)
                    name = written(call.func.value)
                    env[name] = _most([env.get(name, _Value(NONE)), self._of(code, call.args[-1], env, left)])

    def _bind(self, code: Syntax, target: ast.expr, value: ast.expr, env: dict[str, _Value], left: int) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                for part, one in zip(target.elts, value.elts, strict=True):
                    self._bind(code, part, one, env, left)
                return
            whole = self._of(code, value, env, left)
            if whole.level == CUT:
                whole = _Value(FLOWS)  # one of several results: which one has a gradient is not known
            for part in target.elts:
                for name in (n.id for n in below(part) if isinstance(n, ast.Name)):
                    env[name] = whole
            return
        env[written(target)] = self._of(code, value, env, left)

    # --- expressions

    def _of(self, code: Syntax, node: ast.expr, env: dict[str, _Value], left: int) -> _Value:
        if isinstance(node, (ast.Name, ast.Attribute)) and written(node) in env:
            return env[written(node)]
        if isinstance(node, ast.Name):
            return self._function_named(code, node, env)
        if isinstance(node, ast.Attribute):
            return _Value(NONE) if node.attr in _STATIC else self._of(code, node.value, env, left)
        if isinstance(node, ast.Constant):
            return _Value(NONE)
        if isinstance(node, ast.Compare):
            inner = _most([self._of(code, n, env, left) for n in (node.left, *node.comparators)])
            return self._cut(code, node, inner)
        if isinstance(node, ast.BinOp):
            one, two = self._of(code, node.left, env, left), self._of(code, node.right, env, left)
            if isinstance(node.op, ast.FloorDiv):
                return self._cut(code, node, _most([one, two]))
            if isinstance(node.op, ast.MatMult):
                self._entered(node, one, two)
            return _most([one, two])
        if isinstance(node, ast.Subscript):
            value, index = self._of(code, node.value, env, left), self._of(code, node.slice, env, left)
            if isinstance(node.value, (ast.Dict, ast.List, ast.Tuple)):
                return value  # one of several that are written out, chosen by a setting: no gather of numbers
            if value.level == NONE and index.level:
                return _Value(CUT, index.cuts or [Cut(code, node)])
            return value
        if isinstance(node, ast.IfExp):
            return _most([self._of(code, node.body, env, left), self._of(code, node.orelse, env, left)])
        if isinstance(node, ast.Lambda):
            return _most([env[n.id] for n in below(node.body) if isinstance(n, ast.Name) and n.id in env])
        if isinstance(node, ast.Call):
            return self._call(code, node, env, left)
        return _most([self._of(code, c, env, left) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)])

    def _function_named(self, code: Syntax, node: ast.Name, env: dict[str, _Value]) -> _Value:
        """A function that takes values from around it depends on them."""
        inner = next((f for f in code.functions(node.id) if code.function(f) is not None), None)
        if inner is None:
            return _Value(NONE)
        own = set(parameters(inner))
        taken = [env[n.id] for n in below(inner) if isinstance(n, ast.Name) and n.id in env and n.id not in own]
        return _Value(FLOWS) if any(v.level for v in taken) else _Value(NONE)

    def _cut(self, code: Syntax, node: ast.AST, inner: _Value) -> _Value:
        if inner.level == NONE:
            return inner
        return _Value(CUT, inner.cuts if inner.level == CUT and inner.cuts else [Cut(code, node)])

    def _entered(self, into: ast.AST, *values: _Value) -> None:
        """A cut value that goes into a trained step."""
        for value in values:
            if value.level == CUT:
                self.hidden += [Cut(c.code, c.node, into) for c in value.cuts]

    def _call(self, code: Syntax, node: ast.Call, env: dict[str, _Value], left: int) -> _Value:
        name = last_name(node.func)
        given = [*node.args, *(k.value for k in node.keywords)]
        values = [self._of(code, a.value if isinstance(a, ast.Starred) else a, env, left) for a in given]
        masks = [k.arg is not None and "mask" in k.arg for k in node.keywords]
        values = [_Value(NONE) if mask else v for v, mask in zip(values, [*(False for _ in node.args), *masks],
                                                                 strict=True)]  # fmt: skip
        plain = bool(code.qualified(node.func)) or isinstance(node.func, ast.Name)
        own = self._of(code, node.func.value, env, left) if isinstance(node.func, ast.Attribute) and not plain else (
            _Value(NONE))  # fmt: skip
        if name in _ZERO and (plain or not given or name != "round"):
            return self._cut(code, node, _most([own, *values]))
        if name == "astype" or (name in ("asarray", "array") and len(given) > 1):
            kind = written(given[0] if name == "astype" else given[1]) if given else ""
            inner = own if name == "astype" else values[0]
            return self._cut(code, node, inner) if kind in _INTEGERS else inner
        if name == "where" and len(values) == 3:
            chosen = _most(values[1:])
            return chosen if chosen.level else self._cut(code, node, values[0])
        if name in _PRODUCTS:
            self._entered(node, *values)
        if isinstance(node.func, ast.Call):
            return self._applied(code, node, values, env, left)
        body = self._body(code, node, left)
        if body is not None:
            return self._inner(body, node, values, own, left)
        if own.level == FLOWS and isinstance(node.func, ast.Attribute) and written(node.func.value).startswith("self"):
            self._entered(node, *values)  # self.decoder(code)
        layer = isinstance(node.func, ast.Attribute) and written(node.func.value) == "self" and "self" in env
        if layer:
            self._entered(node, *values)
            return _Value(FLOWS)
        return _most([own, *values, self._of(code, node.func, env, left) if isinstance(node.func, ast.Name) else own])

    def _applied(self, code: Syntax, node: ast.Call, values: list[_Value], env: dict[str, _Value], left: int) -> _Value:
        """`nn.Dense(3)(x)`, `jax.vmap(model)(x)`."""
        assert isinstance(node.func, ast.Call)
        made = node.func
        name = last_name(made.func)
        inner = _most([self._of(code, a, env, left) for a in made.args])
        if name in _NO_PARAMETERS:
            return _most(values)
        if name[:1].isupper() and "self" in env:
            self._entered(node, *values)
            return _Value(FLOWS)
        if inner.level == FLOWS:
            self._entered(node, *values)
            return _Value(FLOWS)
        return _most([inner, *values])

    def _body(self, code: Syntax, node: ast.Call, left: int) -> tuple[Syntax, ast.FunctionDef] | None:
        if left <= 0 or not isinstance(node.func, ast.Name):
            return None
        found = self._look.function(code, node.func)
        if found is None or not isinstance(found[1], ast.FunctionDef):
            return None
        ways = (written(d) for d in found[1].decorator_list)
        text = found[0].file.text
        if any("custom_" in d or "vjp" in d or "jvp" in d for d in ways) or f"{found[1].name}.def" in text:
            return None
        return found[0], found[1]

    def _inner(self, body: tuple[Syntax, ast.FunctionDef], node: ast.Call, values: list[_Value], own: _Value,
               left: int) -> _Value:  # fmt: skip
        code, function = body
        if any(isinstance(a, ast.Starred) for a in node.args) or code.function(function) is not None:
            return _Value(FLOWS) if any(v.level for v in (*values, own)) or code.function(function) else _Value(NONE)
        names = list(parameters(function))
        given = dict(zip(names, values, strict=False))
        for keyword, value in zip(node.keywords, values[len(node.args) :], strict=True):
            if keyword.arg is not None:
                given[keyword.arg] = value
        first = next((r for r in below(function) if isinstance(r, ast.Return)), None)
        result = self.result(code, function, given, left - 1)
        several = first is not None and isinstance(first.value, ast.Tuple)
        return _Value(FLOWS) if several and result.level == CUT else result


def flows() -> _Value:
    """A value with a gradient."""
    return _Value(FLOWS)


def reads(function: ast.FunctionDef, name: str) -> Iterator[ast.Name]:
    """Where a function reads one of its parameters."""
    for node in below(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def is_module(owner: ast.ClassDef | None) -> bool:
    """Whether a class is a module of flax, equinox or haiku."""
    return owner is not None and any(last_name(b) == "Module" for b in owner.bases)


def nested(code: Syntax, function: ast.AST) -> bool:
    """Whether a function stands in another one."""
    return isinstance(function, FunctionNode) and code.function(function) is not None
