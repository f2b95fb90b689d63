"""The weight of its class for every sample of a weighted sampler (C294)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written

_COUNTS = ("bincount", "Counter", "value_counts", "unique")
_DEEP = 8


def of_each_sample(every: Sequence[Syntax], code: Syntax, weights: ast.expr) -> tuple[Patch, ...]:
    """`weights[labels]`, or `[weights[k] for k in labels]` of a list, where the labels that were counted are known."""
    labels = set(_labels(every, code, weights, _DEEP))
    if len(labels) != 1 or not isinstance(weights, (ast.Name, ast.Attribute, ast.Call)):
        return ()
    counted = labels.pop()
    text = source_of(code.file, weights)
    made = code.origin(weights)
    change = Change(code.file, "give every sample the weight of its class")
    if isinstance(made, (ast.ListComp, ast.List)) and isinstance(weights, ast.Name):
        return change.replace(weights, f"[{text}[k] for k in {counted}]").patches()
    array = isinstance(made, (ast.BinOp, ast.Call)) and last_name(getattr(made, "func", None)) not in (
        "list", "tolist", "Counter", "dict", "values")  # fmt: skip
    return change.replace(weights, f"{text}[{counted}]").patches() if array else ()


def _labels(every: Sequence[Syntax], code: Syntax, node: ast.expr, left: int) -> Iterator[str]:
    """What is counted on the way to the weights, as it is written where the sampler is made."""
    made = code.origin(node)
    for call in (n for n in below(made) if isinstance(n, ast.Call)):
        if last_name(call.func) in _COUNTS:
            what = call.func.value if last_name(call.func) == "value_counts" and isinstance(
                call.func, ast.Attribute) else call.args[0] if call.args else None  # fmt: skip
            text = _plain(what)
            if text is not None:
                yield text
        elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, (ast.Name, ast.Attribute)):
            owner = written(call.func.value)
            yield from (t.replace("self.", f"{owner}.", 1) for t in _counted_in(every, last_name(call.func), call))
    for name in (n for n in below(made) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
        before = code.assigned(name) if left > 0 else None
        if before is not None and before is not made:
            yield from _labels(every, code, before, left - 1)


def _counted_in(every: Sequence[Syntax], name: str, call: ast.Call) -> Iterator[str]:
    """What a method without arguments counts of its own object."""
    own = [(c, f) for c in every for f in c.functions(name) if c.owner(f) is not None]
    if len(own) != 1 or call.args or call.keywords:
        return
    for inner in (n for n in below(own[0][1]) if isinstance(n, ast.Call) and last_name(n.func) in _COUNTS):
        text = _plain(inner.args[0] if inner.args else None)
        if text is not None and text.startswith("self."):
            yield text


def _plain(node: ast.expr | None) -> str | None:
    """A name or attribute, without what only changes its form: `self.label` of `self.label.tolist()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (
            "tolist", "numpy", "cpu", "long", "flatten"):  # fmt: skip
        node = node.func.value
    return written(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
