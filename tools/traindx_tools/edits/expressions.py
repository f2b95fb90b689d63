"""Where what a loss, an operation or a layer is given becomes another one."""

from __future__ import annotations

import ast
from typing import Any

from traindx_tools.edits.place import Place, call_of, owner_of, target_of
from traindx_tools.edits.source_edit import names_of, source_of, sure
from traindx_tools.on_code.binding import mixed_in
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import argument, last_name, parameters, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing

_HARMLESS = {"0.0": {"exp", "expm1", "log1p", "arccos", "arcsin", "acos", "asin", "arctanh", "atanh"},
             "1.0": {"log", "log2", "log10", "sqrt", "rsqrt", "power", "pow", "reciprocal"}}  # fmt: skip
"""Arguments, and the functions that are finite there with their derivatives."""
_EPSILONS = {"float16": "1e-3", "bfloat16": "1e-2", "float32": "1e-6"}
"""What 1 - eps and log resolve, with room: a few spacings below 1 (2**-11, 2**-8, 2**-24)."""
_OPPOSITE: dict[type[ast.cmpop], str] = {ast.NotEq: "==", ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}


def node(p: Place) -> Any:
    """What happens."""
    return p.node


def receiver(p: Place) -> Any:
    """What it is called on."""
    return owner_of(p.call)


def _operand(event: Event, call: Any) -> ast.expr:
    """What a function of one array is applied to: x of f(x), of library.f(x) and of x.f()."""
    if isinstance(call_of(call).func, ast.Attribute) and not syntax(event.file).qualified(call.func):
        return owner_of(call)
    sure(call.args and not isinstance(call.args[0], ast.Starred))
    return call.args[0]  # type: ignore[no-any-return]


def _wants_logarithms(p: Place) -> bool:
    return p.text == "softmax" and p.event.method in ("kl_div", "nll_loss")


def softmax(p: Place) -> Any:
    """softmax before a loss that wants log-probabilities."""
    p.file = p.target.file
    sure(_wants_logarithms(p) and last_name(p.target.call.func) == "softmax")
    return p.target.call.func


def _squashing(p: Place) -> Event:
    """What squashes scores for a loss: no helper that others may call too."""
    squash, around = p.target.event, p.event.function
    p.file, helper = squash.file, squash.function
    sure(helper is None or around in (None, helper) or helper.name in ("forward", "__call__"))
    sure(not _wants_logarithms(p))
    return squash


def squashing_call(p: Place) -> Any:
    """The call that squashes, and its input; nothing else is done to its output, which was meant as it is."""
    squash, call = _squashing(p), p.target.call
    own, made = squash.method == "__call__", p.code.origin(call.func)
    sure(not own or (len(call.args) == 1 and made is getattr(squash.receiver, "node", made)))
    up = p.code.parent(call)
    sure(not isinstance(up, (ast.Attribute, ast.BinOp, ast.Subscript)))
    if squash.function is None and not isinstance(up, ast.Call):  # in a script: is it for the loss alone?
        name = target_of(up)
        sure(isinstance(name, ast.Name) and len(p.code.bindings(name)) == 1)
        uses = [last_name(p.code.parent(n)) for n in p.code.reads(p.file.tree, name.id)]
        sure(len(uses) - uses.count("argmax") == 1)
    return call, p.source(call.args[0] if own else _operand(squash, call))


def last_layer(p: Place) -> Any:
    """The squashing layer at the end of the Sequential that made the value, from the end of the layer before it."""
    layer: Any = _squashing(p).receiver
    sure(isinstance(layer, Thing) and layer.site.path == p.file.path)
    made = call_of(p.code.parent(layer.node))
    sure(last_name(made.func) == "Sequential" and not made.keywords and len(made.args) > 1)
    before: Any = made.args[-2]
    sure(made.args[-1] is layer.node)
    gap = ast.copy_location(ast.Pass(), layer.node)
    gap.lineno, gap.col_offset = before.end_lineno, before.end_col_offset
    return gap, ""


def loss_or_its_layer(p: Place) -> Any:
    """The call of a loss, or where its layer is made."""
    layer = p.event.receiver if isinstance(p.event.receiver, Thing) else p.event
    sure(layer is p.event or layer.site.path == p.file.path)
    return layer.node


def two_arguments(p: Place) -> Any:
    """Two arguments of a loss, each for the other's place."""
    given = [argument(p.call, place, name) for place, name in enumerate(p.text.split())]
    sure(all(given))
    return [(n, p.source(other)) for n, other in zip(given, reversed(given), strict=True)]


def predictions(p: Place) -> Any:
    """The side of a loss that has one axis more than the targets."""
    sides = p.node.args if isinstance(p.node, ast.Call) else [p.node.left, p.node.right] if isinstance(
        p.node, ast.BinOp) else []
    sure(p.rest[0] < len(sides))
    return sides[p.rest[0]]


def kept_values(p: Place) -> Any:
    """What is kept, as it is written: an argument, what is added, what is mixed in; of a tuple what has a graph."""
    kept, one = p.event, p.node
    value: Any = one.args[-1] if isinstance(one, ast.Call) and one.args else getattr(one, "value", None)
    if isinstance(one, ast.Assign) and kept.kind == "blended":
        value = next(reversed(mixed_in(one)), None)
        given = parameters(kept.function.node) if kept.function is not None else ()
        sure(not isinstance(value, ast.Name) or value.id not in given)  # a caller may pass in numbers
    elif isinstance(one, ast.Assign):
        sure(isinstance(value, ast.BinOp))
        value = value.right if written(value.left) == written(one.targets[0]) else value.left
    parts = [value.elts[i] for i in map(int, p.text.split())] if isinstance(value, ast.Tuple) else [value]
    sure(parts and all(isinstance(v, (ast.Name, ast.Attribute, ast.Subscript)) for v in parts))
    return parts


def thrown_state(p: Place) -> Any:
    """The name that a new state is thrown to, and that of the old one."""
    lost = p.origin
    p.file = lost.code.file
    sure(p.text == "state" and isinstance(lost.target, ast.Name) and isinstance(lost.state, ast.Name))
    return lost.target, lost.state.id


def unbound_result(p: Place) -> Any:
    """A call as a statement, and the name that went in."""
    call, p.file = p.origin.call, p.origin.code.file
    old: Any = next(iter(call.args), None) if last_name(call.func) == "apply_updates" else owner_of(call)
    while p.text == "array" and isinstance(old, (ast.Attribute, ast.Subscript)):
        old = old.value  # x of x.at[0].set(1)
    sure(p.text in ("array", "parameters") and isinstance(p.code.parent(call), ast.Expr) and isinstance(old, ast.Name))
    p.names["name"] = old.id
    return call


def number(p: Place) -> Any:
    """The one number that is written in a call."""
    numbers = [k.value for k in p.call.keywords if k.arg == p.act.name] or [
        a for a in (*p.call.args, *(k.value for k in p.call.keywords)) if p.code.number(a) is not None]
    sure(len(numbers) == 1 and isinstance(numbers[0], (ast.Constant, ast.UnaryOp)))
    return numbers[0]


def in_logarithms(p: Place) -> Any:
    """What stands in the logarithms of one line, each once."""
    p.file = p.origin[0][0].file
    return list({id(event.node): _guarded(event, value) for event, value in p.origin}.values())


def _guarded(event: Event, value: Tensor) -> tuple[Any, str]:
    inner, floor = _operand(event, event.node), "1e-7" if value.dtype == "float16" else "1e-8"
    if not event.name.startswith("jax."):
        return inner, f"<>.clamp_min({floor})"
    sure(syntax(event.file).qualified(call_of(event.node).func))
    return inner, f"{written(owner_of(call_of(event.node)))}.maximum(<>, {floor})"


def epsilon(p: Place) -> Any:
    """The one number of a clamp that is too small: in the call, or of a name that is bound once."""
    value, clamp = p.rest
    p.file, top = clamp.file, clamp.file.tree
    dtype = value.dtype or ("" if p.event.name.startswith("numpy.") else "float32")
    names = [n.id for n in below(top) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    asked = {n for n in names_of(clamp.node)[0] if names.count(n) == 1}
    bound = [s.value for s in top.body if isinstance(s, ast.Assign) and written(s.targets[0]) in asked]
    small = [n for n in (*bound, *below(clamp.node)) if isinstance(n, ast.Constant) and isinstance(n.value, float)
             and 0 < n.value < float(_EPSILONS.get(dtype, "0"))]  # fmt: skip
    sure(len(small) == 1)
    p.names["dtype"] = dtype
    return small[0], _EPSILONS[dtype]


def under_root(p: Place) -> Any:
    """What a root is taken of."""
    if isinstance(p.rest[0], ast.expr):
        return p.rest[0]
    return p.node.left if isinstance(p.node, ast.BinOp) else _operand(p.event, p.node)


def divisor(p: Place) -> Any:
    """What is divided by: a name, an attribute or a call; to clamp it is torch's own way."""
    found = getattr(p.node, "right", None) or getattr(p.node, "value", None)
    sure(isinstance(getattr(p.node, "op", None), ast.Div) and isinstance(found, (ast.Name, ast.Attribute, ast.Call)))
    libraries = {name.partition(".")[0] for name in p.code.aliases.values()}
    sure(p.kind != "at least one" or "torch" in libraries)
    return found


def unsafe_argument(p: Place) -> Any:
    """The argument of a function in a branch of where: the same condition belongs inside of it too."""
    where, unsafe, second = p.rest
    inner = unsafe.right if isinstance(unsafe, ast.BinOp) else _operand(p.event, unsafe)
    name = "reciprocal" if isinstance(unsafe, ast.BinOp) else last_name(unsafe.func)
    value = next((v for v, functions in _HARMLESS.items() if name in functions), None)
    here: Any = p.code.statement(where)
    there: Any = p.code.statement(unsafe)
    asked, between = names_of(where.args[0])[0], range(there.lineno, here.lineno)
    sure(not any(names_of(n, deep=False)[1] & asked for n in below(p.code.scope(where))
                 if getattr(n, "lineno", 0) in between))  # fmt: skip
    text = f"{written(where.func)}({source_of(p.file, where.args[0])}, "
    sure(value and "\n" not in text)
    return inner, f"{text}{value}, <>)" if second else f"{text}<>, {value})"


def axis(p: Place) -> Any:
    """The axis that is written in a call."""
    found = argument(p.call, 99, "dim", "axis") or next(reversed(p.call.args), None)
    sure(isinstance(found, (ast.Constant, ast.UnaryOp)))
    return found


def axes_of_pooling(p: Place) -> Any:
    """Every axis 0 of a sum or mean in the statement of a line."""
    pools, line = ("sum", "mean", "amax", "max"), p.at.line
    around = {s for c in p.code.calls(*pools) if (s := p.code.statement(c)) and s.lineno <= line <= (s.end_lineno or 0)}
    sure(len(around) == 1 and p.at.file == p.file.path)
    calls = [n for s in around for n in below(s) if isinstance(n, ast.Call) and last_name(n.func) in pools]
    axes = [argument(c, 1 if p.code.qualified(c.func) else 0, "dim", "axis") for c in calls]
    return [a for a in axes if isinstance(a, ast.Constant) and a.value == 0]


def mask(p: Place) -> Any:
    """A mask that is given to a call: the opposite comparison, or `~` before it; its other readers keep it."""
    given = argument(p.call, 99, p.text)
    if isinstance(given, ast.UnaryOp):
        return given, p.source(given.operand)
    if isinstance(given, ast.Compare) and type(given.ops[0]) in _OPPOSITE:
        return given, f"{p.source(given.left)} {_OPPOSITE[type(given.ops[0])]} {p.source(given.comparators[0])}"
    sure(isinstance(given, (ast.Name, ast.Attribute, ast.Call)))
    return given, "~<>"


def fill_value(p: Place) -> Any:
    """The number in `scores.masked_fill(mask, number)`."""
    value = argument(p.call, 1, "value")
    sure(p.text.startswith("-") and value and p.owner not in ("torch", "F"))
    return value
