"""vmap maps the inputs of a batch and leaves its targets whole.

`vmap(loss, in_axes=(None, 0, None))(params, xs, ys)` gives the loss one row of xs and all of ys. The difference
broadcasts, so nothing raises: every prediction is compared with every target, and the mean of the targets is the best
answer for each input. The loss stops at the variance of the targets. Seen where inputs and targets certainly belong
together (unpacked from one batch, taken with one index, or named in the plural for the call and in the singular inside)
and only the inputs are mapped. What all rows share on purpose (parameters, keys, a memory of keys and values, a table
that is indexed) is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import (
    FunctionNode,
    Syntax,
    argument,
    last_name,
    names_in,
    parameters,
    syntax,
    written,
)
from traindx_tools.on_code.tracing import GRADIENTS, calls_of, function_of
from traindx_tools.rules import Rule

RULE = Rule(
    id="C527",
    name="target-not-mapped",
    title="vmap maps the inputs and not their targets",
    severity=Severity.HIGH,
    sees="in_axes with None for the targets and 0 for the inputs of the same batch.",
    matters="Every row is compared with all targets: the model learns their mean and nothing else.",
    alike=("queries that are compared with a whole memory on purpose", "an ensemble over one batch"),
    confirm=("print(targets.shape) inside the mapped function: it should have lost its first axis",),
)
_TARGET = re.compile(
    r"(y|t|ys|yb|yt|target|label|gt|truth|answer|tgt|lbl|y_?true|return|advantage|reward|expected|response|outcome)s?"
    r"|(\w+_)(target|label|truth|y)s?|(target|label|batch|y|true|train)_(y|\w*(label|target|y|batch|train|value)s?)",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"(\w+_)?(params?|parameters|variables|weights?|theta|states?|keys?|rngs?|prng|seeds?|models?|nets?|network|members?"
    r"|ensemble|config|cfg|lrs?|scale|temperature|betas?|sigma|apply_fn|fn|static|arrays|self|w|b|phi|stats|tx|dt)",
    re.IGNORECASE,
)
_PAIRWISE = re.compile(
    r"(logsumexp|argmin|argmax|argsort|top_k|cdist|isin|take|sort|segment_\w+|dot|vdot|inner|einsum|vmap|scan|map)\("
)
"""What compares one row with many on purpose."""
_VMAPS = frozenset({"jax.vmap", "equinox.filter_vmap"})
_WRAPPERS = frozenset({*GRADIENTS, "jax.jit", "jax.checkpoint", "jax.remat", "functools.partial", "equinox.filter_jit"})
_BATCH = re.compile(r"batch|data|sample|example|^b$", re.IGNORECASE)
_MOST_CALLERS = 3
"""Calls that are followed outwards to where a batch comes from."""


@dataclass(frozen=True)
class _Use:
    """A mapped function with one call of it: `given` are the call's arguments, `inside` the function's names."""

    code: Syntax
    axes: ast.Tuple | ast.List
    call: ast.Call
    given: list[ast.expr]
    inside: list[str]
    function: ast.AST


def check(project: Project) -> Iterator[Finding]:
    """Look at every vmap with axes, and at each call of what it gives."""
    files = [f for f in project.files if "vmap" in f.text or "jax" in f.text]
    codes = [syntax(f) for f in files]
    for code in codes:
        if "in_axes" not in code.file.text:
            continue
        for use in _uses(code):
            for position in range(len(use.axes.elts)):
                finding = _judged(codes, use, position)
                if finding is not None:
                    yield finding


def _uses(code: Syntax) -> Iterator[_Use]:
    """vmap(f, in_axes)(...), g = vmap(f, in_axes) with g(...), and a decorated function with its calls."""
    for call in code.calls("vmap", "filter_vmap"):
        axes = argument(call, 1, "in_axes")
        if code.qualified(call.func) not in _VMAPS or not isinstance(axes, (ast.Tuple, ast.List)):
            continue
        function = _mapped(code, argument(call, 0, "fun"))
        for used in calls_of(code, call, _WRAPPERS) if function is not None else ():
            yield from _use(code, axes, used, function)
    for function in code.of(ast.FunctionDef):
        for decorator in (d for d in function.decorator_list if isinstance(d, ast.Call)):
            made = decorator.args[0] if last_name(decorator.func) == "partial" and decorator.args else decorator.func
            axes = argument(decorator, 99, "in_axes")
            if code.qualified(made) in _VMAPS and isinstance(axes, (ast.Tuple, ast.List)):
                for used in code.calls(function.name):
                    yield from _use(code, axes, used, function)


def _use(code: Syntax, axes: ast.Tuple | ast.List, used: ast.Call, function: ast.AST | None) -> Iterator[_Use]:
    if isinstance(function, (ast.FunctionDef, ast.Lambda)) and not used.keywords:
        inside = [n for n in parameters(function) if n not in ("self", "cls")]
        if len(used.args) == len(axes.elts) <= len(inside):
            yield _Use(code, axes, used, used.args, inside, function)


def _mapped(code: Syntax, node: ast.expr | None) -> ast.AST | None:
    """The function that is mapped, through jit, grad and relatives."""
    for _ in range(3):
        node = code.origin(node) if isinstance(node, ast.Name) and function_of(code, node) is None else node
        if isinstance(node, ast.Call) and code.qualified(node.func) in _WRAPPERS and len(node.args) == 1:
            node = node.args[0]
    if isinstance(node, ast.Lambda):
        return node
    if isinstance(node, ast.Attribute) and written(node.value) == "self":
        owner = code.owner(node)
        return next((f for f in code.functions(node.attr) if code.owner(f) is owner), None)
    return function_of(code, node)


def _judged(codes: list[Syntax], use: _Use, position: int) -> Finding | None:
    code, axes = use.code, use.axes.elts
    given, name = use.given[position], use.inside[position]
    outer = last_name(_bare(given)) or (_entry(given) or "")
    if not _is_none(axes[position]) or not (_TARGET.fullmatch(outer) and _TARGET.fullmatch(name)):
        return None
    others = [i for i in range(len(axes)) if i != position and not _STATE.fullmatch(use.inside[i])]
    mapped = [i for i in others if isinstance(axes[i], ast.Constant) and axes[i].value == 0]  # type: ignore[attr-defined]
    if not mapped or len(mapped) != len(others) or not _meets(use, name, mapped):
        return None
    partner = next((i for i in mapped if _together(codes, code, use.given[i], given, _MOST_CALLERS)), None)
    plural = _singular(outer, name) and any(
        _singular(last_name(_bare(use.given[i])), use.inside[i]) for i in mapped)  # fmt: skip
    if partner is None and not plural:
        return None
    other = use.given[mapped[0] if partner is None else partner]
    return RULE.finding(
        f"{written(use.axes)} at {code.at(use.axes)} maps {written(other)} and leaves {written(given)} whole: each row "
        f"is compared with all of {written(given)}, although the two belong together row by row",
        code.place(use.axes),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "target", "argument": written(given), "position": position},
        patch=Change(code.file, "map the targets as well").replace(axes[position], "0").patches(),
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _bare(node: ast.expr) -> ast.expr:
    """y of y[idx] and of jnp.asarray(y)."""
    while isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        node = node.value
    return node


def _entry(node: ast.expr) -> str | None:
    """The key of batch["label"]."""
    key = node.slice if isinstance(node, ast.Subscript) else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def _singular(outer: str, inner: str) -> bool:
    one, several = inner.lower(), outer.lower()
    return several in (f"{one}s", f"{one}es", f"batch_{one}", f"{one}_batch")


def _meets(use: _Use, name: str, mapped: list[int]) -> bool:
    """Whether the function uses the target as a whole; not where it picks its own row of it."""
    body = use.function
    picked = [n for n in below(body) if isinstance(n, ast.Subscript) and written(n.value) == name]
    inside = {use.inside[i] for i in mapped}
    reads = [n for n in below(body) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    pairwise = _PAIRWISE.search(written(body)) is not None or any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult) and name in names_in(n) for n in below(body)
    )
    own = any(isinstance(n, ast.Name) and n.id in inside for n in below(body))
    return bool(reads) and own and not picked and not pairwise


def _together(codes: list[Syntax], code: Syntax, one: ast.expr, other: ast.expr, left: int) -> bool:
    """Whether two expressions are rows of one batch: one index, one unpacking, two entries of one dict."""
    if isinstance(one, ast.Subscript) and isinstance(other, ast.Subscript):
        same_index = written(one.slice) == written(other.slice) and not isinstance(one.slice, ast.Constant)
        entries = written(one.value) == written(other.value) and _entry(one) and _entry(other)
        return bool(same_index or (entries and _BATCH.search(written(one.value))))
    if isinstance(one, ast.Attribute) and isinstance(other, ast.Attribute):
        return written(one.value) == written(other.value) and _BATCH.search(written(one.value)) is not None
    if not isinstance(one, ast.Name) or not isinstance(other, ast.Name) or left <= 0:
        return False
    if _unpacked(code, one, other):
        return True
    first, second = code.assigned(one), code.assigned(other)
    if first is not None and second is not None:
        return _together(codes, code, first, second, left - 1)
    function = code.function(one)
    names = list(parameters(function)) if isinstance(function, FunctionNode) else []
    if one.id not in names or other.id not in names or function is None or code.bindings(one) or code.bindings(other):
        return False
    places = names.index(one.id), names.index(other.id)
    calls = ((c, call) for c in codes for call in _calls_to(c, function.name))
    return any(_passed_together(codes, c, call, places, left - 1) for c, call in calls)


def _unpacked(code: Syntax, one: ast.Name, other: ast.Name) -> bool:
    """Whether both names stand in one target: `x, y = batch`, `for x, y in loader`."""
    scope = code.scope(one)
    for node in below(scope):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.For) else None
        if isinstance(target, ast.Tuple):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                continue
            names = [n.id for n in below(target) if isinstance(n, ast.Name)]
            source = written(node.value if isinstance(node, ast.Assign) else node.iter)  # type: ignore[attr-defined]
            if one.id in names and other.id in names and not re.search(r"split|init|key", source):
                return True
    return False


def _calls_to(code: Syntax, name: str) -> Iterator[ast.Call]:
    """Calls of a function, and of jit(f), grad(f) and relatives of it."""
    yield from code.calls(name)
    for call in code.of(ast.Call):
        made = code.assigned(call.func) if isinstance(call.func, ast.Name) else call.func
        wrapped = isinstance(made, ast.Call) and code.qualified(made.func) in _WRAPPERS
        if wrapped and isinstance(made, ast.Call) and made.args and last_name(made.args[0]) == name:
            yield call


def _passed_together(codes: list[Syntax], code: Syntax, call: ast.Call, places: tuple[int, int], left: int) -> bool:
    if max(places) >= len(call.args) or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    return _together(codes, code, call.args[places[0]], call.args[places[1]], left)
