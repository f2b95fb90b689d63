"""Bounds to which gradients are clipped: as a call of torch, optax, a trainer's option, or written by hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, written

NORM_BOUND = 1e-5
"""A total norm at or below this: a step of plain SGD is this times the rate, and of a million parameters each gradient
is below the 1e-8 that Adam adds to its denominator."""
VALUE_BOUND = 1e-6
"""A bound of each element with plain SGD: a step at a rate of 0.1 is 1e-7, the resolution of float32 near 1."""
ADAPTIVE_VALUE_BOUND = 1e-8
"""A bound of each element with Adam: its epsilon, so that the update is half of its usual size at most."""
_NORMS = {"clip_grad_norm_": (1, "max_norm"), "clip_grad_norm": (1, "max_norm"),
          "clip_by_global_norm": (0, "max_norm"), "adaptive_grad_clip": (0, "clipping")}  # fmt: skip
_VALUES = {"clip_grad_value_": (1, "clip_value"), "clip_grad_value": (1, "clip_value")}
_OPTIONS = {"Trainer": "gradient_clip_val", "TrainingArguments": "max_grad_norm", "SFTConfig": "max_grad_norm",
            "Seq2SeqTrainingArguments": "max_grad_norm", "clip_gradients": "gradient_clip_val|max_norm|clip_val",
            "PPO": "max_grad_norm", "GRPOConfig": "max_grad_norm", "DPOConfig": "max_grad_norm"}  # fmt: skip
_SGD = re.compile(r"\bSGD\(|optax\.sgd\(")


@dataclass(frozen=True)
class Bound:
    """A bound near 0: the call, the expression of the bound, its number, what is bounded: "norm" or "value"."""

    call: ast.Call
    node: ast.expr
    value: float
    kind: str
    certain: bool


def tiny_bounds(code: Syntax) -> Iterator[Bound]:
    """Bounds that leave gradients without effect, from the top of the file down."""
    adaptive = not code.file.mentions(_SGD)
    for call, node, kind in _bounds(code):
        value = code.number(node)
        if value is None or value < 0 or (value == 0 and not _unguarded_zero(code, call, node)):
            continue
        most = NORM_BOUND if kind == "norm" else VALUE_BOUND
        if value <= most:
            sure = kind == "norm" or not adaptive or value <= ADAPTIVE_VALUE_BOUND
            yield Bound(call, node, value, kind, sure and _fixed(code, node))


def _bounds(code: Syntax) -> Iterator[tuple[ast.Call, ast.expr, str]]:
    for table, kind in ((_NORMS, "norm"), (_VALUES, "value")):
        for call in code.calls(*table):
            position, name = table[last_name(call.func)]
            node = argument(call, position, name)
            if node is not None:
                yield call, node, kind
    for call in code.calls(*_OPTIONS):
        node = argument(call, 99, *_OPTIONS[last_name(call.func)].split("|"))
        if node is not None and code.number(node) != 0:  # 0 switches it off
            yield call, node, "value" if _by_value(call) else "norm"
    for call in code.calls("clip"):
        node = argument(call, 0, "max_delta")
        if code.qualified(call.func) == "optax.clip" and node is not None:
            yield call, node, "value"
    yield from _by_hand(code)


def _by_value(call: ast.Call) -> bool:
    how = argument(call, 99, "gradient_clip_algorithm")
    return (isinstance(how, ast.Constant) and how.value == "value") or argument(call, 99, "clip_val") is not None


def _by_hand(code: Syntax) -> Iterator[tuple[ast.Call, ast.expr, str]]:
    """`p.grad.clamp_(-c, c)`, `p.grad.data.clamp_(min=-c, max=c)`, a hook that returns `g.clamp(-c, c)`."""
    for call in code.calls("clamp_", "clamp", "clip_", "clip"):
        plain = code.qualified(call.func) in ("torch.clamp", "torch.clip")
        owner = argument(call, 0, "input") if plain else getattr(call.func, "value", None)
        low, high = argument(call, 1 if plain else 0, "min"), argument(call, 2 if plain else 1, "max")
        if owner is None or low is None or high is None:
            continue
        a, b = code.number(low), code.number(high)
        if a is None or b is None or a != -b:
            continue
        in_place = last_name(call.func).endswith("_") and re.search(r"\.grad(\.data)?$", written(owner))
        if in_place or _in_hook(code, call, owner):
            yield call, high, "value"


def _in_hook(code: Syntax, call: ast.Call, owner: ast.expr) -> bool:
    """Whether it is what a hook of a parameter's gradient returns."""
    up = code.parent(call)
    if not isinstance(up, ast.Lambda) or not isinstance(owner, ast.Name):
        return False
    hook = code.parent(up)
    return isinstance(hook, ast.Call) and last_name(hook.func) == "register_hook" and \
        owner.id in {a.arg for a in up.args.args}  # fmt: skip


def _unguarded_zero(code: Syntax, call: ast.Call, node: ast.expr) -> bool:
    """A bound of 0 where no condition asks for it: `if clip > 0:` means that 0 switches clipping off."""
    for up in code.above(call):
        if isinstance(up, (ast.If, ast.IfExp)):
            return False
        if isinstance(up, FunctionNode):
            break
    return isinstance(node, ast.Constant)


def _fixed(code: Syntax, node: ast.expr) -> bool:
    """Whether the number stands in the code, and is no default that a caller or a command line may change."""
    made = code.origin(node)
    names = [n for n in below(made) if isinstance(n, (ast.Name, ast.Attribute))]
    return not names
