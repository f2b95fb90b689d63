"""The function of a LambdaLR returns a learning rate, and the scheduler multiplies with it.

LambdaLR sets `base_lr * f(step)`: `f` is a factor that is 1 at the full rate. A function that returns the rate itself,
`peak_lr * warm_up * cosine`, makes the effective rate its square: 4e-6 for a peak of 2e-3. The printed schedule of the
function looks right, training hardly moves, and nothing is said. The formula of the Transformer's paper,
`d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)`, is such a rate and needs an optimizer with a rate of 1.
MultiplicativeLR multiplies the rate of the step before, so that a rate in place of a factor ends training at the first
step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.lookup import Body, Lookup, lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.sampled import values as sampled_values
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written

(RULE,) = pages("schedules", ("C271",))
_SCHEDULERS = ("LambdaLR", "MultiplicativeLR")
_OPTIMIZERS = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD",
               "LBFGS", "SparseAdam", "Lion", "Adafactor", "Adam8bit", "AdamW8bit", "PagedAdamW", "LAMB", "Lamb")
_LARGEST = 0.5
"""A rate above this is no rate of a gradient method: the optimizer holds a factor of its own."""
_SMALL = 0.02
"""A factor that never gets above this is no fraction of a full rate."""


def check(project: Project) -> Iterator[Finding]:
    """Look at what the functions of such schedulers return."""
    if not any("LambdaLR" in f.text or "MultiplicativeLR" in f.text for f in project.files):
        return
    look = lookup(project)
    for code in look.codes:
        for call in code.calls(*_SCHEDULERS):
            for other, body in _functions(look, code, argument(call, 1, "lr_lambda")):
                yield from _judged(look, code, call, other, body)


def _functions(look: Lookup, code: Syntax, given: ast.expr | None,
               left: int = 4) -> Iterator[tuple[Syntax, Body]]:  # fmt: skip
    """The functions that are given: by name, as a lambda, in a list, or made by a function of the project."""
    if given is None or left <= 0:
        return
    if isinstance(given, (ast.List, ast.Tuple)):
        for one in given.elts:
            yield from _functions(look, code, one, left - 1)
        return
    if isinstance(given, ast.Name) and not isinstance(code.assigned(given), (ast.Lambda, ast.Name, type(None))):
        given = code.assigned(given) or given
    if isinstance(given, (ast.List, ast.Tuple)):
        yield from _functions(look, code, ast.List(list(given.elts), ast.Load()), left - 1)
    elif not isinstance(given, ast.Call):
        found = look.function(code, given) or _called(look, code, given)
        if found is not None:
            yield found
    elif last_name(given.func) == "partial" and given.args:
        yield from _functions(look, code, given.args[0], left - 1)
    else:
        maker = look.function(code, given.func) or _method(look, last_name(given.func), "__call__")
        if maker is not None and getattr(maker[1], "name", "") == "__call__":
            yield maker
        elif maker is not None:
            for made in returned(maker[1]):
                inner = look.function(maker[0], made)
                if inner is not None and inner[1] is not maker[1]:
                    yield inner


def _called(look: Lookup, code: Syntax, given: ast.expr) -> tuple[Syntax, Body] | None:
    """`__call__` of an object that is given in place of a function."""
    _, made = look.origin(code, given)
    return _method(look, last_name(made.func), "__call__") if isinstance(made, ast.Call) else None


def _method(look: Lookup, kind: str, name: str) -> tuple[Syntax, Body] | None:
    owners = look.classes.get(kind, [])
    found = [(c, f) for c, k in owners for f in k.body if isinstance(f, ast.FunctionDef) and f.name == name]
    return found[0] if len(found) == 1 else None


def _judged(look: Lookup, code: Syntax, call: ast.Call, other: Syntax, body: Body) -> Iterator[Finding]:
    """A function that never gives more than a number of a rate's size: a formula, or choices among numbers."""
    rate = _base(_optimizer(look, code, argument(call, 0, "optimizer")))
    base, returns = look.number(*rate) if rate is not None else None, list(returned(body))
    if base is None or base > _SMALL or not returns:
        return
    tops = [_top(look, other, r, body) for r in returns]
    known = sampled_values(look, other, body) if None in tops else [t for t in tops if t is not None]
    top = max(known) if known else 0.0
    if 0 < top <= _SMALL:
        kind, place = last_name(call.func), max(returns, key=lambda r: _top(look, other, r, body) or 0.0)
        yield RULE.finding(
            f"{written(place)[:80]} at {other.at(place)} is never more than {top:g}, and {kind} multiplies the "
            "optimizer's "
            f"learning rate {base:g} with it, as if it were a factor: the rate is {top * base:.2g} at most",
            other.place(place), other.file.path, bearing=Bearing.CAUSE,
            measured={"kind": "numbers", "base": base, "top": top})


def _optimizer(look: Lookup, code: Syntax, given: ast.expr | None) -> tuple[Syntax, ast.Call] | None:
    """Where the optimizer is made: what is given, else the only one of the project."""
    if given is not None:
        at, made = look.origin(code, given)
        if isinstance(made, ast.Call) and last_name(made.func) in _OPTIMIZERS:
            return at, made
    found = [(c, made) for c in look.codes for made in c.calls(*_OPTIMIZERS) if "optim" in c.qualified(made.func)]
    return found[0] if len(found) == 1 else None


def _base(optimizer: tuple[Syntax, ast.Call] | None) -> tuple[Syntax, ast.expr] | None:
    """The optimizer's rate as it is written."""
    if optimizer is None:
        return None
    rate = argument(optimizer[1], 1, "lr")
    if rate is None:
        groups = argument(optimizer[1], 0, "params")
        found = [v for d in below(groups) if isinstance(d, ast.Dict) for k, v in zip(d.keys, d.values, strict=True)
                 if isinstance(k, ast.Constant) and k.value == "lr"] if groups is not None else []  # fmt: skip
        rate = found[0] if len(found) == 1 else None
    return (optimizer[0], rate) if rate is not None else None


def _top(look: Lookup, code: Syntax, node: ast.expr, body: Body) -> float | None:
    """The largest value of numbers, choices among them, and numbers times a power of a constant below 1."""
    if isinstance(node, ast.IfExp):
        tops = [_top(look, code, n, body) for n in (node.body, node.orelse)]
        return None if None in tops else max(t for t in tops if t is not None)
    if isinstance(node, ast.Name) and node.id in parameters(body):
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        one, two = _top(look, code, node.left, body), _top(look, code, node.right, body)
        return None if one is None or two is None else one * two
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base = look.number(code, node.left)
        return 1.0 if base is not None and 0 < base <= 1 else None
    return look.number(code, node)
