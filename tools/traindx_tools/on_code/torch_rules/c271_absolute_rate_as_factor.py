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

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Body, Lookup, lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.rate_power import key, power_of
from traindx_tools.on_code.sampled import values as sampled_values
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C271",
    name="absolute-rate-as-factor",
    title="A scheduler's function returns the learning rate, and not a factor",
    severity=Severity.HIGH,
    sees="A function for LambdaLR or MultiplicativeLR whose value holds the optimizer's learning rate as a factor, or "
         "never gives more than a number of that size.",
    matters="The rate is multiplied with itself: training is slower by its size, a thousand times and more.",
    alike=("an optimizer with a rate of 1.0, where factor and rate are one",
           "a rate divided by the base rate, which is a factor"),
    confirm=("print scheduler.get_last_lr() at the top of the schedule: it should be the optimizer's rate",),
)  # fmt: skip
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
    optimizer = _optimizer(look, code, argument(call, 0, "optimizer"))
    base = _base(optimizer)
    base_number = look.number(*base) if base is not None else None
    if base_number is not None and base_number > _LARGEST:
        return
    returns = list(returned(body))
    powers = [(r, power_of(look, other, r, body)) for r in returns]
    rates = [(r, p) for r, p in powers if p is not None and p.times == 1 and p.rates]
    for value, power in rates:
        names = {key(n) for _, n in power.rates}
        numbers = {n for at in power.rates if (n := look.number(*at)) is not None}
        if any(n > _LARGEST for n in numbers):
            return
        same = base is not None and (key(base[1]) in names or base_number in numbers)
        same = same or any("param_groups" in written(n) or "defaults" in written(n) for _, n in power.rates)
        known = base_number is not None and bool(numbers)
        whole = all(p is not None and p.times != 0 for _, p in powers)
        if same or (known and whole):
            yield _finding(code, call, other, value, sorted(names)[0], base, base_number, optimizer)
            return
    yield from _small(look, call, other, body, base_number, base, optimizer)


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


def _small(
    look: Lookup, call: ast.Call, other: Syntax, body: Body, base: float | None,
    rate: tuple[Syntax, ast.expr] | None, optimizer: tuple[Syntax, ast.Call] | None,
) -> Iterator[Finding]:  # fmt: skip
    """Numbers of a rate's size: `lambda epoch: 1e-3 if epoch < 10 else 1e-4`, or a formula that gives such."""
    returns = list(returned(body))
    if base is None or base > _SMALL or not returns:
        return
    kind = last_name(call.func)
    tops = [_top(look, other, r, body) for r in returns]
    sampled = sampled_values(look, other, body) if None in tops else [t for t in tops if t is not None]
    top = max(sampled) if sampled else 0.0
    if 0 < top <= _SMALL:
        place = max(returns, key=lambda r: _top(look, other, r, body) or 0.0)
        yield RULE.finding(
            f"{written(place)[:80]} at {other.at(place)} is never more than {top:g}, and "
            f"{kind} multiplies the optimizer's learning rate {base:g} with it, as if it were a factor: the rate is "
            f"{top * base:.2g} at most",
            other.place(place),
            other.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "numbers", "base": base, "top": top},
            patch=_factor_only(rate, optimizer) if kind == "LambdaLR" else (),
        )


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


def _finding(
    code: Syntax, call: ast.Call, other: Syntax, value: ast.expr, name: str, base: tuple[Syntax, ast.expr] | None,
    number: float | None, optimizer: tuple[Syntax, ast.Call] | None,
) -> Finding:  # fmt: skip
    kind = last_name(call.func)
    effect = f", {number * number:.2g} at most for {number:g}" if number is not None and kind == "LambdaLR" else ""
    rate = written(base[1]) if base is not None else "its own rate"
    return RULE.finding(
        f"{written(value)[:90]} at {other.at(value)} is a learning rate ({name}), and {kind} at {code.at(call)} "
        f"multiplies the optimizer's rate ({rate}) with it: the effective rate is the product of the two{effect}",
        other.place(value),
        other.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "rate", "scheduler": kind, "rate": name, "base": number if number is not None else ""},
        patch=_factor_only(base, optimizer) if kind == "LambdaLR" else (),
    )


def _factor_only(
    base: tuple[Syntax, ast.expr] | None, optimizer: tuple[Syntax, ast.Call] | None
) -> tuple[Patch, ...]:
    """A base rate of 1.0: the product is then what the function returns. Only where one optimizer has one rate."""
    if base is None or optimizer is None or argument(optimizer[1], 1, "lr") is not base[1]:
        return ()
    if any(isinstance(n, ast.Dict) for a in optimizer[1].args[:1] for n in below(a)):
        return ()
    return Change(base[0].file, "the function returns the rate: a base rate of 1.0").replace(base[1], "1.0").patches()
