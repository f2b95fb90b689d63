"""How many axes a tensor of a network has, and which linear layer it comes out of, by what is written.

A recurrent layer, an attention layer, a convolution, a `view` with its sizes and a line that unpacks a shape say how
many axes there are; a linear layer, a normalisation or a dropout keeps them.
"""

from __future__ import annotations

import ast

from traindx_tools.on_code.axis_shapes import _named_sizes, _shape_of
from traindx_tools.on_code.syntax import Syntax, last_name

_DEEP = 12
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_OF_THREE = frozenset({"TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer", "MultiheadAttention",
                       "Conv1d", "Transformer"})  # fmt: skip
_KEEPS = frozenset({
    "Linear", "LayerNorm", "RMSNorm", "Dropout", "ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "ELU", "LeakyReLU",
    "Identity", "BatchNorm1d", "Mish", "Softplus",
})  # fmt: skip
_SAME = frozenset({
    "contiguous", "float", "to", "relu", "gelu", "silu", "tanh", "dropout", "transpose", "permute", "clone", "detach",
    "masked_fill", "swapaxes", "cat", "flip", "log_softmax", "softmax", "layer_norm", "cuda", "type_as",
})  # fmt: skip


def axis_count(code: Syntax, node: ast.expr, left: int = _DEEP) -> int | None:
    """The number of axes, None where nothing says it."""
    if left <= 0:
        return None
    if isinstance(node, ast.Name):
        said = _unpacked(code, node)
        made = code.assigned(node)
        if said is not None:
            return said
        return axis_count(code, made, left - 1) if made is not None and made is not node else None
    if isinstance(node, ast.Subscript):
        return _part(code, node, left)
    if isinstance(node, ast.BinOp):
        known = [n for side in (node.left, node.right) if (n := axis_count(code, side, left - 1)) is not None]
        return max(known) if known and not isinstance(node.op, ast.MatMult) else None
    return _of_call(code, node, left) if isinstance(node, ast.Call) else None


def last_layer(code: Syntax, node: ast.expr) -> ast.Call | None:
    """The `Linear(...)` whose output this is, as it is or through a dropout or a division."""
    for _ in range(5):
        node = code.origin(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
            node = node.left
            continue
        if not isinstance(node, ast.Call):
            return None
        made = _maker(code, node)
        if made is None:
            return None
        if last_name(made.func) == "Sequential" and made.args and isinstance(made.args[-1], ast.Call):
            made = made.args[-1]
        if last_name(made.func) == "Linear":
            return made
        if last_name(made.func) != "Dropout" or not node.args:
            return None
        node = node.args[0]
    return None


def _maker(code: Syntax, call: ast.Call) -> ast.Call | None:
    """The call that made the layer that is called."""
    made = call.func if isinstance(call.func, ast.Call) else code.assigned(call.func)
    return made if isinstance(made, ast.Call) else None


def _unpacked(code: Syntax, name: ast.Name) -> int | None:
    """`b, t, d = x.shape`, where x is this very value."""
    for assign in _named_sizes(code):
        source, target = _shape_of(assign.value), assign.targets[0]
        if not isinstance(source, ast.Name) or source.id != name.id or not isinstance(target, ast.Tuple):
            continue
        if code.function(assign) is not code.function(name) or any(isinstance(e, ast.Starred) for e in target.elts):
            continue
        if code.assigned(source) is code.assigned(name):
            return len(target.elts)
    return None


def _part(code: Syntax, node: ast.Subscript, left: int) -> int | None:
    held = node.value
    if isinstance(held, ast.Call) and isinstance(node.slice, ast.Constant) and node.slice.value == 0:
        if last_name(held.func) == "pad_packed_sequence":
            return 3
        made = _maker(code, held)
        if made is not None and last_name(made.func) in (*_RECURRENT, "MultiheadAttention"):
            return 3
    count = axis_count(code, held, left - 1)
    if count is None:
        return None
    for index in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
        if isinstance(index, ast.Constant) and index.value is None:
            count += 1
        elif isinstance(index, (ast.Slice,)) or (isinstance(index, ast.Constant) and index.value is Ellipsis):
            continue
        elif code.number(index) is not None:
            count -= 1
        else:
            return None
    return count


def _of_call(code: Syntax, node: ast.Call, left: int) -> int | None:
    name, plain = last_name(node.func), bool(code.qualified(node.func))
    made = _maker(code, node)
    given = node.args[0] if node.args else None
    if made is not None and not plain:
        return _of_layer(code, made, given, left)
    held = given if plain else getattr(node.func, "value", None)
    if not isinstance(held, ast.expr):
        return None
    if name in ("view", "reshape") and not plain:
        sizes = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], ast.Tuple) else node.args
        return len(sizes) if not any(isinstance(s, ast.Starred) for s in sizes) and len(sizes) > 1 else None
    if name == "cat" and isinstance(held, (ast.Tuple, ast.List)):
        known = [n for e in held.elts if (n := axis_count(code, e, left - 1)) is not None]
        return known[0] if known else None
    if name == "stack" and isinstance(held, (ast.Tuple, ast.List)) and held.elts:
        count = axis_count(code, held.elts[0], left - 1)
        return None if count is None else count + 1
    if name in ("unsqueeze", "flatten") and (name == "unsqueeze" or len(node.args) == 2 + plain):
        count = axis_count(code, held, left - 1)
        return None if count is None else count + (1 if name == "unsqueeze" else -1)
    return axis_count(code, held, left - 1) if name in _SAME else None


def _of_layer(code: Syntax, made: ast.Call, given: ast.expr | None, left: int) -> int | None:
    kind = last_name(made.func)
    if kind in _OF_THREE:
        return 3
    if kind == "Sequential":
        layers = [a for a in made.args if isinstance(a, ast.Call)]
        plain = len(layers) == len(made.args) > 0 and all(last_name(a.func) in _KEEPS for a in layers)
        return axis_count(code, given, left - 1) if plain and given is not None else None
    if kind == "Embedding" and given is not None:
        count = axis_count(code, given, left - 1)
        return None if count is None else count + 1
    return axis_count(code, given, left - 1) if kind in _KEEPS and given is not None else None


