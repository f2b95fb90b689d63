"""Which parameters a line writes: those of every layer that a loop or an initialiser comes by, or of one layer."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written

_LAYERS = ("modules", "named_modules", "children", "named_children")
_PARAMETERS = ("parameters", "named_parameters")
_DENSE = re.compile(r"\b(Linear|Bilinear|Conv(Transpose)?[123]d|RNN|LSTM|GRU|Dense)\b")
_OTHER = re.compile(r"Norm|Embedding")
_OPTIMIZERS = r"(?:SGD|Adam\w*|NAdam|RAdam|RMSprop|Adagrad|Adadelta|Lion|LBFGS|optimizer\w*)"
_AVERAGED = re.compile(r"ema|avg|average|target|swa|shadow|teacher|moment|accum|grad|delta|update", re.IGNORECASE)
_PLAIN_TESTS = re.compile(r"^(not )?[\w.]*(dim\(\)|ndim|requires_grad|ndimension\(\))( *[<>=!]+ *\d+)?$"
                          r"|^['\"]weight['\"] in \w+$|^\w+\.endswith\(['\"]\.?weight['\"]\)$")  # fmt: skip
_BIAS = re.compile(r"^['\"]bias['\"] in \w+$|^\w+\.endswith\(['\"]\.?bias['\"]\)$")


@dataclass(frozen=True)
class Every:
    """The weights (or biases) of all layers of the kinds named."""

    part: str
    """"weight" or "bias"."""
    of: str
    """What is run over: "self.modules()", "net.parameters()", or the initialiser's name."""


def every(code: Syntax, target: ast.expr) -> Every | None:
    """What a written parameter is one of; None where it is one layer's own, or where that is not certain."""
    names: list[str] = []
    head: ast.expr = target
    while isinstance(head, (ast.Attribute, ast.Call)):
        if isinstance(head, ast.Attribute):
            names.append(head.attr)
            head = head.value
        else:
            head = head.func
    parts = [n for n in reversed(names) if n not in ("data", "detach")]
    function = code.function(target)
    if not isinstance(head, ast.Name):
        return None
    tests = _tests(code, target)
    loop = _loop(code, target, head.id)
    called = _runs_over(loop) if loop is not None else None
    if called is not None and last_name(called.func) in _LAYERS:
        owner = _owner(called)
        return _of_layers(parts, tests, head.id, written(called)) if _is_model(code, called, owner) else None
    if called is not None and last_name(called.func) in _PARAMETERS and not parts:
        owner = _owner(called)
        if not _is_model(code, called, owner) or _is_averaged(code, owner):
            return None
        texts = [written(t) for t in tests]
        if any(_BIAS.match(t) for t in texts):
            return Every("bias", written(called))
        return Every("weight", written(called)) if all(_PLAIN_TESTS.match(t) for t in texts) else None
    if loop is None and isinstance(function, FunctionNode) and head.id in parameters(function):
        applied = any(written(argument(c, 0, "fn")).rpartition(".")[2] == function.name for c in code.calls("apply"))
        return _of_layers(parts, tests, head.id, function.name) if applied else None
    return None


def _of_layers(parts: list[str], tests: list[ast.expr], name: str, of: str) -> Every | None:
    if len(parts) != 1 or not re.match(r"(weight|bias)(_[ih]h_l\d)?$", parts[0]):
        return None
    kinds = [t for t in tests if name in written(t) and _DENSE.search(written(t)) and not _OTHER.search(written(t))]
    others = [t for t in tests if t not in kinds and not re.fullmatch(
        rf"(hasattr\({name}, ['\"](weight|bias)['\"]\)|{name}\.(weight|bias)( is not None)?)", written(t))]
    return Every("bias" if parts[0].startswith("bias") else "weight", of) if kinds and not others else None


def _tests(code: Syntax, node: ast.AST) -> list[ast.expr]:
    """The conditions under which a line runs, within its function; those it is the other branch of count as unknown."""
    found: list[ast.expr] = []
    below = node
    for up in code.above(node):
        if isinstance(up, FunctionNode):
            break
        if isinstance(up, ast.If):
            held = any(below is s for s in up.body)
            parts = up.test.values if isinstance(up.test, ast.BoolOp) and isinstance(up.test.op, ast.And) else [up.test]
            if held:
                found += parts
        below = up
    return found


def _loop(code: Syntax, node: ast.AST, name: str) -> ast.For | ast.AsyncFor | None:
    for loop in code.loops(node):
        if isinstance(loop, (ast.For, ast.AsyncFor)) and any(
                isinstance(n, ast.Name) and n.id == name for n in below(loop.target)):
            return loop
    return None


def _runs_over(loop: ast.For | ast.AsyncFor) -> ast.Call | None:
    over = loop.iter
    while isinstance(over, ast.Call) and last_name(over.func) in ("list", "tuple", "enumerate", "filter") and over.args:
        over = over.args[-1]
    return over if isinstance(over, ast.Call) else None


def _owner(call: ast.Call) -> str:
    return written(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_model(code: Syntax, node: ast.AST, owner: str) -> bool:
    """Whether this is a whole model: itself, in a class with layers, or what an optimizer is built over."""
    if owner == "self":
        body = code.owner(node)
        layers = [c for c in code.inside(body, ast.Call) if _DENSE.search(written(c.func))] if body is not None else []
        return len(layers) > 1
    plain = re.escape(owner)
    return bool(owner) and re.search(rf"{_OPTIMIZERS}\(\s*{plain}\.parameters\(", code.file.text) is not None


def _is_averaged(code: Syntax, owner: str) -> bool:
    """Whether the parameters are a running sum or average, that begins at zero and is added to."""
    plain = re.escape(owner)
    return _AVERAGED.search(owner) is not None or re.search(
        rf"zip\([^)]*{plain}\.parameters\(\)", code.file.text) is not None
