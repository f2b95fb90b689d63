"""Results of pure functions of JAX, flax and optax that nothing reads, and those of the project's own steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from traindx_tools.knowledge.ranges import chains
from traindx_tools.knowledge.tables import words
from traindx_tools.on_code.filling.schedule_uses import nested
from traindx_tools.on_code.lookup import Body, Lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written
from traindx_tools.on_code.values import Bag, Const, Symbol, Table, Thing, Value, parts
from traindx_tools.program.known import Known
from traindx_tools.program.uses import UnusedResult

_APPLY = frozenset({"optax.apply_updates", "equinox.apply_updates"})
_INFERENCE = frozenset({"equinox.nn.inference_mode", "equinox.tree_inference"})
_STATELESS = frozenset({"scale", "clip", "clip_by_global_norm", "clip_by_block_rms", "identity", "set_to_zero",
                        "add_decayed_weights", "scale_by_learning_rate", "zero_nans", "keep_params_nonnegative",
                        "adaptive_grad_clip", "centralize", "noisy_sgd", "sign_sgd"})  # fmt: skip
_PURE = frozenset(words("followed.toml", "returns_new"))
_ELSEWHERE = re.compile(r"set_to_zero|stop_gradient|zeros_like|freeze_grad|eqx\.partition|\.partition\(")
"""What may set other gradients or updates to zero, or leave them out."""
_OPTIMIZERS = {n for n in chains()[0].normalises if "_by_" not in n}
_LEAVES = re.compile(r"is_(inexact_)?array|is_floating|issubdtype")
_WRITES = frozenset({"set", "add", "subtract", "multiply", "divide", "power", "min", "max", "apply", "mul"})
_GRADIENTS = frozenset({"value_and_grad", "filter_value_and_grad"})


@dataclass(frozen=True)
class Lost:
    """Where a result is lost: the call, what it is bound to, and the old state that should get it."""

    code: Syntax
    call: ast.Call
    target: ast.expr | None = None
    state: ast.expr | None = None


def unused_results(project: Project, look: Lookup) -> Iterator[UnusedResult]:
    """Every such result, each once."""
    owners = {id(e.node): e.receiver for e in project.calls("update")}
    results = {id(b.node): b.result for b in project.blocks if b.kind == "call" and b.result is not None}
    for code in look.codes:
        text = code.file.text
        if not any(word in text for word in ("jax", "optax", "equinox")):
            continue
        for call in code.of(ast.Call):
            yield from _of_call(look, code, call, owners.get(id(call)), results.get(id(call)))
            yield from _bound_before(code, call, results)
            if code.qualified(call.func) in _INFERENCE:
                yield from _inference(code, call, results)
    yield from _statistics(project, look)
    yield from _masked(project, look)


def _of_call(look: Lookup, code: Syntax, call: ast.Call, owner: Value | None, result: Value | None
             ) -> Iterator[UnusedResult]:
    name, func = last_name(call.func), call.func
    if code.qualified(func) in _APPLY or (name == "apply_gradients" and _of_flax(code, call)):
        if _is_lost(code, call):
            yield _unused("parameters", Lost(code, call))
    elif name == "update" and isinstance(func, ast.Attribute):
        yield from _of_update(look, code, call, owner)
    elif code.qualified(func) in _PURE:
        shown = code.file.path.endswith(".ipynb") and code.function(call) is None  # the last value of a cell
        if not shown and _is_lost(code, call) and (isinstance(code.parent(call), ast.Expr) or "restore" in name):
            yield _unused("pure", Lost(code, call))
    elif (array := _array(call)) is not None:
        if isinstance(code.parent(call), ast.Expr):
            yield _unused("array", Lost(code, call), written(array))
    else:
        own = look.function(code, func) if isinstance(code.parent(call), ast.Expr) else None
        if own is not None and _is_lost(code, call) and _is_pure(look, *own):
            yield _unused("pure", Lost(code, call))
        maker = func if isinstance(func, ast.Call) else code.origin(func)
        second = _second(code, call)
        yield from _of_another(code, call, maker)
        if isinstance(maker, ast.Call) and last_name(maker.func) in _GRADIENTS and isinstance(second, ast.Name):
            if not second.id.startswith("_") and not _read(code, second):
                yield _unused("gradients", Lost(code, call), second.id)
        elif isinstance(result, Bag) and code.loops(call):
            yield from _of_step(look, code, call, result)


def _unused(kind: str, lost: Lost, name: str = "", known: Known = Known.DERIVED) -> UnusedResult:
    call = f"{written(lost.call.func)}()" if kind != "array" else lost.code.file.segment(lost.call)
    return UnusedResult(kind, call, lost.code.spot(lost.call), name, known, lost)


def _of_flax(code: Syntax, call: ast.Call) -> bool:
    """Keras and TensorFlow apply gradients in place."""
    given = {k.arg for k in call.keywords}
    text = code.file.text
    return not call.args and ("grads" in given or None in given) and "keras" not in text and "tensorflow" not in text


def _array(call: ast.Call) -> ast.expr | None:
    """The array of `array.at[index].method(...)`."""
    index = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in _WRITES else None
    if isinstance(index, ast.Subscript) and isinstance(index.value, ast.Attribute) and index.value.attr == "at":
        return index.value.value
    return None


def _is_pure(look: Lookup, code: Syntax, body: Body, left: int = 4) -> bool:
    """Whether a function of the project does nothing but return something new, made of what it was given."""
    if isinstance(body, ast.Lambda) or body.decorator_list or not left:
        return False
    outcomes = list(returned(body))
    for node in below(body):
        does = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
        stores = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
        if does or stores or isinstance(node, (ast.Global, ast.Nonlocal, ast.With)):
            return False
    made = [code.origin(o) for o in outcomes]
    return bool(made) and all(isinstance(m, ast.Call) and (
        code.qualified(m.func) in _PURE | _APPLY or _array(m) is not None
        or (last_name(m.func) in ("replace", "_replace") and any(k.arg is not None for k in m.keywords))
        or ((own := look.function(code, m.func)) is not None and _is_pure(look, *own, left - 1))) for m in made)


# --- what reads a result

def _targets(code: Syntax, call: ast.Call) -> ast.expr | None:
    up = code.parent(call)
    return up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None


def _second(code: Syntax, call: ast.Call) -> ast.expr | None:
    """What the second of two parts is bound to; the subscript that takes the first alone."""
    up = code.parent(call)
    if isinstance(up, ast.Subscript) and isinstance(up.slice, ast.Constant) and up.slice.value == 0:
        return up
    target = _targets(code, call)
    return target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None


def _is_lost(code: Syntax, call: ast.Call) -> bool:
    """Whether the call is a statement, or bound to a name that nothing reads."""
    statement = code.parent(call)
    if isinstance(statement, ast.Expr):
        return not any(isinstance(a, (ast.With, ast.Try)) for a in code.above(statement))
    target = _targets(code, call)
    return isinstance(target, ast.Name) and isinstance(code.scope(call), FunctionNode) and not _read(code, target)


def _read(code: Syntax, target: ast.Name) -> bool:
    """Whether the scope of a name reads it anywhere, or hands it out (global, nonlocal)."""
    scope = code.scope(target)
    shared = any(target.id in g.names for g in code.inside(scope, ast.Global)) or any(
        target.id in g.names for g in code.inside(scope, ast.Nonlocal))
    return bool(shared or code.reads(scope, target.id) or code.calls_in(scope, "locals", "globals", "vars", "eval",
                                                                         "exec"))  # fmt: skip


def _inference(code: Syntax, call: ast.Call, results: dict[int, Value]) -> Iterator[UnusedResult]:
    """`model = inference_mode(model)` in a loop in which a step makes that very name anew, and nothing else does."""
    target, given, mode = _targets(code, call), argument(call, 0, "pytree"), argument(call, 1, "value")
    on = mode is None or (isinstance(mode, ast.Constant) and mode.value is True)
    if not on or not isinstance(target, ast.Name) or given is None or written(given) != target.id:
        return
    block = code.parent(code.parent(call) or call)
    if any(isinstance(s, (ast.Break, ast.Return)) for s in getattr(block, "body", ())):
        return  # training is over
    around = {id(loop) for loop in code.loops(call)}
    inside = [v for _, v in code.bindings(target) if any(id(loop) in around for loop in code.loops(v))]
    steps = [c for c in code.of(ast.Call) if code.scope(c) is code.scope(call) and _remakes(code, c, target.id, results)
             and any(id(loop) in around for loop in code.loops(c))]
    if steps and all(v is call for v in inside if not any(v is c for c in steps)):
        yield UnusedResult("inference", code.file.segment(call), code.spot(call), target.id)


def _remakes(code: Syntax, call: ast.Call, name: str, results: dict[int, Value]) -> bool:
    """Whether a step takes a name and gives it a new value with updates applied."""
    target, result = _targets(code, call), results.get(id(call))
    bound = target.elts if isinstance(target, ast.Tuple) else [target]
    made = result.items if isinstance(result, Bag) else [result]
    return any(written(a) == name for a in call.args) and len(bound) == len(made) and any(
        isinstance(t, ast.Name) and t.id == name and v is not None and _is_updated(v)
        for t, v in zip(bound, made, strict=True))


# --- the state of an optimizer

def _of_update(look: Lookup, code: Syntax, call: ast.Call, owner: Value | None) -> Iterator[UnusedResult]:
    """`updates, _ = tx.update(grads, state)` where the state comes from outside of the function or the loop."""
    state, target = argument(call, 1, "state"), _second(code, call)
    lost = isinstance(target, ast.Subscript) or (isinstance(target, ast.Name) and not _read(code, target))
    if not lost or not isinstance(state, (ast.Name, ast.Attribute)):
        return
    scope = code.function(call)
    moments = _has_moments(owner)
    looped = moments is True and bool(code.loops(call))
    if scope is None or scope.name.startswith("test") or not (looped or _carried(code, scope, state)):
        return
    if moments is False or (moments is None and "state" not in written(state).lower()):
        return
    handed_on = any(written(n) == written(state) for r in returned(scope)
                    for n in (r.elts if isinstance(r, ast.Tuple) else [r]))  # fmt: skip
    if code.calls_in(scope, "apply_updates") or handed_on:  # else the size of a step is asked for, or one is tried
        sure = moments is True and (looped or handed_on or _made_once(code, state))
        yield _unused("state", Lost(code, call, target, state if sure else None),
                      known=Known.DERIVED if sure else Known.GUESSED)


def _has_moments(owner: Value | None) -> bool | None:
    """Whether the state of an optimizer matters; None where it is not known what optimizer it is."""
    if not isinstance(owner, Thing) or not owner.type.startswith("optax."):
        return None
    if owner.short == "chain":
        inner = [_has_moments(a) for a in owner.args]
        return True if True in inner else None if None in inner or not inner else False
    if owner.short in ("sgd", "noisy_sgd"):
        rate = owner.argument(0, "learning_rate")
        return owner.argument(1, "momentum") is not None or (False if isinstance(rate, Const) else None)
    return owner.short not in _STATELESS


def _made_once(code: Syntax, state: ast.expr) -> bool:
    """Whether `init` alone ever gives the state a value."""
    bound = [v for _, v in code.bindings(state)]
    return len(bound) == 1 and isinstance(bound[0], ast.Call) and last_name(bound[0].func) == "init"


def _carried(code: Syntax, scope: ast.AST, state: ast.expr) -> bool:
    """Whether the state comes from outside, and was not made for this step alone."""
    head: ast.expr = state
    while isinstance(head, ast.Attribute):
        head = head.value
    if not isinstance(head, ast.Name):
        return False
    if isinstance(state, ast.Name) and code.bindings(state):
        return _made_once(code, state) and all(code.function(s) is None for s, _ in code.bindings(state))
    set_here = isinstance(state, ast.Attribute) and any(
        n.attr == state.attr and isinstance(n.ctx, ast.Store) and written(n) == written(state)
        for n in code.inside(scope, ast.Attribute))
    return head.id in parameters(scope) and not set_here  # type: ignore[arg-type]


# --- steps of the project

def _of_step(look: Lookup, code: Syntax, call: ast.Call, result: Bag) -> Iterator[UnusedResult]:
    """`params, _, loss = step(params, state, x)` in a loop: the parts of which nothing reads the new value."""
    bound = list(_bound(_targets(code, call), result))
    unread = [(t, v) for t, v in bound if isinstance(t, ast.Name) and not _read(code, t)]
    carried = any(_is_updated(v) for t, v in bound if (t, v) not in unread)
    for name, value in unread:
        if _is_updated(value):
            yield _unused("parameters", Lost(code, call))
        elif carried and _is_state(value):
            yield _unused("state", Lost(code, call, name, _went_in(look, code, call)))


def _bound(target: ast.expr | None, value: Value | None) -> Iterator[tuple[ast.expr, Value]]:
    """What a result is unpacked into, also of tuples inside: `(params, state), losses = run_epoch(...)`."""
    if isinstance(target, ast.Tuple):
        if isinstance(value, Bag) and not value.open and len(value.items) == len(target.elts):
            for one, item in zip(target.elts, value.items, strict=True):
                yield from _bound(one, item)
    elif target is not None and value is not None:
        yield target, value


def _bound_before(code: Syntax, call: ast.Call, results: Mapping[int, Value | None]) -> Iterator[UnusedResult]:
    """`validate = partial(error, params)` before the loop that binds params anew in every turn and calls it."""
    if code.qualified(call.func) != "functools.partial":
        return
    statement, scope = code.statement(call), code.scope(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    given = {n.id for n in (*call.args[1:], *(k.value for k in call.keywords)) if isinstance(n, ast.Name)}
    uses = [r for r in code.reads(scope, target.id) if r.lineno > call.lineno] if isinstance(target, ast.Name) else []
    for use in uses:
        for loop in (one for one in code.loops(use) if one not in code.loops(call)):
            steps = [c for c in code.inside(loop, ast.Call) if id(c) in results or code.qualified(c.func) in _APPLY]
            anew = {t.id for c in steps for t, v in _bound(_targets(code, c), results.get(id(c)))
                    if isinstance(t, ast.Name) and _is_updated(v)} & given
            if anew and (where := code.parent(use)) is not None and not anew & names_in(where):
                name = min(anew)
                yield _unused("bound", Lost(code, use if isinstance(use, ast.Call) else call), name)
                return


def _of_another(code: Syntax, call: ast.Call, maker: ast.expr) -> Iterator[UnusedResult]:
    """Gradients by one argument of a step that are applied to another one."""
    if not isinstance(maker, ast.Call) or last_name(maker.func) not in _GRADIENTS | {"grad", "filter_grad"}:
        return
    scope, at = code.function(call), argument(maker, 1, "argnums")
    place = at.value if isinstance(at, ast.Constant) else 0 if at is None else None
    by = call.args[place] if isinstance(place, int) and place < len(call.args) else None
    both = last_name(maker.func) in _GRADIENTS
    grads = _second(code, call) if both else _targets(code, call)
    if scope is None or not isinstance(grads, ast.Name) or not _is_own(code, scope, by, call):
        return
    updates = [c for c in code.calls_in(scope, "update") if c.args and _means(code, c.args[0], grads)]
    targets = [_targets(code, c) for c in updates]
    made = [t.elts[0] if isinstance(t, ast.Tuple) else t for t in targets if t is not None]
    for apply in code.calls_in(scope, "apply_updates"):
        to = apply.args[0] if len(apply.args) == 2 and any(_means(code, apply.args[1], m) for m in made) else None
        if to is not None and by is not None and _is_own(code, scope, to, call) and written(to) != written(by):
            yield UnusedResult("argument", f"{written(call.func)}()", code.spot(call), written(by), other=written(to))


def _means(code: Syntax, read: ast.expr, bound: ast.expr) -> bool:
    """Whether a name is read before it is bound again."""
    if not isinstance(read, ast.Name) or not isinstance(bound, ast.Name) or read.id != bound.id:
        return False
    before = [s for s, _ in code.bindings(read) if s.lineno < read.lineno]
    return bool(before) and max(before, key=lambda s: s.lineno) is code.statement(bound)


def _is_own(code: Syntax, scope: ast.FunctionDef | ast.AsyncFunctionDef, node: ast.expr | None, call: ast.Call) -> bool:
    """Whether it is a parameter of a function, or of one around it, as the caller gave it until a call."""
    around = (scope, *(a for a in code.above(scope) if isinstance(a, FunctionNode)))
    return isinstance(node, ast.Name) and any(node.id in parameters(a) for a in around) and all(
        s.lineno > call.lineno for s, _ in code.bindings(node)) and not code.loops(call)


def _is_updated(value: Value) -> bool:
    if isinstance(value, Symbol):
        names = [p.name for p in parts(value) if isinstance(p, Symbol)]
        return any(n.startswith(("apply_gradients@", *(f"{a}@" for a in _APPLY))) for n in names[:2])
    return isinstance(value, Table) and any(_is_updated(v) for v in value.items.values())


def _is_state(value: Value) -> bool:
    """Whether it is the second of what an optimizer's update returned."""
    update = value.parent if isinstance(value, Symbol) and (value.role, value.name) == ("item", "1") else None
    return (isinstance(update, Symbol) and update.role == "call" and update.name.startswith("update@")
            and _has_moments(update.parent) is True)


def _went_in(look: Lookup, code: Syntax, call: ast.Call) -> ast.expr | None:
    """The argument of a step that becomes the state of its one update."""
    for where, step in look.functions.get(last_name(call.func), ()):
        given = [argument(c, 1, "state") for c in where.calls_in(step, "update")]
        own = list(parameters(step))
        if len(given) == 1 and isinstance(given[0], ast.Name) and given[0].id in own:
            return argument(call, own.index(given[0].id), given[0].id)
    return None


# --- batch statistics

def _statistics(project: Project, look: Lookup) -> Iterator[UnusedResult]:
    """The first apply with mutable statistics, where no line of the project puts new ones anywhere."""
    for event in project.calls("apply", "apply_fn", "__call__"):
        said = event.kwargs.get("mutable")
        items = said.items if isinstance(said, Bag) else [said]
        name = next((str(i.value) for i in items if isinstance(i, Const) and i.value in ("batch_stats", "state")), "")
        code = next((c for c in look.codes if c.file is event.file), None)
        if name and code is not None and isinstance(event.node, ast.Call) and not any(
                _carries(c, n, name) for c in look.codes for n in below(c.file.tree)):  # fmt: skip
            yield _unused("statistics", Lost(code, event.node), name, Known.GUESSED)
            return


def _carries(code: Syntax, node: ast.AST, name: str) -> bool:
    """Whether a value is put under that name: a keyword, an entry of a dict, or a whole mapping merged."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("replace", "apply_gradients", "_replace"):
            return any(k.arg == name for k in node.keywords)
        return node.func.attr == "get" and name in [a.value for a in node.args if isinstance(a, ast.Constant)]
    if isinstance(node, ast.Subscript):
        made = code.origin(node.value)
        initial = isinstance(made, ast.Call) and last_name(made.func) == "init"
        return isinstance(node.slice, ast.Constant) and node.slice.value == name and not initial
    if isinstance(node, ast.Dict):
        return None in node.keys
    stored = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(t, ast.Attribute) and t.attr == name for t in stored)


def _masked(project: Project, look: Lookup) -> Iterator[UnusedResult]:
    """An optimizer under optax.masked, where nothing in the program sets what is left out to zero."""
    jax = [f for f in project.files if "jax" in f.text or "optax" in f.text]
    found = [(e, o) for e in project.calls("masked") if e.name == "optax.masked" and e.args
             for o in nested(e.args[0]) if isinstance(o, Thing) and o.type.removeprefix("optax.") in _OPTIMIZERS]
    if len(found) == 1 and not any(f.mentions(_ELSEWHERE) for f in jax):  # several complement each other
        event, one = found[0]
        code = next(c for c in look.codes if c.file is event.file)
        mask = argument(event.node, 1, "mask") if isinstance(event.node, ast.Call) else None
        if mask is not None and not _LEAVES.search(written(mask) + written(code.origin(mask))):
            text = f"optax.masked({one.type}, {written(mask)[:50]})"
            yield UnusedResult("masked", text, event.spot, one.type)
