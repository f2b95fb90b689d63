"""Logarithms, roots and divisions whose arguments reach 0, and numbers that their dtype cannot hold."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import replace

from traindx_tools.on_code.arrays import is_parameter
from traindx_tools.on_code.bounds import RESOLUTION, rounded
from traindx_tools.on_code.filling.states import attribute_set
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.masked_spread import spreads
from traindx_tools.on_code.names import is_array_library
from traindx_tools.on_code.optimizer_parameters import modules_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, names_in, syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import (
    Bag,
    Instance,
    Operation,
    Site,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    parts,
    truth,
    unwrap,
)
from traindx_tools.program.constants import HalfUpdate, Pole, Rounded
from traindx_tools.program.moments import Spot

_CLAMPS = ("clamp", "clip", "clamp_", "clip_", "clamp_min", "clamp_max", "maximum")
_ADAMS = frozenset({"adam", "adamw", "scale_by_adam", "nadam", "radam", "lamb", "amsgrad"})
_UNSAFE = frozenset({"exp", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "power", "pow", "arccos", "arcsin",
                     "acos", "asin", "reciprocal", "expm1", "norm", "arctanh", "atanh"})  # fmt: skip
_SAFE = frozenset({"where", "maximum", "minimum", "clip", "clamp", "abs", "softplus", "clamp_min", "clamp_max", "relu",
                   "max", "min", "nan_to_num", "logaddexp", "square"})  # fmt: skip
_TELLING = frozenset({"print", "info", "debug", "log", "add_scalar", "append", "write", "writerow", "update"})
_DRAWN = re.compile(r"\bbernoulli|\brandom\.|\brand\(|rand_like")


def poles(project: Project) -> Iterator[Pole]:
    """Every such operation on arrays."""
    yield from _logs(project)
    yield from _roots(project)
    yield from _divisions(project)
    yield from _counts(project)
    for event in project.calls("where", "select"):
        if event.name in ("jax.numpy.where", "torch.where", "jax.lax.select") and isinstance(event.node, ast.Call):
            yield from _hidden(event, event.node)


def _array(event: Event) -> Value | None:
    return event.receiver if isinstance(event.receiver, Tensor) else event.args[0] if event.args else None


def _attached(event: Event, value: Tensor) -> bool:
    return event.differentiated if event.name.startswith("jax.") else bool(value.grad) and event.grad is not False


def _logs(project: Project) -> Iterator[Pole]:
    clamps: dict[object, list[Event]] = {}
    for clamp in project.calls(*_CLAMPS):
        low = number(clamp.argument(0 if isinstance(clamp.receiver, Tensor) else 1, "min"))
        if not clamp.name.startswith("Const") and (low is None or low >= 0):  # else it bounds something before
            clamps.setdefault(clamp.site, []).append(clamp)
    for event in project.calls("log", "log2", "log10", "log1p"):
        x = _array(event)
        if event.method == "log1p" and isinstance(x, Tensor):
            x = replace(x, low=0.0 if x.low == -1 and _attached(event, x) else None, high=None)
        array = isinstance(event.receiver, Tensor) or is_array_library(event.name)
        if array and isinstance(x, Tensor) and x.low is None and x.kind == "linear" and (
                event.method != "log1p" and _attached(event, x)):  # as often negative as positive where it begins
            yield Pole("log", event.text, event.spot, -math.inf, x.high, x.kind,
                       "" if x.kind_site == event.site else str(x.kind_site or ""), dtype=x.dtype or "float32")
        if not isinstance(x, Tensor) or not array or x.low is None or x.low > 0 or x.low == x.high == 0:
            continue
        guards = {c.line: c for s in {x.site, *x.parents} for c in clamps.get(s, ())}
        guard = next(iter(guards.values())) if len(guards) == 1 else None
        attached = _attached(event, x)
        unknown = x.grad is None and not _only_told(event)
        made = str(x.kind_site or x.site or "")
        yield Pole("log", event.text, event.spot, x.low, x.high, x.kind,
                   "" if made == str(event.site) else made,
                   True if attached else None if unknown else False, "spread" in x.tags,
                   x.dtype or "float32",
                   f"{guard.text} at {guard.site}" if guard else "",
                   _exact(guard, x.dtype or "float32") if guard else "", (event, x, guard))


def _exact(clamp: Event, dtype: str) -> str:
    """Why a clamp does not help: its upper limit is 1 in the dtype."""
    own = isinstance(clamp.receiver, Tensor)
    upper = number(clamp.argument(1 if own else 2, "max") or clamp.kwargs.get("a_max"))
    if upper is None or upper >= 1 or rounded(upper, dtype) < 1:
        return ""
    name, half = _epsilon_name(clamp.node), RESOLUTION.get(dtype, RESOLUTION["float32"]) / 4
    said = f"1 - {name or format(1 - upper, '.1g')} is exactly 1 in {dtype}" + (
        f" ({name} = {1 - upper:.1g})" if name else "")
    return said + f", as for every epsilon below {half:.0e}".replace("e-0", "e-")


def _epsilon_name(node: ast.AST) -> str:
    """The name of the epsilon in a limit written as `1 - EPS`; "" where it is a number."""
    for inner in below(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) and isinstance(inner.left, ast.Constant):
            return ast.unparse(inner.right) if isinstance(inner.right, (ast.Name, ast.Attribute)) else ""
    return ""


def _roots(project: Project) -> Iterator[Pole]:
    written = {code.spot(node): (code, node, inside) for code in map(syntax, project.files)
               if "sqrt" in code.file.text or "0.5" in code.file.text for node, inside in spreads(code)}  # fmt: skip
    for spot, (code, node, inside) in written.items():
        event = Event("call", "", "sqrt", node, code.file, None)
        yield Pole("sqrt", code.file.segment(node), spot, of="masked-spread", origin=(event, inside))
    roots = [(e, _array(e)) for e in project.calls("sqrt")]
    roots += [(e, e.args[0]) for e in project.events if e.kind == "operation" and e.name == "**" and _root(e.args[1])]
    roots += [(e, _array(e)) for e in project.calls("pow", "power", "float_power") if e.args and _root(e.args[-1])]
    roots += [(e, replace(x, low=0.0)) for e in project.calls("norm") if e.name.startswith("jax.numpy.")
              and isinstance(x := _array(e), Tensor) and "pairs" in x.tags]  # torch gives a norm of 0 the gradient 0
    places = {(s.file, s.line) for s in written}
    for event, x in roots:
        if (event.file.path, event.line) in places:
            continue
        if not isinstance(x, Tensor) or x.low != 0 or x.high == 0 or "reduced" in x.tags or x.grad is False:
            continue
        if event.grad is False or event.name.startswith("numpy.") or (
                event.name.startswith("jax.") and not event.differentiated):  # fmt: skip
            continue
        certain = x.grad is True or (event.differentiated and bool({"one_row", "pairs"} & x.tags))
        yield Pole("sqrt", event.text, event.spot, 0.0, x.high, attached=certain,
                   spread="spread" in x.tags, guard=_outside(event), origin=(event, x))


def _root(exponent: Value) -> bool:
    """Whether a power has an infinite derivative at 0: an exponent between 0 and 1, 1 / p of a learned p."""
    known = number(exponent)
    if isinstance(exponent, Operation) and exponent.op == "/" and number(exponent.operands[0]) == 1:
        return is_parameter(exponent.operands[1])
    return known is not None and 0 < known < 1


def _counts(project: Project) -> Iterator[Pole]:
    """What has a graph, or goes into what is kept from step to step, divided by the number of true elements of a mask,
    without a lower bound."""
    kept = {site for e in project.events if attribute_set(e) and e.kind in ("augmented", "blended", "call")
            for a in (*e.args, *e.kwargs.values()) if isinstance(a, Tensor) for site in {a.site, *a.parents}}
    sent = {id(p.event) for loop in project.training_loops for p in loop.places if p.event.kind == "operation"}
    for event in project.events:
        top, count = event.args[:2] if event.kind == "operation" and event.name == "/" else (None, None)
        if not isinstance(count, Tensor) or "count" not in count.tags or count.low != 0:
            continue
        attached = event.grad is not False and (event.differentiated or (isinstance(top, Tensor) and (
            top.grad is True or (top.grad is None and id(event) in sent))))
        stays = event.site in kept and not _asked(event)
        if attached or stays:
            yield Pole("count", event.text, event.spot, spread=stays, origin=(event,))


def _outside(event: Event) -> str:
    """The small constant that is added to the root, as written."""
    up = syntax(event.file).parent(event.node)
    if not isinstance(up, ast.BinOp) or not isinstance(up.op, ast.Add):
        return ""
    other = up.right if up.left is event.node else up.left
    return ast.unparse(other) if isinstance(other, (ast.Constant, ast.Name, ast.Attribute)) else ""


def _divisions(project: Project) -> Iterator[Pole]:
    training = {id(p.event) for loop in project.training_loops for p in loop.places if p.event.kind == "operation"}
    for event in project.events:
        if event.kind != "operation" or event.name != "/" or len(event.args) < 2 or event.grad is False:
            continue
        x = event.args[1]
        if isinstance(x, Tensor) and "spread" in x.tags and x.low == 0 and x.high is None:
            attached = x.grad is True or event.differentiated
            if (attached or id(event) in training) and not _asked(event) and not _only_told(event):
                yield Pole("division", event.text, event.spot, attached=attached, spread=True, origin=(event, x))


def _asked(event: Event) -> bool:
    """Whether it stands under a condition on what it divides by, or in a try: `nan if var == 0 else x / var`."""
    node, code = event.node, syntax(event.file)
    names = names_in(node.right) if isinstance(node, ast.BinOp) else set()
    above = list(code.above(node))
    tried = any(n is node for up in above if isinstance(up, ast.Try) and up.handlers for s in up.body for n in below(s))
    replaced = isinstance(node, ast.BinOp) and isinstance(node.right, ast.Name) and node.right.id in code.item_stores
    return tried or replaced or any(names & names_in(up.test) for up in above if isinstance(up, (ast.If, ast.IfExp)))


def _only_told(event: Event) -> bool:
    """Whether the outcome is a number that is printed, logged or kept."""
    code = syntax(event.file)
    statement = code.statement(event.node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    reads = code.reads(code.scope(event.node), target.id) if isinstance(target, ast.Name) else []
    return _is_told(code, event.node) or (bool(reads) and all(_is_told(code, read) for read in reads))


def _is_told(code: Syntax, node: ast.AST) -> bool:
    return any(isinstance(up, (ast.JoinedStr, ast.Dict)) or (
        isinstance(up, ast.Call) and last_name(up.func) in _TELLING) for up in code.above(node))


# --- branches that are not selected

def _hidden(event: Event, node: ast.Call) -> Iterator[Pole]:
    """where(condition on x, f(x), other) in a graph, with an x that is not made safe inside f."""
    if event.name.startswith("jax."):
        in_graph = event.differentiated
    else:
        in_graph = event.grad is not False and any(isinstance(a, Tensor) and a.grad for a in event.args)
    own = [ast.unparse(d) for d in getattr(event.function.node, "decorator_list", ())] if event.function else []
    if len(node.args) != 3 or not in_graph or any("custom_" in d for d in own):
        return
    condition = _resolved(event, node.args[0])
    if _DRAWN.search(ast.unparse(condition)):
        return  # dropout: the condition excludes nothing that is infinite
    watched = names_in(condition) - {"jnp", "np", "torch", "jax"} - _fixed_numbers(event)
    for second, branch in enumerate(node.args[1:]):
        unsafe = _unsafe(_resolved(event, branch), watched)
        if unsafe is not None and not _keeps_off_zero(event, unsafe, condition, bool(second)):
            yield Pole("where", event.file.segment(node), event.spot, of=event.file.segment(unsafe),
                       guard=event.file.segment(node.args[0]), origin=(event, node, unsafe, bool(second)))
            return


def _fixed_numbers(event: Event) -> set[str]:
    """Names that no gradient goes through: numbers of the file, and arguments that are said to be a number."""
    code = syntax(event.file)
    node = event.function.node if event.function is not None else None
    args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs] if isinstance(node, FunctionNode) else []
    said = {a.arg for a in args if isinstance(a.annotation, ast.Name) and a.annotation.id in ("float", "int")}
    return said | {t.id for s in code.file.tree.body if isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant)
                   for t in s.targets if isinstance(t, ast.Name)}  # fmt: skip


def _keeps_off_zero(event: Event, unsafe: ast.expr, condition: ast.expr, second: bool) -> bool:
    """Whether a divisor is not 0 where its branch is excluded: `where(x < c, a / x, ...)` with a c above 0."""
    if not isinstance(unsafe, ast.BinOp) or not isinstance(unsafe.op, ast.Div):
        return False
    divisor = _resolved(event, unsafe.right)
    if isinstance(divisor, ast.BinOp) and isinstance(divisor.op, ast.Div) and isinstance(divisor.left, ast.Constant):
        return divisor.left.value != 0  # a reciprocal
    if not isinstance(condition, ast.Compare) or len(condition.ops) != 1:
        return False
    bound = condition.comparators[0]
    above = isinstance(condition.ops[0], (ast.Lt, ast.LtE)) is not second  # the values that the branch does not get
    positive = isinstance(bound, ast.Constant) and isinstance(bound.value, (int, float)) and bound.value > 0
    return above and positive and ast.unparse(condition.left) == ast.unparse(unsafe.right)


def _resolved(event: Event, node: ast.expr) -> ast.expr:
    """What a local name was last assigned before the event's line."""
    found = node
    for inner in below(event.function.node) if isinstance(node, ast.Name) and event.function is not None else ():
        if isinstance(inner, ast.Assign) and inner.lineno < event.line and any(
                isinstance(t, ast.Name) and t.id == node.id for t in inner.targets):  # type: ignore[attr-defined]
            found = inner.value
    return found


def _unsafe(branch: ast.expr, watched: set[str]) -> ast.expr | None:
    stack: list[ast.expr] = [branch]
    while stack:
        node = stack.pop()
        inside: list[ast.expr] = []
        if isinstance(node, ast.Call):
            if last_name(node.func) in _SAFE:
                continue
            if last_name(node.func) in _UNSAFE:
                inside = list(node.args) or ([node.func.value] if isinstance(node.func, ast.Attribute) else [])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            inside = [node.right]
        if any(names_in(a) & watched for a in inside) and not any(
                isinstance(n, ast.Call) and last_name(n.func) in _SAFE for a in inside for n in below(a)):
            return node
        stack.extend(c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
    return None


# --- what a dtype does not hold

def rounded_numbers(project: Project) -> Iterator[Rounded]:
    """Limits just below 1 that are 1, additions to half precision that are 0, Adam's epsilon in half precision."""
    for event in project.calls("clamp", "clip", "clamp_", "clip_", "clamp_max"):
        own = isinstance(event.receiver, Tensor)
        x = event.receiver if own else event.args[0] if event.args else None
        position = (0 if event.method == "clamp_max" else 1) + (0 if own else 1)
        limit = number(event.argument(position, "max") or event.kwargs.get("a_max"))
        dtype = x.dtype if isinstance(x, Tensor) and x.dtype not in ("int", "bool") else None
        if limit is not None and 0.9 < limit < 1 and rounded(limit, dtype) == 1 and not event.name.startswith(
                ("numpy.", "Const")):  # fmt: skip
            yield Rounded("clamp", event.text, event.spot, 1 - limit, dtype or "float32")
    for event in project.events:
        for x, other in (event.args, event.args[::-1]) if event.kind == "operation" and event.name == "+" else ():
            value = number(other) or 0.0
            if isinstance(x, Tensor) and x.dtype == "float16" and 0 < abs(value) < 1e-6 and not rounded(value, x.dtype):
                yield Rounded("addition", event.text, event.spot, value, "float16")
    makers = {id(e.result): e for e in project.calls(*_ADAMS)}
    for event in project.calls("init", "create"):
        optimizer = event.receiver if event.method == "init" else event.kwargs.get("tx")
        held = event.args[0] if event.args else event.kwargs.get("params")
        for adam in _adams(optimizer) if held is not None and _is_half(held) else ():
            eps = number(adam.kwargs["eps"]) if "eps" in adam.kwargs else 1e-8
            if eps is not None and rounded(eps, "float16") == 0 and id(adam) in makers:
                made = makers[id(adam)]
                yield Rounded("adam eps", made.text, made.spot, eps, "float16")


def _adams(value: Value | None) -> Iterator[Thing]:
    if isinstance(value, Thing):
        if value.type.startswith("optax.") and value.short in _ADAMS:
            yield value
        for inner in (*value.args, *value.kwargs.values()):
            yield from _adams(inner)


def _is_half(value: Value, left: int = 6) -> bool:
    """Whether any array of a tree is of float16."""
    if isinstance(value, Tensor):
        return value.dtype == "float16"
    inner = value.items if isinstance(value, Bag) else []
    if isinstance(value, Table):
        inner = [*value.items.values(), *([value.rest] if value.rest else [])]
    return left > 0 and any(_is_half(v, left - 1) for v in inner)


_HALVES = ("float16", "bfloat16")
_OPTIMIZERS = ("Adam", "AdamW", "SGD", "NAdam", "RMSprop", "Adamax", "RAdam")


def half_updates(project: Project) -> Iterator[HalfUpdate]:
    """Every one, with its learning rate."""
    for event in project.calls(*_OPTIMIZERS):
        made = event.result
        found = _half_cast(made) if isinstance(made, Thing) and event.name == made.type and (
            made.type == f"torch.optim.{made.short}") else None
        if found is None or not isinstance(made, Thing):
            continue
        rate, eps = number(made.argument(1, "lr")), number(made.kwargs.get("eps"))
        cast = project.spot(found[1]) if found[1] is not None else event.spot
        yield HalfUpdate(made.short, event.spot, cast, found[0],
                         1e-3 if rate is None and "lr" not in made.kwargs else rate,
                         1e-8 if "eps" not in made.kwargs else eps)


def scaled_gradients(project: Project) -> Iterator[Spot]:
    """Every `autograd.grad` of a scaled loss for a graph of its own, where nothing in the program reads the scale."""
    if any(True for _ in project.calls("get_scale", "unscale_gradients")):
        return
    for event in project.calls("grad"):
        of, graph = event.argument(0, "outputs"), event.argument(4, "create_graph")
        of = of.items[0] if isinstance(of, Bag) and of.items else of
        scaled = "scaled" in of.tags if isinstance(of, Tensor) else of is not None and any(
            isinstance(p, Symbol) and (p.role, p.name) == ("call", "scale") for p in parts(of))
        if event.name == "torch.autograd.grad" and scaled and truth(graph):
            yield event.spot


def _half_cast(optimizer: Thing) -> tuple[str, Site | None] | None:
    """The half type to which a module that an optimizer holds was cast, and where."""
    for module in modules_of(optimizer) or []:
        for part in [unwrap(module), *submodules(unwrap(module))[:1]]:
            known = part.state if isinstance(part, (Thing, Instance)) else {}
            if known.get("dtype") in _HALVES and not known.get("frozen"):
                return str(known["dtype"]), known.get("dtype_site")
    return None
