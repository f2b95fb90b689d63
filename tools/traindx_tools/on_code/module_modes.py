"""Modes of stateful JAX modules: nnx models that stay in evaluation mode, equinox models that never enter it.

`model.eval()` of nnx changes the model itself, as in torch: a training loop that evaluates and never calls `train()`
goes on without dropout and with BatchNorm's running statistics. An equinox model is in training mode until
`eqx.nn.inference_mode` makes another one of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written
from traindx_tools.on_code.tracing import GRADIENTS, differentiated

_MODAL = re.compile(r"\b(Dropout|BatchNorm|AlphaDropout|SpectralNorm)\b")
_COPIES = frozenset({"merge", "clone", "deepcopy", "view", "copy"})
_OTHERS = re.compile(r"teacher|target|ref\b|reference|frozen|ema|expert|backbone|extractor|vae|encoder", re.IGNORECASE)
_EVALUATES = re.compile(r"_?(eval|validat|valid_|test_|predict|infer|accuracy|sample_|generate)", re.IGNORECASE)
_TOLD = frozenset({"deterministic", "use_running_average", "train", "training", "is_training"})
_DEEP = 3


@dataclass(frozen=True)
class Left:
    """A mode that is never changed back, or never set. `kind`: loop, before, called, inference, key."""

    code: Syntax
    node: ast.Call
    kind: str
    loop: tuple[Syntax, ast.AST] | None = None


def modal(look: Lookup, word: str) -> bool:
    """Whether a project holds layers that have a mode, beside a library's name."""
    return any(word in c.file.text for c in look.codes) and any(c.file.mentions(_MODAL) for c in look.codes)


# --- nnx


def never_undone(look: Lookup) -> Iterator[Left]:
    """`model.eval()` in, before or called from a loop that trains, and no `train()` there."""
    told: set[int] = set()
    for code in look.codes:
        if "nnx" not in code.file.text or ".eval()" not in code.file.text:
            continue
        for call in code.calls("eval"):
            if not isinstance(call.func, ast.Attribute) or call.args or call.keywords or _copied(code, call.func.value):
                continue
            for kind, where, loop in _loops(look, code, call):
                if id(call) not in told and not _puts_back(look, where, loop) and not _told(look, where, loop):
                    told.add(id(call))
                    yield Left(code, call, kind, (where, loop))


def _copied(code: Syntax, model: ast.expr) -> bool:
    made = code.origin(model)
    copied = isinstance(made, ast.Call) and last_name(made.func) in _COPIES
    return copied or _OTHERS.search(written(model)) is not None or not isinstance(model, (ast.Name, ast.Attribute))


def _loops(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[tuple[str, Syntax, ast.AST]]:
    """The loops that train and in which this call runs, or that follow it."""
    here = [x for x in code.loops(call) if _trains(look, code, x)]
    if here:
        yield "loop", code, here[0]
        return
    function = code.function(call)
    if function is not None and any(_is_train(n) for n in below(function)):
        return
    if function is not None and not any(_is_gradient(code, n) for n in below(function)):
        for where, used in look.callers(function, code) if isinstance(function, ast.FunctionDef) else ():
            yield from (("called", where, x) for x in where.loops(used)[:1] if _trains(look, where, x))
    statement = code.statement(call)
    body = getattr(code.parent(statement), "body", []) if statement is not None else []
    for later in body if isinstance(body, list) else []:
        if isinstance(later, (ast.For, ast.While)) and statement and later.lineno > statement.lineno:
            between = [s for s in body if statement.lineno < s.lineno < later.lineno]
            if _trains(look, code, later) and not any(_is_train(n) for s in between for n in below(s)):
                yield "before", code, later
            return


def _called(look: Lookup, code: Syntax, node: ast.AST, left: int = _DEEP) -> Iterator[tuple[Syntax, ast.AST]]:
    """What runs in a loop: its own nodes and those of the project's functions that it calls."""
    yield code, node
    if left <= 0:
        return
    for call in (n for n in below(node) if isinstance(n, ast.Call)):
        found = look.function(code, call.func)
        if found is not None and not isinstance(found[1], ast.Lambda):
            yield from _called(look, found[0], found[1], left - 1)


def _trains(look: Lookup, code: Syntax, loop: ast.AST) -> bool:
    return any(_is_gradient(c, n) for c, part in _called(look, code, loop) for n in below(part))


def _is_gradient(code: Syntax, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and code.qualified(node.func) in GRADIENTS


def _is_train(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "set_attributes":
        return True
    mode = argument(node, 0, "mode")
    return node.func.attr == "train" and not (isinstance(mode, ast.Constant) and mode.value is False)


def _puts_back(look: Lookup, code: Syntax, loop: ast.AST) -> bool:
    return any(_is_train(n) for _, part in _called(look, code, loop) for n in below(part))


def _told(look: Lookup, code: Syntax, loop: ast.AST) -> bool:
    """Whether the training says the mode at each call."""
    return any(isinstance(n, ast.keyword) and n.arg in _TOLD for _, part in _called(look, code, loop)
               for n in below(part))  # fmt: skip


# --- equinox


def never_in_inference(look: Lookup) -> Iterator[Left]:
    """Evaluations of an equinox model with a mode, in a project that trains and never names inference."""
    if any(_names_inference(c) for c in look.codes):
        return
    models = modal_classes(look)
    trained = {f.name for c in look.codes for _, f in differentiated(c)}
    if not models or not trained:
        return
    inner = trained | {last_name(n.func) for c in look.codes for _, f in differentiated(c) for n in below(f)
                       if isinstance(n, ast.Call)}  # fmt: skip
    for code in look.codes:
        yield from _evaluated(look, code, models, inner)


def _names_inference(code: Syntax) -> bool:
    if "inference" not in code.file.text:
        return False
    return bool(code.calls("inference_mode", "tree_inference")) or any(
        k.arg == "inference" for k in code.of(ast.keyword)) or any(
        n.attr in ("inference", "inference_mode") for n in code.of(ast.Attribute)) or any(
        isinstance(n.value, str) and n.value == "inference" for n in code.of(ast.Constant))  # fmt: skip


def modal_classes(look: Lookup) -> set[str]:
    """The equinox modules of a project that make layers with a mode."""
    known: set[str] | None = look.__dict__.get("_modal_classes")
    if known is None:
        codes = [c for c in look.codes if "equinox" in c.file.text and c.file.mentions(_MODAL)]
        known = look.__dict__["_modal_classes"] = {
            k.name for c in codes for k in c.of(ast.ClassDef) if _has_mode(c, k)}  # fmt: skip
    return known


def _has_mode(code: Syntax, kind: ast.ClassDef) -> bool:
    """Whether a module makes layers that have a mode itself."""
    if not any(code.qualified(b) == "equinox.Module" for b in kind.bases):
        return False
    for call in (n for n in below(kind) if isinstance(n, ast.Call)):
        if code.qualified(call.func) in ("equinox.nn.Dropout", "equinox.nn.BatchNorm"):
            rate = argument(call, 0, "p")
            if not (isinstance(rate, ast.Constant) and rate.value in (0, 0.0)):
                return True
    return False


def _evaluated(look: Lookup, code: Syntax, models: set[str], inner: set[str]) -> Iterator[Left]:
    """Calls of such a model without a key, or in functions that only evaluate."""
    told: set[int] = set()
    for call in code.of(ast.Call):
        model = call.func
        if isinstance(model, ast.Call) and last_name(model.func) in ("vmap", "filter_vmap", "jit", "filter_jit"):
            model = model.args[0] if model.args else model
        if not isinstance(model, (ast.Name, ast.Attribute)) or not _made_of(look, code, model, models):
            continue
        function = code.function(call)
        name = function.name if isinstance(function, FunctionNode) else ""
        given = [*call.args, *(k.value for k in call.keywords)]
        if len(given) > 1 and any(isinstance(a, ast.Constant) and a.value is None for a in given):
            yield Left(code, call, "key")
        elif name and _EVALUATES.match(name) and name not in inner and id(function) not in told:
            told.add(id(function))
            yield Left(code, call, "inference")


def _made_of(look: Lookup, code: Syntax, model: ast.expr, models: set[str]) -> bool:
    """Whether a name holds one of these models: made here, or an argument that some caller gives one."""
    _, made = look.origin(code, model)
    if isinstance(made, ast.Call):
        return last_name(made.func) in models
    function = code.function(model)
    if not isinstance(model, ast.Name) or not isinstance(function, ast.FunctionDef):
        return any(last_name(v.func) in models for _, v in code.bindings(model) if isinstance(v, ast.Call))
    if model.id not in parameters(function):
        return any(last_name(v.func) in models for _, v in code.bindings(model) if isinstance(v, ast.Call))
    said = next((a.annotation for a in function.args.args if a.arg == model.id), None)
    if said is not None and last_name(said) in models:
        return True
    spec = [n for n in parameters(function) if n not in ("self", "cls")]
    for where, used in look.callers(function, code):
        given = argument(used, spec.index(model.id) if model.id in spec else -1, model.id)
        values = [v for _, v in where.bindings(given)] if isinstance(given, (ast.Name, ast.Attribute)) else []
        if any(isinstance(v, ast.Call) and last_name(v.func) in models for v in values):
            return True
    return False
