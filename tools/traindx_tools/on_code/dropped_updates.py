"""What an update returns, lost inside the function that asked for it: a new state that the function does not hand on.

`state.apply_gradients(...)` and `optax.apply_updates(...)` whose result nothing reads, and `tx.update(...)` of which
only the updates are kept. An update made from a state that was made just before it (an inner step) is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, written

_APPLIED = frozenset({"optax.apply_updates", "equinox.apply_updates"})
_STATELESS = frozenset({"scale", "clip", "clip_by_global_norm", "clip_by_block_rms", "identity", "set_to_zero",
                        "add_decayed_weights", "scale_by_learning_rate", "zero_nans", "keep_params_nonnegative",
                        "adaptive_grad_clip", "centralize", "noisy_sgd", "sign_sgd"})  # fmt: skip
_MOMENTS = frozenset({
    "adam", "adamw", "lion", "lamb", "rmsprop", "nadam", "nadamw", "radam", "adagrad", "amsgrad", "adafactor",
    "adabelief", "adamax", "adamaxw", "novograd", "yogi", "lars", "sm3", "trace", "scale_by_adam", "scale_by_rms",
    "scale_by_lion", "scale_by_schedule", "scale_by_trust_ratio", "scale_by_amsgrad", "scale_by_rss", "scale_by_stddev",
})  # fmt: skip


@dataclass(frozen=True)
class Dropped:
    """An update whose result is lost. `known`: whether it is proved that the lost state matters; `target`: its name."""

    code: Syntax
    call: ast.Call
    kind: str
    known: bool = True
    target: ast.expr | None = None
    state: ast.expr | None = None


def dropped(look: Lookup, code: Syntax) -> Iterator[Dropped]:
    """Every update of a file whose result is lost in the function that makes it."""
    text = code.file.text
    if "apply_gradients" in text and "jax" in text and "keras" not in text and "tensorflow" not in text:
        for call in code.calls("apply_gradients"):
            keywords = {k.arg for k in call.keywords}
            if not call.args and ("grads" in keywords or None in keywords) and _unread(code, call):
                yield Dropped(code, call, "parameters")
    if "optax" not in text and "apply_updates" not in text:
        return
    for call in code.calls("apply_updates"):
        if code.qualified(call.func) in _APPLIED and _unread(code, call):
            yield Dropped(code, call, "parameters")
    for call in code.calls("update"):
        found = _state(look, code, call) if isinstance(call.func, ast.Attribute) else None
        if found is not None:
            yield found


def _unread(code: Syntax, call: ast.Call) -> bool:
    """Whether the call is a statement, or bound to a name of its function that nothing reads."""
    statement = code.parent(call)
    if isinstance(statement, ast.Expr):
        return not any(isinstance(a, (ast.With, ast.Try)) for a in code.above(statement))
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return isinstance(target, ast.Name) and not _read(code, target)


def _read(code: Syntax, target: ast.Name) -> bool:
    """Whether the scope of a name reads it anywhere, or hands it out (global, nonlocal)."""
    scope = code.scope(target)
    if not isinstance(scope, FunctionNode):
        return True
    if code.reads(scope, target.id):
        return True
    shared = [n.names for n in code.inside(scope, ast.Global)] + [n.names for n in code.inside(scope, ast.Nonlocal)]
    if any(target.id in names for names in shared):
        return True
    return bool(code.calls_in(scope, "locals", "eval", "exec"))


def _state(look: Lookup, code: Syntax, call: ast.Call) -> Dropped | None:
    """`updates, _ = tx.update(grads, state)`, `tx.update(grads, state)[0]` in a function that was given the state."""
    state = argument(call, 1, "state")
    target = _thrown(code, call)
    if state is None or target is None or not isinstance(state, (ast.Name, ast.Attribute)):
        return None
    scope = code.function(call)
    if scope is None or scope.name.startswith("test") or not _carried(code, scope, state):
        return None
    stateful = _has_moments(look, code, call.func.value) if isinstance(call.func, ast.Attribute) else None
    if stateful is False or (stateful is None and "state" not in written(state).lower()):
        return None
    handed_on = any(written(n) == written(state) for r in returned(scope) for n in _parts(r))
    if not code.calls_in(scope, "apply_updates") and not handed_on:
        return None  # the size of a step is asked for, or one is tried
    kept_old = handed_on or _only_made_once(code, state)
    return Dropped(code, call, "state", bool(stateful) and kept_old, target, state)


def _only_made_once(code: Syntax, state: ast.expr) -> bool:
    """Whether the state is an attribute of self, or a global, that `init` alone ever gives a value."""
    bound = [v for _, v in code.bindings(state)]
    return len(bound) == 1 and isinstance(bound[0], ast.Call) and last_name(bound[0].func) == "init"


def _parts(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _thrown(code: Syntax, call: ast.Call) -> ast.expr | None:
    """The target that gets the new state where nothing reads it; the subscript that leaves it out."""
    up = code.parent(call)
    if isinstance(up, ast.Subscript) and isinstance(up.slice, ast.Constant) and up.slice.value == 0:
        return up
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    second = target.elts[1]
    return second if isinstance(second, ast.Name) and not _read(code, second) else None


def _carried(code: Syntax, scope: ast.AST, state: ast.expr) -> bool:
    """Whether the state comes from outside: an argument, an attribute; not one that was made for this step alone."""
    head: ast.expr = state
    while isinstance(head, ast.Attribute):
        head = head.value
    if not isinstance(head, ast.Name):
        return False
    if isinstance(state, ast.Name) and code.bindings(state):
        own = any(code.function(s) is not None for s, _ in code.bindings(state))
        return not own and _only_made_once(code, state)
    arguments = getattr(scope, "args", None)
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} if arguments else set()
    return head.id in names and not _made_inside(code, scope, state)


def _made_inside(code: Syntax, scope: ast.AST, state: ast.expr) -> bool:
    """Whether the same attribute is set in the function (`self.opt_state = ...`)."""
    name = written(state)
    return isinstance(state, ast.Attribute) and any(
        isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and written(n) == name for n in below(scope))


def _has_moments(look: Lookup, code: Syntax, node: ast.expr, left: int = 5) -> bool | None:
    """Whether an optimizer's state matters; None where it is not known what optimizer it is."""
    if left <= 0:
        return None
    where, made = look.origin(code, node)
    if not isinstance(made, ast.Call):
        return None
    name = where.qualified(made.func)
    if not name.startswith("optax."):
        return False if name.startswith("flax.nnx") else None
    short = name.rpartition(".")[2]
    if short in ("chain", "MultiSteps", "apply_if_finite", "flatten", "masked", "with_extra_args_support"):
        known = [_has_moments(look, where, a, left - 1) for a in made.args]
        return True if True in known else None if None in known or not known else False
    if short == "sgd":
        momentum = argument(made, 1, "momentum")
        if momentum is not None and not (isinstance(momentum, ast.Constant) and momentum.value is None):
            return True
        _, rate = look.origin(where, made.args[0]) if made.args else (where, None)
        return isinstance(rate, ast.Call) and "schedule" in last_name(rate.func)
    return True if short in _MOMENTS else False if short in _STATELESS else None
