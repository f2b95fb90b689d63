"""Tests that ask whether gradients are finite, as values: `isfinite(norm)`, `not any(isnan(p.grad).any() ...)`."""

from __future__ import annotations

from dataclasses import replace

from traindx_tools.on_code.interpreter import Call, Interpreter
from traindx_tools.on_code.library import function
from traindx_tools.on_code.values import Bag, Operation, Parameters, Symbol, Tensor, Value, parts

FINITE, NONFINITE = "finite gradients", "nonfinite gradients"
OF_GRADIENTS = frozenset({"gradient", "gradient norm"})


def negated(value: Value) -> Value:
    """`not value`, where the program does not fix it."""
    if isinstance(value, Tensor) and value.tags & {FINITE, NONFINITE}:
        return _answer(FINITE not in value.tags)
    if isinstance(value, Operation) and value.depth < 12:
        return Operation("not", (value,), value.depth + 1)
    return Symbol("not", "not", value if isinstance(value, Symbol) else None)


def read_from_gradients(value: Value) -> bool:
    """Whether a value is a gradient, the norm of gradients, or a number that was read from one."""
    if isinstance(value, Tensor):
        return bool(value.tags & OF_GRADIENTS)
    return isinstance(value, Operation) and any(isinstance(p, Operation) and p.detail == "gradient"
                                                for p in parts(value))


def number_of(value: Tensor) -> Operation:
    """The number that `.item()` or `float()` reads."""
    detail = "gradient" if value.tags & OF_GRADIENTS else ""
    return Operation("item", (Symbol("number", str(value.site)),), detail=detail)


def kept(x: Tensor, name: str, result: Tensor) -> Tensor:
    """The result of a method that says the same of gradients as what it is called on."""
    if name in ("all", "any", "item", "bool", "cpu", "squeeze") and x.tags & {FINITE, NONFINITE}:
        return replace(result, tags=result.tags | (x.tags & {FINITE, NONFINITE}))
    if name in ("norm", "abs", "max", "sum", "square", "pow", "detach", "float", "sqrt") and x.tags & OF_GRADIENTS:
        return replace(result, tags=result.tags | {"gradient norm"})
    return result


@function("torch.isfinite", "torch.isnan", "torch.isinf", "math.isfinite", "math.isnan", "math.isinf", "numpy.isfinite",
          "numpy.isnan", "numpy.isinf")
def _asked(caller: Interpreter, call: Call) -> Value | None:
    return _answer(call.name.endswith("isfinite")) if read_from_gradients(call.first) else None


@function("builtins.any", "builtins.all", "builtins.bool")
def _whole(caller: Interpreter, call: Call) -> Value | None:
    """An answer for each of several gradients is one for all of them."""
    items = call.first.items if isinstance(call.first, Bag) else [call.first]
    answers = [i.tags & {FINITE, NONFINITE} for i in items if isinstance(i, Tensor)]
    return _answer(FINITE in answers[0]) if len(answers) == len(items) == 1 and answers[0] else None


@function("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.get_total_norm",
          "torch.nn.utils.clip_grad_value_")
def _norm(caller: Interpreter, call: Call) -> Value:
    """The norm; "of nothing" where the iterator over parameters was at its end before, or is after the first turn."""
    given, site, tags = call.first, call.site, frozenset({"gradient norm"})
    if isinstance(given, Parameters) and given.lazy:
        spent = given.spent or (site if len(caller.loops) > given.loops else None)
        site, tags = spent or site, tags | ({"of nothing"} if spent is not None else frozenset())
    return Tensor(grad=False, low=0.0, site=site, tags=tags)


def _answer(finite: bool) -> Tensor:
    return Tensor(grad=False, dtype="bool", low=0.0, high=1.0, tags=frozenset({FINITE if finite else NONFINITE}))
