"""Whether an expression is a column (N, 1) or a row (N,), as it is written: gather, keepdim, squeeze, max over an axis.

Sums and products with something unknown keep the form of the part that is known: whatever the other one is, the result
does not fit what has the other form.
"""

from __future__ import annotations

import ast
import re

from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor

COLUMN, ROW = "column", "row"
_KEEPS = frozenset({"float", "double", "detach", "clone", "to", "cuda", "cpu", "clamp", "contiguous", "relu", "tanh",
                    "requires_grad_", "stop_gradient", "type", "half", "exp", "log", "abs"})  # fmt: skip
_REDUCES = frozenset({"max", "min", "amax", "amin", "mean", "sum", "argmax", "argmin", "logsumexp"})
_PAIRED = frozenset({"max", "min"})
_SCALARS = re.compile(r"^(r|rs|rews?|rewards?|dones?|d|terminals?|terminated|returns?|batch_rewards?|reward_batch|"
                      r"b_rewards?|advantages?)(_batch|_b|_t)?$", re.IGNORECASE)  # fmt: skip
_TENSORS = frozenset({"tensor", "FloatTensor", "as_tensor", "array", "asarray", "Tensor"})
_DEEP = 14


def form(code: Syntax, node: ast.expr | None, made: dict[int, Event], left: int = _DEEP) -> tuple[str, bool] | None:
    """(COLUMN or ROW, whether a network's own axis makes it one and nobody wrote it); None where it is not known."""
    if node is None or left <= 0:
        return None
    if isinstance(node, ast.Name):
        value = code.assigned(node)
        if value is None or value is node:
            return None
        if _SCALARS.match(node.id) and _listed(code, value):
            return ROW, False
        return form(code, value, made, left - 1)
    if isinstance(node, ast.UnaryOp):
        return form(code, node.operand, made, left - 1)
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        a, b = form(code, node.left, made, left - 1), form(code, node.right, made, left - 1)
        return a if b is None else b if a is None or a[0] == b[0] else None
    if isinstance(node, ast.Subscript):
        return _part(code, node, made, left)
    if isinstance(node, ast.Attribute) and node.attr in ("values", "indices", "mT"):
        inner = node.value
        return _called(code, inner, made, left) if isinstance(inner, ast.Call) and node.attr != "mT" else None
    return _called(code, node, made, left) if isinstance(node, ast.Call) else None


def _listed(code: Syntax, value: ast.expr) -> bool:
    """A tensor of one number for each sample: `torch.tensor([b[2] for b in batch])`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _KEEPS:
        value = value.func.value
    if not isinstance(value, ast.Call) or last_name(value.func) not in _TENSORS or not value.args:
        return False
    data = value.args[0]
    return isinstance(data, ast.ListComp) and isinstance(data.elt, (ast.Subscript, ast.Attribute, ast.Name))


def _part(code: Syntax, node: ast.Subscript, made: dict[int, Event], left: int) -> tuple[str, bool] | None:
    text = written(node.slice)
    if text in ("(:, None)", ":, None", "(..., None)", "..., None") and form(code, node.value, made, left - 1) != (
            COLUMN, True):  # fmt: skip
        return COLUMN, False
    if text in ("(:, 0)", ":, 0", "(..., 0)", "(:, -1)", "(..., -1)"):
        inner = form(code, node.value, made, left - 1)
        return (ROW, False) if inner is not None and inner[0] == COLUMN else None
    call = node.value
    if text in ("0", "1") and isinstance(call, ast.Call) and last_name(call.func) in _PAIRED:
        return _called(code, call, made, left - 1)
    return None


def _called(code: Syntax, call: ast.Call, made: dict[int, Event], left: int) -> tuple[str, bool] | None:
    name, plain = last_name(call.func), bool(code.qualified(call.func))
    event = made.get(id(call))
    if event is not None and isinstance(event.result, Tensor) and event.method == "__call__":
        shape = event.result.shape
        single = shape is not None and shape.dims and shape.dims[-1] == 1 and "layer" in event.result.tags
        return (COLUMN, True) if single and shape is not None and (shape.rank in (None, 2)) else None
    if not isinstance(call.func, ast.Attribute):
        return None
    x = call.args[0] if plain and call.args else call.func.value
    rest = call.args[1:] if plain else call.args
    dims = [code.number(a) for a in rest]
    if name in _KEEPS:
        return form(code, x, made, left - 1)
    if name in ("gather", "take_along_axis"):
        index = argument(call, 2 if plain else 1, "index", "indices")
        found = form(code, index, made, left - 1)
        return None if found is None else (found[0], True)
    if name == "unsqueeze" and (dims[:1] or [code.number(argument(call, 9, "dim"))])[0] in (1.0, -1.0):
        return COLUMN, False
    if name in ("view", "reshape"):
        return (COLUMN, False) if dims[-2:] == [-1.0, 1.0] else (ROW, False) if dims == [-1.0] else None
    if name in ("flatten", "ravel") and not dims:
        return ROW, False
    if name == "squeeze":
        inner = form(code, x, made, left - 1)
        return (ROW, False) if inner is not None and inner[0] == COLUMN and dims[:1] != [0.0] else inner
    if name in _REDUCES:
        axis = (dims[:1] or [code.number(argument(call, 9, "dim", "axis"))])[0]
        keep = argument(call, 2 if plain else 1, "keepdim", "keepdims")
        if axis not in (1.0, -1.0) or form(code, x, made, left - 1) is not None:
            return None
        kept = isinstance(keep, ast.Constant) and keep.value is True
        scores = _of_network(code, x, made)
        return ((COLUMN, True) if kept else (ROW, False)) if scores else None
    return None


def _of_network(code: Syntax, x: ast.expr, made: dict[int, Event]) -> bool:
    """Whether a value is the output of a layer for a batch, (N, actions)."""
    event = made.get(id(code.origin(x)))
    result = event.result if event is not None else None
    if not isinstance(result, Tensor) or "layer" not in result.tags or result.shape is None:
        return False
    return result.shape.rank in (None, 2) and result.shape.dims[-1:] != (1,) and result.shape.dims[:1] != (1,)
