"""A causal mask points the wrong way.

A position may see itself and what was before it: query i, key j with j <= i, the lower triangle. `masked_fill(m, -inf)`
and the `attn_mask` of torch's attention layers block where the mask is true, so it has to be the upper triangle above
the diagonal; `masked_fill(m == 0, -inf)`, `where(m, scores, -inf)` and `scaled_dot_product_attention` keep where it is
true, so it has to be the lower one. Inverted, every position sees only the future; with the diagonal blocked, the first
row has nothing left and becomes NaN; a triangle of numbers (not booleans) is added to the scores and masks nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import Body, lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.triangles import Further, Triangle, is_low, triangle
from traindx_tools.on_code.values import Instance, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C176",
    name="causal-mask-direction",
    title="The causal mask points the wrong way",
    severity=Severity.HIGH,
    sees="tril or triu, its diagonal, and whether the place where it is used blocks or keeps what is true.",
    matters="The model reads its answers (a loss far too low, useless generations), or only the future, or NaN.",
    alike=("a mask that is missing", "a padding mask that is inverted"),
    confirm=("print(weights[0, 0]): everything above the diagonal has to be 0",),
)
_LAYERS = {"MultiheadAttention": 99, "TransformerEncoder": 1, "TransformerEncoderLayer": 1, "TransformerDecoder": 2,
           "TransformerDecoderLayer": 2, "Transformer": 99}  # fmt: skip
"""Layers and the position at which a mask may be given."""
_MASKS = ("attn_mask", "mask", "src_mask", "tgt_mask")
_MADE_OF = ("tril", "triu", "arange")
_BESIDE = re.compile(r"rel(ative)?_|bucket|distance|slope|alibi|bias", re.IGNORECASE)
_MOST_CALLERS = 6


def check(project: Project) -> Iterator[Finding]:
    """Look at every use of a triangular mask."""
    if not any(word in f.text for f in project.files for word in _MADE_OF):
        return
    further = _further(project)
    layers = {id(e.node): e.receiver.short for e in project.calls("__call__")
              if isinstance(e.receiver, Thing) and e.receiver.short in _LAYERS and
              e.receiver.type.startswith("torch.")}  # fmt: skip
    seen: set[int] = set()
    for file in project.files:
        if not any(word in file.text for word in ("masked_fill", "where", "mask", "attn", "softmax")):
            continue
        code = syntax(file)
        for use, blocked in _uses(code, layers, further):
            why = _wrong(blocked)
            if why is not None and id(use) not in seen:
                seen.add(id(use))
                made = blocked.made
                far = "" if made is None or (made[0] is file and abs(made[1].lineno - getattr(use, "lineno", 0)) < 3) \
                    else f" (made at {made[0].path}:{made[1].lineno})"  # fmt: skip
                yield RULE.finding(
                    f"{code.file.segment(use)} at {code.at(use)} {why[1]}{far}",
                    code.place(use),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": why[0], "blocked": str(blocked)},
                    patch=forms.causal(file, use, blocked) if isinstance(use, ast.Call) else (),
                )


def _further(project: Project) -> Further:
    """What the callers of a function pass for its parameter, of a module's forward too, and what a function returns."""
    look = lookup(project)
    known: dict[tuple[int, str], list[tuple[Syntax, ast.expr]]] = {}
    forwards: dict[int, list[Event]] = {}
    for event in project.calls("__call__"):
        if isinstance(event.receiver, Instance):
            forwards.setdefault(id(event.receiver.klass.info.node), []).append(event)

    def found(code: Syntax, node: ast.expr) -> list[tuple[Syntax, ast.expr]]:
        if isinstance(node, ast.Call):
            called = look.function(code, node.func)
            return [(called[0], v) for v in returned(called[1])] if called is not None else []
        body = code.function(node) if isinstance(node, ast.Name) else None
        if not isinstance(node, ast.Name) or body is None or node.id not in parameters(body):
            return []
        if (id(body), node.id) not in known:
            known[id(body), node.id] = given(code, body, node.id)
        return known[id(body), node.id]

    def given(code: Syntax, body: Body, name: str) -> list[tuple[Syntax, ast.expr]]:
        owner = code.owner(body)
        names = [n for n in parameters(body) if n not in ("self", "cls")]
        if name not in names:
            return []
        if owner is not None and getattr(body, "name", "") in ("forward", "__call__"):
            calls = [(syntax(e.file), e.node) for e in forwards.get(id(owner), ())]
        else:
            calls = [(c, n) for c, n in look.callers(body, code)]
        passed = [(c, argument(n, names.index(name), name)) for c, n in calls if isinstance(n, ast.Call)]
        if not passed or len(passed) > _MOST_CALLERS:
            return []
        return [(c, n) for c, n in passed if n is not None] if all(n is not None for _, n in passed) else []

    return found


def _uses(code: Syntax, layers: dict[int, str], further: Further) -> Iterator[tuple[ast.Call | ast.BinOp, Triangle]]:
    """(where, the positions that it blocks) of every use of a triangle."""
    for call in code.calls("masked_fill", "masked_fill_"):
        own = isinstance(call.func, ast.Attribute) and code.qualified(call.func) != "torch.masked_fill"
        given, value = argument(call, 0 if own else 1, "mask"), argument(call, 1 if own else 2, "value")
        if is_low(code, value) and _softmax_follows(code, call):
            mask = triangle(code, given, further=further)
            if mask is not None:
                yield call, mask
    for call in code.calls("where"):
        if len(call.args) == 3 and _softmax_follows(code, call):
            mask = triangle(code, call.args[0], further=further)
            if mask is not None and is_low(code, call.args[2]):
                yield call, mask.complement()
            elif mask is not None and is_low(code, call.args[1]):
                yield call, mask
    for call in code.calls("scaled_dot_product_attention"):
        mask = triangle(code, argument(call, 3, "attn_mask"), further=further)
        if mask is not None:
            yield call, mask if mask.infinite else mask.complement() if mask.boolean else _numbers(mask)
    for call in code.of(ast.Call):
        kind = layers.get(id(call), "")
        keyword = next((k.value for k in call.keywords if k.arg in _MASKS), None)
        given = argument(call, _LAYERS[kind], *_MASKS) if kind else keyword
        if given is None or last_name(call.func) == "scaled_dot_product_attention":
            continue
        if kind or _is_layer(code, call):
            mask = triangle(code, given, further=further)
            if mask is not None:
                yield call, mask if mask.infinite or mask.boolean else _numbers(mask)
    yield from _added(code, further)


def _added(code: Syntax, further: Further) -> Iterator[tuple[ast.BinOp, Triangle]]:
    """Scores plus a triangle of -inf."""
    if "softmax" not in code.file.text:
        return
    for node in code.of(ast.BinOp):
        if not isinstance(node.op, ast.Add) or not _softmax_follows(code, node):
            continue
        for side in (node.left, node.right):
            if "mask" in written(side) or "caus" in written(side):
                mask = triangle(code, side, further=further)
                if mask is not None and mask.infinite and not _BESIDE.search(written(node)):
                    yield node, mask


def _numbers(mask: Triangle) -> Triangle:
    """A mask of 0 and 1 that is added to the scores: nothing is blocked."""
    return Triangle(mask.lower, -10_000, False, made=mask.made)


def _wrong(blocked: Triangle) -> tuple[str, str] | None:
    if blocked.offset == -10_000:
        return "numbers", "adds a triangle of numbers to the scores: it is no mask of booleans, and nothing is blocked"
    if blocked.lower:
        past = "the past and the position itself" if blocked.offset >= 0 else "the past"
        return "inverted", f"blocks {past} and lets the future through: the triangle is on the wrong side"
    if blocked.offset <= 0:
        return "diagonal", "also blocks the position itself (the diagonal): the first row has nothing left and is NaN"
    if blocked.offset >= 2:
        return "leak", f"blocks only from {blocked.offset} positions ahead on: every position sees its next token"
    return None


def _softmax_follows(code: Syntax, node: ast.AST) -> bool:
    """Whether the function around it takes a softmax; asked once for a function."""
    scope = code.scope(node)
    known: dict[int, bool] = code.file.__dict__.setdefault("_takes_softmax", {})
    if id(scope) not in known:
        known[id(scope)] = any(
            (isinstance(n, ast.Call) and last_name(n.func) in ("softmax", "log_softmax", "Softmax")) or (
                isinstance(n, ast.Attribute) and n.attr == "softmax")
            for n in below(scope)
        )  # fmt: skip
    return known[id(scope)]


def _is_layer(code: Syntax, call: ast.Call) -> bool:
    """Whether a call is that of an attention layer of torch."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return False
    made = code.origin(call.func)
    return (
        isinstance(made, ast.Call)
        and last_name(made.func) in _LAYERS
        and code.qualified(made.func).startswith("torch.")
    )
