"""What a loss is given (C102, C107, C114)."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.repairs.forms import operand
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import FunctionNode, last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing

_LOG_OF = {"softmax": "log_softmax", "sigmoid": "logsigmoid"}
_FLOOR = {"float16": "1e-7", "bfloat16": "1e-8"}


def layer_left_out(file: SourceFile, layer: Thing) -> tuple[Patch, ...]:
    """The squashing layer taken out of the end of the Sequential that it was made in."""
    code, node = syntax(file), layer.node
    sequential = code.parent(node)
    if (
        not isinstance(node, ast.Call)
        or not isinstance(sequential, ast.Call)
        or last_name(sequential.func) != "Sequential"
    ):
        return ()
    before = sequential.args[-2] if len(sequential.args) >= 2 else None
    if sequential.args[-1] is not node or before is None or sequential.keywords:
        return ()
    lines = range(before.end_lineno or 0, (node.end_lineno or 0) + 1)
    if len(lines) > 1 and any("#" in file.line(n) for n in lines):
        return ()
    change = Change(file, "hand the raw scores to the loss")
    gap = ast.copy_location(ast.Pass(), node)
    gap.lineno, gap.col_offset = before.end_lineno or 0, before.end_col_offset or 0
    gap.end_lineno, gap.end_col_offset = node.end_lineno or 0, node.end_col_offset or 0
    return change.replace(gap, "").patches()


def chained(file: SourceFile, node: ast.AST) -> bool:
    """Whether something is done to the value at once (`softmax(x).clamp(...)`), which was meant for it as it is."""
    return isinstance(syntax(file).parent(node), (ast.Attribute, ast.BinOp, ast.Subscript))


def helper_left_out(
    file: SourceFile,
    function: ast.AST,
    helper: ast.AST,
    home: SourceFile,
    squash: ast.AST,
) -> tuple[Patch, ...]:
    """What a helper squashes, written in place of the helper's call: `self(x)` for `self.predict_proba(x)`."""
    if not isinstance(helper, FunctionNode) or not isinstance(squash, ast.Call):
        return ()
    body = [s for s in helper.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    returned = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    inner = operand(syntax(home), squash)
    calls = [n for n in below(function) if isinstance(n, ast.Call) and last_name(n.func) == helper.name]
    if returned is not squash or inner is None or len(calls) != 1 or calls[0].keywords or chained(file, calls[0]):
        return ()
    names = [a.arg for a in helper.args.args]
    if names[:1] == ["self"] and not (
        isinstance(calls[0].func, ast.Attribute) and written(calls[0].func.value) == "self"
    ):
        return ()
    given = dict(zip([n for n in names if n != "self"], calls[0].args, strict=False))
    text = source_of(home, inner)
    for name, value in given.items():
        text = re.sub(rf"\b{re.escape(name)}\b", lambda _, v=value: source_of(file, v), text)  # type: ignore[misc]
    return Change(file, "hand the raw scores to the loss").replace(calls[0], text).patches()


def guarded_logs(logs: Sequence[tuple[Event, Tensor]]) -> tuple[Patch, ...]:
    """Probabilities kept above 0 inside logarithms of one line, or log_softmax where both stand in one expression."""
    logs = list({id(event.node): (event, value) for event, value in logs}.values())  # one call of several objects
    change = Change(logs[0][0].file, "keep the probability above 0 in the logarithm")
    for event, value in logs:
        _guard(change, event, value)
    return change.patches()


def _guard(change: Change, event: Event, value: Tensor) -> None:
    node, code = event.node, change.code
    inner = operand(code, node) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or inner is None:
        change.spoil()
        return
    floor = _FLOOR.get(value.dtype or "float32", "1e-8")
    if (fused := _fused(change.file, node, inner, value.kind)) is not None:
        change.replace(node, fused)
    elif event.name.startswith("jax."):
        owner = code.qualified(node.func) and isinstance(node.func, ast.Attribute)
        library = source_of(change.file, node.func.value) if owner and isinstance(node.func, ast.Attribute) else ""
        change.wrap(inner, f"{library}.maximum(", f", {floor})") if library else change.spoil()
    elif isinstance(inner, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        change.wrap(inner, "", f".clamp_min({floor})")
    elif isinstance(node.func, ast.Attribute) and inner is node.func.value:  # in parentheses already: (1 - p).log()
        change.insert(node.func.value.end_lineno or 0, (inner.end_col_offset or 0) + 1, f".clamp_min({floor})")
    else:
        change.wrap(inner, "(", f").clamp_min({floor})")


def _fused(file: SourceFile, node: ast.Call, inner: ast.expr, kind: str) -> str | None:
    """log(softmax(x)) as log_softmax(x)."""
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute) or last_name(node.func) != "log":
        return None
    name, owner = inner.func.attr, source_of(file, inner.func.value)
    if name != kind or name not in _LOG_OF or (name == "sigmoid" and owner not in ("F", "nn.functional")):
        return None
    return owner + "." + _LOG_OF[name] + source_of(file, inner)[len(owner) + 1 + len(name) :]


def without_gradients(file: SourceFile, function: ast.AST | None) -> tuple[Patch, ...]:
    """torch.no_grad() over a whole function that evaluates (C105)."""
    code = syntax(file)
    if not isinstance(function, FunctionNode) or function.decorator_list or code.aliases.get("torch") != "torch":
        return ()
    yields: tuple[type[ast.expr], ...] = (ast.Yield, ast.YieldFrom)
    if any(code.inside(function, kind) for kind in yields):
        return ()
    return Change(file, "evaluate without autograd").before(function, "@torch.no_grad()").patches()


def without_last_axis(event: Event, place: int) -> tuple[Patch, ...]:
    """`pred.squeeze(-1)` for predictions of shape (N, 1)."""
    node = event.node
    sides = node.args if isinstance(node, ast.Call) else [node.left, node.right] if isinstance(node, ast.BinOp) else []
    if place >= len(sides):
        return ()
    plain = isinstance(sides[place], (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    change = Change(event.file, "give predictions the shape of the targets, (N,)")
    return change.wrap(sides[place], "" if plain else "(", ".squeeze(-1)" if plain else ").squeeze(-1)").patches()
