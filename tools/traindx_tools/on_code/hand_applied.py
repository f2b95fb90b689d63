"""Updates of optax that are put onto the parameters by hand: with which sign, and with which factor.

`tx.update` returns what has to be added: the ready-made optimizers have taken the sign and the learning rate into it.
`p - u` climbs the loss, `p + lr * u` has the rate in it twice. Raw gradients given to `apply_updates` climb as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.on_code.tracing import GRADIENTS

_READY = frozenset({
    "adam", "adamw", "sgd", "rmsprop", "lion", "lamb", "adagrad", "nadam", "nadamw", "radam", "amsgrad", "adafactor",
    "adabelief", "adamax", "adamaxw", "novograd", "yogi", "lars", "sm3", "noisy_sgd", "sign_sgd", "fromage",
    "scale_by_learning_rate",
})  # fmt: skip
_MAPS = frozenset({"jax.tree.map", "jax.tree_map", "jax.tree_util.tree_map", "jax.tree_multimap",
                   "jax.tree_util.tree_multimap"})  # fmt: skip
_SUBTRACT = frozenset({"jax.numpy.subtract", "operator.sub", "numpy.subtract", "jax.lax.sub"})
_NEGATIVE = frozenset({"jax.numpy.negative", "operator.neg", "numpy.negative", "jax.lax.neg"})
_HOLDERS = frozenset({"chain", "MultiSteps", "apply_if_finite", "masked", "flatten", "inject_hyperparams"})


@dataclass(frozen=True)
class Applied:
    """An update put on by hand. `kind`: sign, rate or gradient; `known`: whether its optimizer is known."""

    code: Syntax
    node: ast.expr
    kind: str
    known: bool
    swap: tuple[ast.expr, str] | None = None


def applied_by_hand(look: Lookup, code: Syntax) -> Iterator[Applied]:
    """Every wrong one of a file."""
    for call in code.of(ast.Call):
        name = code.qualified(call.func)
        if name in _MAPS and len(call.args) == 3:
            yield from _mapped(look, code, call)
        elif name in _MAPS and len(call.args) == 2:
            yield from _scaled(look, code, call)
        elif name in ("optax.apply_updates", "equinox.apply_updates"):
            yield from _raw(code, call)
    for node in code.of(ast.BinOp):
        if isinstance(node.op, ast.Sub):
            yield from _plain(look, code, node)


def _mapped(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[Applied]:
    """`tree.map(lambda p, u: p - u, params, updates)`."""
    known = _signed_update(look, code, call.args[2])
    if known is None:
        return
    step = call.args[0]
    if code.qualified(step) in _SUBTRACT:
        yield Applied(code, call, "sign", known)
    body, names = _two(look, code, step)
    if body is None or not isinstance(body, ast.BinOp) or written(body.left) != names[0]:
        return
    if isinstance(body.op, ast.Sub) and names[1] in _factors(body.right):
        yield Applied(code, body, "sign", known, (body, f"{written(body.left)} + {names[1]}"))
    elif isinstance(body.op, ast.Add) and isinstance(body.right, ast.BinOp) and isinstance(body.right.op, ast.Mult):
        factors = _factors(body.right)
        rates = [f for f in factors if f != names[1]]
        if names[1] in factors and len(rates) == 1 and _is_rate(rates[0]):
            yield Applied(code, body, "rate", known, (body.right, names[1]))


def _two(look: Lookup, code: Syntax, step: ast.expr) -> tuple[ast.expr | None, list[str]]:
    """What a function of two arguments returns."""
    found = look.function(code, step)
    if found is None:
        return None, []
    body = found[1]
    names = [a.arg for a in body.args.args]
    if len(names) != 2 or found[0] is not code:
        return None, []
    if isinstance(body, ast.Lambda):
        return body.body, names
    last = body.body[-1]
    return (last.value, names) if len(body.body) == 1 and isinstance(last, ast.Return) else (None, [])


def _factors(node: ast.expr) -> list[str]:
    """`lr * u` -> lr and u; another expression by itself."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [written(node)]


def _is_rate(text: str) -> bool:
    last = text.rpartition(".")[2].lower()
    return last in ("lr", "eta", "alpha") or "learning_rate" in last or "step_size" in last or last.endswith("_lr")


def _scaled(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[Applied]:
    """`tree.map(lambda u: -u, updates)`: the sign turned before the updates are added."""
    known = _signed_update(look, code, call.args[1])
    if known is None or not _added_later(code, call):
        return
    step = call.args[0]
    negated = code.qualified(step) in _NEGATIVE
    if isinstance(step, ast.Lambda) and len(step.args.args) == 1:
        name = step.args.args[0].arg
        negated = isinstance(step.body, ast.UnaryOp) and isinstance(step.body.op, ast.USub) and written(
            step.body.operand) == name  # fmt: skip
        factors = _factors(step.body)
        rates = [f for f in factors if f != name]
        if name in factors and len(rates) == 1 and _is_rate(rates[0]):
            yield Applied(code, call, "rate", known, (call, written(call.args[1])))
        elif name in factors and len(rates) == 1 and rates[0].startswith("-") and _is_rate(rates[0][1:]):
            negated = True
    if negated:
        yield Applied(code, call, "sign", known, (call, written(call.args[1])))


def _added_later(code: Syntax, call: ast.Call) -> bool:
    """Whether the mapped updates are what apply_updates gets."""
    up = code.parent(call)
    if isinstance(up, ast.Call) and last_name(up.func) == "apply_updates":
        return True
    if not isinstance(up, ast.Assign) or not isinstance(up.targets[0], ast.Name):
        return False
    name = up.targets[0].id
    for applied in code.calls("apply_updates"):
        given = argument(applied, 1, "updates")
        if isinstance(given, ast.Name) and given.id == name and code.scope(applied) is code.scope(call):
            return True
    return False


def _raw(code: Syntax, call: ast.Call) -> Iterator[Applied]:
    """`apply_updates(params, grads)`: the gradients themselves, or a positive multiple of them."""
    given = argument(call, 1, "updates")
    if given is None:
        return
    made = code.origin(given)
    if isinstance(made, ast.Call) and code.qualified(made.func) in _MAPS and len(made.args) == 2:
        step = made.args[0]
        if not isinstance(step, ast.Lambda) or not isinstance(step.body, ast.BinOp) or len(step.args.args) != 1:
            return
        factors = _factors(step.body)
        rates = [f for f in factors if f != step.args.args[0].arg]
        if len(factors) != 2 or len(rates) != 1 or not _is_rate(rates[0]):
            return
        made = code.origin(made.args[1])
    if _is_gradient(code, made):
        yield Applied(code, call, "gradient", True)


def _is_gradient(code: Syntax, node: ast.expr) -> bool:
    """`jax.grad(f)(params)`, or the second of what value_and_grad returns, also by a name that is bound to it."""
    second = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 1
    call = node.value if isinstance(node, ast.Subscript) and second else node
    if not isinstance(call, ast.Call):
        return False
    made = code.origin(call.func)
    name = code.qualified(made.func) if isinstance(made, ast.Call) else ""
    negated = isinstance(made, ast.Call) and made.args and isinstance(made.args[0], ast.Lambda) and any(
        isinstance(n, ast.USub) for n in ast.walk(made.args[0]))  # fmt: skip
    return name in GRADIENTS and not negated and ("value" in name) == second


def _plain(look: Lookup, code: Syntax, node: ast.BinOp) -> Iterator[Applied]:
    """`params - updates` of one array, `{k: params[k] - updates[k] for k in params}`."""
    right = node.right.value if isinstance(node.right, ast.Subscript) else node.right
    left = node.left.value if isinstance(node.left, ast.Subscript) else node.left
    if not isinstance(right, (ast.Name, ast.Attribute)) or not isinstance(left, (ast.Name, ast.Attribute)):
        return
    made = _of_update(code, right)
    if made is None or written(argument(made, 2, "params")) != written(left):
        return
    known = _signed_update(look, code, right)
    if known is not None:
        yield Applied(code, node, "sign", known, (node, f"{written(node.left)} + {written(node.right)}"))


def _of_update(code: Syntax, node: ast.expr) -> ast.Call | None:
    """The call of `update` whose first result a name holds."""
    made = code.origin(node) if isinstance(node, (ast.Name, ast.Attribute)) else node
    if not isinstance(made, ast.Subscript) or not isinstance(made.slice, ast.Constant) or made.slice.value != 0:
        return None
    call = made.value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "update":
        return call if len(call.args) + len(call.keywords) >= 2 else None
    return None


def _signed_update(look: Lookup, code: Syntax, node: ast.expr) -> bool | None:
    """Whether a value is what a signed optimizer's update returned; False where only its name says so; else None."""
    call = _of_update(code, node)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    signed = _signed(look, code, call.func.value)
    if signed is not None:
        return True if signed else None
    names = {c.rpartition(".")[2] for c in _factories(look)}
    return False if names & _READY and not any(n.startswith("scale_by_") for n in names) else None


def _factories(look: Lookup) -> Iterator[str]:
    for code in look.codes:
        if "optax" in code.file.text:
            yield from (n for n in (code.qualified(c.func) for c in code.of(ast.Call)) if n.startswith("optax."))


def _signed(look: Lookup, code: Syntax, node: ast.expr, left: int = 5) -> bool | None:
    """Whether an optimizer's updates hold the minus sign; None where it is not known."""
    where, made = look.origin(code, node)
    if not isinstance(made, ast.Call) or left <= 0:
        return None
    name = where.qualified(made.func)
    short = name.rpartition(".")[2]
    if not name.startswith("optax."):
        found = look.function(where, made.func)
        results = [s.value for s in below(found[1]) if isinstance(s, ast.Return)] if found is not None else []
        return _signed(look, found[0], results[0], left - 1) if found and len(results) == 1 and results[0] else None
    if short in _READY:
        rate = argument(made, 0, "learning_rate")
        return not (isinstance(rate, ast.UnaryOp) and isinstance(rate.op, ast.USub))
    if short == "scale":
        factor = where.number(argument(made, 0, "step_size"))
        text = written(argument(made, 0, "step_size"))
        return text.startswith("-") if factor is None else factor < 0
    if short in _HOLDERS:
        known = [_signed(look, where, a.value if isinstance(a, ast.Starred) else a, left - 1) for a in made.args]
        return True if True in known else None if any(
            isinstance(a, (ast.Starred, ast.Name)) for a in made.args) else False  # fmt: skip
    return False if short.startswith(("scale_by_", "clip", "add_", "trace", "identity")) else None
