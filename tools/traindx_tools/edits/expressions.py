"""Where what a loss, an operation or a layer is given becomes another one."""

from __future__ import annotations

import ast
from typing import Any

from traindx_tools.edits.place import At, at, call_of, event_of, owner_of, statement_around, target_of
from traindx_tools.edits.source_edit import names_of, source_of, sure
from traindx_tools.invariants.breach import Remedy
from traindx_tools.on_code.binding import mixed_in
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing

_HARMLESS = {
    "exp": "0.0", "expm1": "0.0", "log": "1.0", "log2": "1.0", "log10": "1.0", "log1p": "0.0", "sqrt": "1.0",
    "rsqrt": "1.0", "power": "1.0", "pow": "1.0", "reciprocal": "1.0", "arccos": "0.0", "arcsin": "0.0",
    "acos": "0.0", "asin": "0.0", "arctanh": "0.0", "atanh": "0.0",
}  # fmt: skip
"""An argument at which each function and its derivative are finite."""
_EPSILONS = {"float16": "1e-3", "bfloat16": "1e-2", "float32": "1e-6"}
"""What 1 - eps and log resolve, with room: a few spacings below 1 (2**-11, 2**-8, 2**-24)."""
_OPPOSITE: dict[type[ast.cmpop], str] = {ast.NotEq: "==", ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}


def node(remedy: Remedy) -> At:
    """What happens."""
    event = event_of(remedy.act)
    return at(event.file, event.node)


def receiver(remedy: Remedy) -> At:
    """What it is called on."""
    event = event_of(remedy.act)
    return at(event.file, owner_of(call_of(event.node)))


def _operand(code: Syntax, call: ast.Call) -> ast.expr:
    """What a function of one array is applied to: x of f(x), of library.f(x) and of x.f()."""
    if isinstance(call.func, ast.Attribute) and not code.qualified(call.func):
        return call.func.value
    sure(call.args and not isinstance(call.args[0], ast.Starred))
    return call.args[0]


def _wants_logarithms(remedy: Remedy) -> bool:
    return remedy.text == "softmax" and event_of(remedy.act).method in ("kl_div", "nll_loss")


def softmax(remedy: Remedy) -> At:
    """softmax before a loss that wants log-probabilities."""
    event = event_of(remedy.target)
    sure(_wants_logarithms(remedy) and last_name(call_of(event.node).func) == "softmax")
    return at(event.file, call_of(event.node).func)


def _squashing(remedy: Remedy) -> Event:
    """What squashes scores for a loss: no helper that others may call too."""
    loss, squash = event_of(remedy.act), event_of(remedy.target)
    helper = squash.function
    sure(helper is None or loss.function in (None, helper) or helper.name in ("forward", "__call__"))
    sure(not _wants_logarithms(remedy))
    return squash


def squashing_call(remedy: Remedy) -> At:
    """The call that squashes, and its input; nothing else is done to its output, which was meant as it is."""
    squash = _squashing(remedy)
    call, code, layer = call_of(squash.node), syntax(squash.file), squash.receiver
    own = squash.method == "__call__"
    sure(not own or (len(call.args) == 1 and code.origin(call.func) is getattr(layer, "node", code.origin(call.func))))
    up = code.parent(call)
    sure(not isinstance(up, (ast.Attribute, ast.BinOp, ast.Subscript)))
    if squash.function is None and not isinstance(up, ast.Call):  # in a script: is it for the loss alone?
        name = target_of(up)
        sure(isinstance(name, ast.Name) and len(code.bindings(name)) == 1)
        uses = [last_name(code.parent(n)) for n in code.reads(code.file.tree, name.id)]
        sure(len(uses) - uses.count("argmax") == 1)
    return at(squash.file, (call, source_of(squash.file, call.args[0] if own else _operand(code, call))))


def last_layer(remedy: Remedy) -> At:
    """The squashing layer at the end of the Sequential that made the value, from the end of the layer before it."""
    squash = _squashing(remedy)
    layer: Any = squash.receiver
    sure(isinstance(layer, Thing) and layer.site.path == squash.file.path)
    sequential = call_of(syntax(squash.file).parent(layer.node))
    sure(last_name(sequential.func) == "Sequential" and not sequential.keywords and len(sequential.args) > 1)
    before: Any = sequential.args[-2]
    last: Any = sequential.args[-1]
    sure(last is layer.node)
    gap = ast.Pass(lineno=before.end_lineno, col_offset=before.end_col_offset, end_lineno=last.end_lineno,
                   end_col_offset=last.end_col_offset)  # fmt: skip
    return at(squash.file, (gap, ""))


def loss_or_its_layer(remedy: Remedy) -> At:
    """The call of a loss, or where its layer is made."""
    loss = event_of(remedy.act)
    layer = loss.receiver if isinstance(loss.receiver, Thing) else loss
    sure(layer is loss or layer.site.path == loss.file.path)
    return at(loss.file, layer.node)


def two_arguments(remedy: Remedy) -> At:
    """Two arguments of a loss, each for the other's place."""
    loss = event_of(remedy.act)
    given = [argument(call_of(loss.node), place, name) for place, name in enumerate(remedy.text.split())]
    sure(all(given))
    return at(loss.file, *((n, source_of(loss.file, o)) for n, o in zip(given, reversed(given), strict=True)))


def predictions(remedy: Remedy) -> At:
    """The side of a loss that has one axis more than the targets."""
    loss, side = remedy.act.origin
    sides = loss.node.args if isinstance(loss.node, ast.Call) else [
        getattr(loss.node, name) for name in ("left", "right") if hasattr(loss.node, name)]
    sure(side < len(sides))
    return at(loss.file, sides[side])


def kept_values(remedy: Remedy) -> At:
    """What is kept, as it is written: an argument, what is added, what is mixed in; of a tuple what has a graph."""
    kept = event_of(remedy.act)
    one: Any = kept.node
    value: Any = one.args[-1] if isinstance(one, ast.Call) and one.args else getattr(one, "value", None)
    if isinstance(one, ast.Assign) and kept.kind == "blended":
        value = next(reversed(mixed_in(one)), None)
        given = parameters(kept.function.node) if kept.function is not None else ()
        sure(not isinstance(value, ast.Name) or value.id not in given)  # a caller may pass in numbers
    elif isinstance(one, ast.Assign):
        sure(isinstance(value, ast.BinOp))
        value = value.right if written(value.left) == written(one.targets[0]) else value.left
    parts = [value.elts[i] for i in map(int, remedy.text.split())] if isinstance(value, ast.Tuple) else [value]
    sure(parts and all(isinstance(v, (ast.Name, ast.Attribute, ast.Subscript)) for v in parts))
    return at(kept.file, *parts)


def thrown_state(remedy: Remedy) -> At:
    """The name that a new state is thrown to, and that of the old one."""
    lost = remedy.act.origin
    sure(remedy.text == "state" and isinstance(lost.target, ast.Name) and isinstance(lost.state, ast.Name))
    return at(lost.code.file, (lost.target, lost.state.id))



def unbound_result(remedy: Remedy) -> At:
    """A call as a statement, and the name that went in."""
    lost = remedy.act.origin
    old: Any = next(iter(lost.call.args), None) if last_name(lost.call.func) == "apply_updates" else owner_of(lost.call)
    while remedy.text == "array" and isinstance(old, (ast.Attribute, ast.Subscript)):
        old = old.value  # x of x.at[0].set(1)
    sure(remedy.text in ("array", "parameters") and isinstance(lost.code.parent(lost.call), ast.Expr))
    sure(isinstance(old, ast.Name))
    return at(lost.code.file, lost.call, name=old.id)


def number(remedy: Remedy) -> At:
    """The one number that is written in a call."""
    event = event_of(remedy.act)
    call, code = call_of(event.node), syntax(event.file)
    numbers = [k.value for k in call.keywords if k.arg == remedy.act.name] or [
        a for a in (*call.args, *(k.value for k in call.keywords)) if code.number(a) is not None]
    sure(len(numbers) == 1 and isinstance(numbers[0], (ast.Constant, ast.UnaryOp)))
    return at(event.file, numbers[0])


def in_logarithms(remedy: Remedy) -> At:
    """What stands in the logarithms of one line, each once."""
    logs = {id(event.node): (event, value) for event, value in remedy.act.origin}.values()
    return at(next(iter(logs))[0].file, *(_guarded(event, value) for event, value in logs))


def _guarded(event: Event, value: Tensor) -> tuple[Any, str]:
    call, code = call_of(event.node), syntax(event.file)
    inner, floor = _operand(code, call), "1e-7" if value.dtype == "float16" else "1e-8"
    if not event.name.startswith("jax."):
        return inner, f"<>.clamp_min({floor})"
    sure(code.qualified(call.func))
    return inner, f"{written(owner_of(call))}.maximum(<>, {floor})"


def epsilon(remedy: Remedy) -> At:
    """The one number of a clamp that is too small: in the call, or of a name that is bound once."""
    event, value, clamp = remedy.act.origin
    dtype = value.dtype or ("" if event.name.startswith("numpy.") else "float32")
    safe, top = _EPSILONS.get(dtype, "0"), clamp.file.tree
    names = [n.id for n in below(top) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    asked = {n for n in names_of(clamp.node)[0] if names.count(n) == 1}
    bound = [s.value for s in top.body if isinstance(s, ast.Assign) and written(s.targets[0]) in asked]
    small = [n for n in (*bound, *below(clamp.node)) if isinstance(n, ast.Constant) and isinstance(n.value, float)
             and 0 < n.value < float(safe)]  # fmt: skip
    sure(len(small) == 1)
    return at(clamp.file, (small[0], safe), dtype=dtype)


def under_root(remedy: Remedy) -> At:
    """What a root is taken of."""
    event, inside = remedy.act.origin
    root = event.node
    if not isinstance(inside, ast.expr):
        inside = root.left if isinstance(root, ast.BinOp) else _operand(syntax(event.file), call_of(root))
    return at(event.file, inside)


def divisor(remedy: Remedy) -> At:
    """What is divided by: a name, an attribute or a call; to clamp it is torch's own way."""
    event = remedy.act.origin[0]
    found = getattr(event.node, "right", None) or getattr(event.node, "value", None)
    sure(isinstance(getattr(event.node, "op", None), ast.Div))
    sure(isinstance(found, (ast.Name, ast.Attribute, ast.Call)))
    libraries = {name.partition(".")[0] for name in syntax(event.file).aliases.values()}
    sure(remedy.kind != "at least one" or "torch" in libraries)
    return at(event.file, found)


def unsafe_argument(remedy: Remedy) -> At:
    """The argument of a function in a branch of where: the same condition belongs inside of it too."""
    event, where, unsafe, second = remedy.act.origin
    inner, value = (unsafe.right, "1.0") if isinstance(unsafe, ast.BinOp) else (
        _operand(syntax(event.file), call_of(unsafe)), _HARMLESS.get(last_name(unsafe.func)))
    here, there = statement_around(event.file, where), statement_around(event.file, unsafe)
    asked, between = names_of(where.args[0])[0], range(there.lineno, here.lineno)
    sure(not any(names_of(n, deep=False)[1] & asked for n in below(syntax(event.file).scope(where))
                 if getattr(n, "lineno", 0) in between))  # fmt: skip
    text = f"{written(where.func)}({source_of(event.file, where.args[0])}, "
    sure(value and "\n" not in text)
    return at(event.file, (inner, f"{text}{value}, <>)" if second else f"{text}<>, {value})"))


def axis(remedy: Remedy) -> At:
    """The axis that is written in a call."""
    event = event_of(remedy.act)
    call = call_of(event.node)
    found = argument(call, 99, "dim", "axis") or next(reversed(call.args), None)
    sure(isinstance(found, (ast.Constant, ast.UnaryOp)))
    return at(event.file, found)


def axes_of_pooling(remedy: Remedy) -> At:
    """Every axis 0 of a sum or mean in the statement of a line."""
    event, pools = event_of(remedy.act), ("sum", "mean", "amax", "max")
    code, line = syntax(event.file), remedy.act.at.line
    around = {s for c in code.calls(*pools) if (s := code.statement(c)) and s.lineno <= line <= (s.end_lineno or 0)}
    sure(len(around) == 1 and remedy.act.at.file == event.file.path)
    calls = [n for s in around for n in below(s) if isinstance(n, ast.Call) and last_name(n.func) in pools]
    axes = [argument(c, 1 if code.qualified(c.func) else 0, "dim", "axis") for c in calls]
    return at(event.file, *(a for a in axes if isinstance(a, ast.Constant) and a.value == 0))


def mask(remedy: Remedy) -> At:
    """A mask that is given to a call: the opposite comparison, or `~` before it; its other readers keep it."""
    event = event_of(remedy.act)
    given, file = argument(call_of(event.node), 99, remedy.text), event.file
    if isinstance(given, ast.UnaryOp):
        return at(file, (given, source_of(file, given.operand)))
    if isinstance(given, ast.Compare) and type(given.ops[0]) in _OPPOSITE:
        left, right = source_of(file, given.left), source_of(file, given.comparators[0])
        return at(file, (given, f"{left} {_OPPOSITE[type(given.ops[0])]} {right}"))
    sure(isinstance(given, (ast.Name, ast.Attribute, ast.Call)))
    return at(file, (given, "~<>"))


def fill_value(remedy: Remedy) -> At:
    """The number in `scores.masked_fill(mask, number)`."""
    event = event_of(remedy.act)
    call = call_of(event.node)
    value = argument(call, 1, "value")
    sure(remedy.text.startswith("-") and value and written(owner_of(call)) not in ("torch", "F"))
    return at(event.file, value)
