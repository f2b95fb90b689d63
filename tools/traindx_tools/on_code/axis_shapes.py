"""Shapes as products of named sizes, from what a function writes: `b, t, c = x.shape` names the axes of x.

Unlike the evaluator's shapes they need no numbers: an axis is known by the tensor and place that its size was read
from, and is followed through transpositions, layers, matrix products and einsum.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written

Sizes = dict[str, int]
"""A product of names with their powers; numbers stand under "#7"."""
OPEN = "open@"
"""How the size begins that a reshape leaves open and that nothing settles; it may be 1."""
_DEEP = 12
_SAME = frozenset({
    "contiguous", "float", "half", "double", "bfloat16", "to", "type_as", "detach", "clone", "relu", "gelu", "silu",
    "tanh", "sigmoid", "softmax", "log_softmax", "dropout", "cuda", "cpu", "astype", "masked_fill", "masked_fill_",
    "leaky_relu", "elu", "normalize", "requires_grad_", "mul", "div", "type", "clamp", "abs", "exp", "log", "sqrt",
    "swish", "where_not", "copy", "numpy", "ascontiguousarray", "asarray", "layer_norm", "checkpoint_name",
})  # fmt: skip
_SAME_LAYERS = frozenset({
    "LayerNorm", "RMSNorm", "Dropout", "ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "ELU", "LeakyReLU", "Identity",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "Softmax", "Mish",
})  # fmt: skip
_CONVOLUTIONS = {"Conv1d": 1, "Conv2d": 2, "Conv3d": 3}


@dataclass(frozen=True)
class Axes:
    """The axes of a tensor, from the first; `complete` where there are no more."""

    sizes: tuple[Sizes, ...]
    complete: bool = True


def axes(code: Syntax, node: ast.expr, left: int = _DEEP) -> Axes | None:
    """The axes of an expression; None where they are not known."""
    if left <= 0:
        return None
    if isinstance(node, ast.Name):
        made = _each(code, node) or reaching(code, node)
        read = _unpacked(code, node, made)
        if read is not None:
            return read
        if isinstance(made, ast.expr):
            return axes(code, made, left - 1)
        return None if made is None else Axes(tuple({f"{made}.{i}": 1} for i in range(6)), complete=False)
    if isinstance(node, ast.Subscript):
        return _part(code, node, left - 1)
    if isinstance(node, ast.BinOp):
        return _combined(code, node, left - 1)
    return _called(code, node, left - 1) if isinstance(node, ast.Call) else None


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a lambda or comprehension gives the name a meaning of its own."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return any(name in names_in(over.target) for over in node.generators)
    return isinstance(node, ast.Lambda) and name in parameters(node)


def _each(code: Syntax, name: ast.Name) -> ast.expr | None:
    """What each of several names becomes in one line: `q, k, v = (x.view(b, t, h, -1) for x in (q, k, v))`."""
    function, last = code.function(name), None
    for assign in _of_several(code):
        names = [e.id for e in assign.targets[0].elts if isinstance(e, ast.Name)]  # type: ignore[attr-defined]
        if name.id in names and code.function(assign) is function and assign.lineno < name.lineno:
            last = assign
    if last is None or code.parent(last) is not function or any(
            s.lineno > last.lineno and s.lineno < name.lineno for s, _ in code.bindings(name)):  # fmt: skip
        return None
    return last.value.elt if isinstance(last.value, (ast.GeneratorExp, ast.ListComp)) else None


def _of_several(code: Syntax) -> list[ast.Assign]:
    """The lines of a file that bind several names at once, found once."""
    known: list[ast.Assign] | None = code.file.__dict__.get("_of_several")
    if known is None:
        known = [a for a in code.of(ast.Assign) if isinstance(a.targets[0], ast.Tuple)]
        if not any(isinstance(a.value, (ast.GeneratorExp, ast.ListComp)) for a in known):
            known = []
        code.file.__dict__["_of_several"] = known
    return known


def reaching(code: Syntax, name: ast.Name) -> ast.expr | str | None:
    """The value that certainly reaches a name; a text for what comes from outside (a parameter); None if unsure."""
    here = code.statement(name)
    function = code.function(name)
    if here is None:
        return None
    bound = [(s, v) for s, v in code.bindings(name) if code.function(s) is function]
    if any(_binds(n, name.id) for n in code.above(name)):
        return None
    around = {id(a) for a in code.above(here)}
    earlier = [(s, v) for s, v in bound if s is not here and s.lineno < here.lineno and not code.apart(s, here)]
    if not earlier:
        outside = isinstance(function, FunctionNode) and name.id in parameters(function)
        return f"{name.id}@{id(function)}" if outside or not bound else None
    statement, value = earlier[-1]
    if id(code.parent(statement)) not in around:
        return None
    return value


def _unpacked(code: Syntax, name: ast.Name, made: ast.expr | str | None) -> Axes | None:
    """The axes by the line that reads them all: `b, t, c = x.shape`."""
    here = code.statement(name)
    if here is None or made is None:
        return None
    for assign in _named_sizes(code):
        source = _shape_of(assign.value)
        target = assign.targets[0]
        if not isinstance(source, ast.Name) or source.id != name.id or not isinstance(target, ast.Tuple):
            continue
        if code.function(assign) is not code.function(name) or any(isinstance(e, ast.Starred) for e in target.elts):
            continue
        if reaching(code, source) is made or reaching(code, source) == made:
            known = axes(code, made, 4) if isinstance(made, ast.expr) else None
            if known is not None and len(known.sizes) == len(target.elts):
                return known
            tag = made if isinstance(made, str) else f"{name.id}@{made.lineno}:{made.col_offset}"
            return Axes(tuple({f"{tag}.{i}": 1} for i in range(len(target.elts))))
    return None


def _named_sizes(code: Syntax) -> list[ast.Assign]:
    """The lines of a file that unpack a shape, found once."""
    known: list[ast.Assign] | None = code.file.__dict__.get("_named_sizes")
    if known is None:
        known = [a for a in code.of(ast.Assign) if isinstance(a.targets[0], ast.Tuple)
                 and _shape_of(a.value) is not None]  # fmt: skip
        code.file.__dict__["_named_sizes"] = known
    return known


def _shape_of(node: ast.expr) -> ast.expr | None:
    """The tensor of `x.shape`, `x.size()` and `np.shape(x)`."""
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
        if node.func.attr == "size" and not node.args:
            return node.func.value
        if node.func.attr == "shape" and len(node.args) == 1:
            return node.args[0]
    return None


def size(code: Syntax, node: ast.expr, left: int = _DEEP) -> Sizes | None:
    """The size that an expression is, as a product of names and numbers; None where it is none (a sum, say)."""
    if left <= 0:
        return None
    if isinstance(node, ast.Constant):
        number = node.value
        good = isinstance(number, int) and not isinstance(number, bool) and number > 0
        return ({} if number == 1 else {f"#{number!r}": 1}) if good else None
    if isinstance(node, ast.BinOp):
        a, b = size(code, node.left, left - 1), size(code, node.right, left - 1)
        if a is None or b is None:
            return None
        if isinstance(node.op, ast.Mult):
            return times(a, b)
        if isinstance(node.op, (ast.FloorDiv, ast.Div)):
            return times(a, b, -1)
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and isinstance(node.right.value, int):
            return {k: v * node.right.value for k, v in a.items()}
        return None
    if isinstance(node, ast.Call):
        if last_name(node.func) == "int" and len(node.args) == 1:
            return size(code, node.args[0], left - 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1:
            return _axis(code, node.func.value, node.args[0], left)
        if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
            return _axis(code, node.args[0], ast.Constant(0), left)
        return None
    if isinstance(node, ast.Subscript):
        tensor = _shape_of(node.value)
        return None if tensor is None else _axis(code, tensor, node.slice, left)
    if isinstance(node, ast.Name):
        made = reaching(code, node)
        if isinstance(made, ast.expr):
            tensor = _shape_of(made.value) if isinstance(made, ast.Subscript) else None
            inner = size(code, made, left - 1) if tensor is not None or not isinstance(made, ast.Subscript) else None
            return inner if inner is not None else {f"{node.id}@{made.lineno}:{made.col_offset}": 1}
        return None if made is None else {made: 1}
    if isinstance(node, ast.Attribute):
        given = code.assigned(node) if written(node.value) == "self" else None
        inner = size(code, given, left - 1) if given is not None else None
        return inner if inner is not None else {written(node): 1}
    return None


def times(a: Sizes, b: Sizes, power: int = 1) -> Sizes:
    """a * b ** power."""
    made = {k: a.get(k, 0) + power * b.get(k, 0) for k in {*a, *b}}
    return {k: v for k, v in made.items() if v}


def _axis(code: Syntax, tensor: ast.expr, place: ast.expr, left: int) -> Sizes | None:
    number = _whole(place)
    known = axes(code, tensor, left - 1)
    if number is None or known is None:
        return None
    if number < 0:
        return known.sizes[number] if known.complete and len(known.sizes) >= -number else None
    return known.sizes[number] if number < len(known.sizes) else None


def _whole(node: ast.expr | None) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _whole(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _combined(code: Syntax, node: ast.BinOp, left: int) -> Axes | None:
    a, b = axes(code, node.left, left), axes(code, node.right, left)
    if isinstance(node.op, ast.MatMult):
        return _product(a, b)
    if _scalar(node.right) or a == b:
        return a
    return b if _scalar(node.left) else None


def _scalar(node: ast.expr) -> bool:
    """A constant, a root, a scale that is kept on self: what stretches a tensor and leaves its axes."""
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("sqrt", "rsqrt", "float")
    if isinstance(node, ast.Attribute):
        return "scal" in node.attr or "temperature" in node.attr
    return isinstance(node, ast.Constant) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow))


def _product(a: Axes | None, b: Axes | None) -> Axes | None:
    if a is None or b is None or not a.complete or not b.complete or len(a.sizes) != len(b.sizes) or len(a.sizes) < 3:
        return None
    return Axes((*a.sizes[:-1], b.sizes[-1]))


def _part(code: Syntax, node: ast.Subscript, left: int) -> Axes | None:
    """One of several equal parts along an axis: `q, k, v = qkv.chunk(3, dim=-1)`."""
    call = node.value
    if not isinstance(call, ast.Call) or last_name(call.func) not in ("chunk", "split", "split_with_sizes"):
        return None
    plain = bool(code.qualified(call.func))
    whole = call.args[0] if plain and call.args else getattr(call.func, "value", None)
    known = axes(code, whole, left) if isinstance(whole, ast.expr) else None
    place = _whole(argument(call, 2 if plain else 1, "dim", "axis"))
    amount = argument(call, 1 if plain else 0, "chunks", "split_size", "split_size_or_sections")
    if known is None or not known.complete or place is None or amount is None:
        return None
    each = size(code, amount)
    if last_name(call.func) == "chunk" and each is not None:
        each = times(known.sizes[place], each, -1)
    sizes = list(known.sizes)
    sizes[place] = each if each is not None else {f"part@{call.lineno}": 1}
    return Axes(tuple(sizes))


def _called(code: Syntax, call: ast.Call, left: int) -> Axes | None:
    name = last_name(call.func)
    qualified = code.qualified(call.func)
    layer = code.origin(call.func) if not qualified and isinstance(call.func, (ast.Attribute, ast.Name)) else None
    if isinstance(layer, ast.Call) and call.args:
        before = axes(code, call.args[0], left)
        return None if before is None else _through(code, layer, before, call)
    whole = call.args[0] if qualified and call.args else getattr(call.func, "value", None)
    if name == "einsum":
        return _einsum(code, call, left)
    if name in ("matmul", "bmm") and len(call.args) == (2 if qualified else 1) and isinstance(whole, ast.expr):
        return _product(axes(code, whole, left), axes(code, call.args[-1], left))
    if not isinstance(whole, ast.expr):
        return None
    rest = call.args[1:] if qualified else call.args
    if name in _SAME:
        return axes(code, whole, left)
    if name == "scaled_dot_product_attention" and len(call.args) > 2:
        query, value = axes(code, whole, left), axes(code, call.args[2], left)
        return _product(query, value)
    if name in ("view", "reshape"):
        return reshaped(code, call, axes(code, whole, left))
    known = axes(code, whole, left)
    return None if known is None or call.keywords else _moved(code, name, known, rest)


def _moved(code: Syntax, name: str, known: Axes, rest: list[ast.expr]) -> Axes | None:
    if len(rest) == 1 and isinstance(rest[0], (ast.Tuple, ast.List)):
        rest = rest[0].elts
    places = [_whole(a) for a in rest]
    count = len(known.sizes)
    if not all(p is not None and -count <= p < count and (known.complete or p >= 0) for p in places):
        return None
    order = [p % count for p in places if p is not None]
    if name in ("permute", "transpose") and sorted(order) == list(range(len(order))) and len(order) > 2:
        return Axes(tuple(known.sizes[p] for p in order))
    if name in ("transpose", "swapaxes") and len(order) == 2:
        sizes = list(known.sizes)
        sizes[order[0]], sizes[order[1]] = sizes[order[1]], sizes[order[0]]
        return Axes(tuple(sizes), known.complete)
    if name == "flatten" and known.complete and len(order) in (1, 2):
        first, last = order[0], order[1] if len(order) == 2 else count - 1
        return Axes((*known.sizes[:first], product(known.sizes[first : last + 1]), *known.sizes[last + 1 :]))
    return None


def product(sizes: tuple[Sizes, ...] | list[Sizes]) -> Sizes:
    """The product of several sizes."""
    made: Sizes = {}
    for each in sizes:
        made = times(made, each)
    return made


def _through(code: Syntax, layer: ast.Call, before: Axes, call: ast.Call) -> Axes | None:
    """What a layer makes of the axes."""
    name = last_name(layer.func)
    if name in _SAME_LAYERS:
        return before
    if name == "Linear" and before.complete:
        features = argument(layer, 1, "out_features")
        made = size(code, features) if features is not None else None
        return Axes((*before.sizes[:-1], made if made is not None else {f"out@{layer.lineno}": 1}))
    if name in _CONVOLUTIONS:
        channels = argument(layer, 1, "out_channels")
        made = size(code, channels) if channels is not None else None
        if made is None or not before.sizes:
            return None
        extent: Iterator[Sizes] = ({f"extent{i}@{call.lineno}": 1} for i in range(_CONVOLUTIONS[name]))
        return Axes((before.sizes[0], made, *extent))
    return None


def _einsum(code: Syntax, call: ast.Call, left: int) -> Axes | None:
    form = call.args[0] if call.args else None
    text = form.value if isinstance(form, ast.Constant) else None
    if not isinstance(text, str) or "->" not in text or "." in text:
        return None
    given, made = text.replace(" ", "").split("->")
    known: dict[str, Sizes] = {}
    for letters, part in zip(given.split(","), call.args[1:], strict=False):
        shape = axes(code, part, left)
        if shape is not None and len(shape.sizes) == len(letters):
            known |= dict(zip(letters, shape.sizes, strict=True))
    return Axes(tuple(known[c] for c in made)) if all(c in known for c in made) else None


def asked(code: Syntax, call: ast.Call) -> list[ast.expr]:
    """The sizes that a view or reshape is given; empty where they are not written one by one."""
    given = call.args[1:] if code.qualified(call.func) else call.args
    if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
        given = given[0].elts
    return [] if any(isinstance(a, ast.Starred) for a in given) else list(given)


def reshaped(code: Syntax, call: ast.Call, before: Axes | None) -> Axes | None:
    """The axes after a view or reshape, the one that is left open (-1) computed where the others allow it."""
    given = asked(code, call)
    sizes = [None if _whole(a) == -1 else size(code, a) for a in given]
    opened = [i for i, a in enumerate(given) if _whole(a) == -1]
    if not given or len(opened) > 1 or any(s is None for i, s in enumerate(sizes) if i not in opened):
        return None
    if opened:
        rest = product([s for s in sizes if s is not None])
        whole = times(product(before.sizes), rest, -1) if before is not None and before.complete else None
        sizes[opened[0]] = whole if whole is not None else {f"{OPEN}{call.lineno}:{call.col_offset}": 1}
    return Axes(tuple(s for s in sizes if s is not None))
