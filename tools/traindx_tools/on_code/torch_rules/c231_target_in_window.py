"""The input window contains the value that is to be predicted.

A window `series[i : i + n]` ends before the element n; its target is `series[i + n]`. Where the window reaches one
further, or the target lies one earlier, the answer stands at the end of the input: the model learns to copy it, in
training and in validation alike, since both are cut the same way. Both look perfect; on real data, where the future is
not known, the model is worth nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.linear_forms import difference
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written

(RULE,) = pages("data", ("C231",))
_TARGET = re.compile(
    r"(^|_)(y|ys|targets?|labels?|next|nxts?|answers?|futures?|goals?|outputs?|outs?|truths?|tgts?)($|_|\d)",
    re.IGNORECASE,
)
_MASKS = re.compile(r"mask|noise|corrupt|denois|inpaint|drop", re.IGNORECASE)


_LIBRARIES = ("torch", "jax", "tensorflow", "keras", "numpy", "pandas", "polars", "sklearn")


@dataclass(frozen=True)
class _Part:
    """A piece of a sequence: `node` is the subscript, `index` its slice or position, `rest` the other axes as text."""

    node: ast.Subscript
    base: str
    index: ast.expr
    rest: tuple[str, ...]


def check(project: Project) -> Iterator[Finding]:
    """Look at every window that has an element of its own sequence beside it."""
    for file in project.files:
        if not any(library in file.text for library in _LIBRARIES):
            continue  # a parser of texts has windows too
        code = syntax(file)
        parts: dict[tuple[int, str], list[_Part]] = {}
        for node in code.of(ast.Subscript):
            part = _part(node)
            if part is not None:
                parts.setdefault((id(code.scope(node)), part.base), []).append(part)
        for group in parts.values():
            yield from _judged(code, group)


def _part(node: ast.Subscript) -> _Part | None:
    if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    axes = node.slice.elts if isinstance(node.slice, ast.Tuple) and node.slice.elts else [node.slice]
    return _Part(node, written(node.value), axes[0], tuple(written(e) for e in axes[1:]))


def _judged(code: Syntax, group: list[_Part]) -> Iterator[Finding]:
    windows = [p for p in group if isinstance(p.index, ast.Slice) and p.index.upper and p.index.step is None]
    if not windows:
        return
    singles = [p for p in group if not isinstance(p.index, (ast.Slice, ast.Constant)) and _is_target(code, p.node)]
    for window in windows:
        upper = window.index.upper if isinstance(window.index, ast.Slice) else None
        if upper is None or not singles or _is_target(code, window.node):
            continue
        for single in singles:
            fits = _same_sample(code, window.node, single.node) and _covers(window, single)
            if fits and difference(code, upper, single.index) == 1.0 and not _hides(code, window.node):
                yield _finding(code, window, single)
                return


def _hides(code: Syntax, node: ast.AST) -> bool:
    """Whether the function hides parts of its input on purpose."""
    return bool(_MASKS.search(written(code.scope(node))[:4000]))


def _covers(window: _Part, single: _Part) -> bool:
    """Whether the other axes of the window hold those of the target."""
    return window.rest == single.rest or all(r == ":" for r in window.rest)


def _same_sample(code: Syntax, one: ast.AST, other: ast.AST) -> bool:
    """Whether both are cut in the same loop, comprehension or function without one."""
    kinds = (ast.For, ast.While, ast.ListComp, ast.FunctionDef)
    around = [next((id(a) for a in code.above(n) if isinstance(a, kinds)), 0) for n in (one, other)]
    return around[0] == around[1] or _aligned(code, one, other)


def _aligned(code: Syntax, one: ast.AST, other: ast.AST) -> bool:
    """Two comprehensions over equal ranges."""
    over = [next((written(a.generators[0]) for a in code.above(n) if isinstance(a, ast.ListComp)), None)
            for n in (one, other)]  # fmt: skip
    return over[0] is not None and over[0] == over[1]


def _is_target(code: Syntax, node: ast.AST) -> bool:
    """Whether a piece is named as a target: by its variable, the list that takes it, its key, its place in a pair."""
    inner: ast.AST = node
    for up in code.above(node):
        if isinstance(up, (ast.Assign, ast.AnnAssign)):
            targets = up.targets if isinstance(up, ast.Assign) else [up.target]
            names = [t for t in targets if not isinstance(t, ast.Tuple)]
            for pair in (t for t in targets if isinstance(t, ast.Tuple)):
                if isinstance(up.value, ast.Tuple) and inner in up.value.elts and len(pair.elts) == len(up.value.elts):
                    names.append(pair.elts[up.value.elts.index(inner)])
            return any(_TARGET.search(last_name(n.value if isinstance(n, ast.Subscript) else n)) for n in names)
        if isinstance(up, ast.Call) and last_name(up.func) in ("append", "add", "put") and \
                isinstance(up.func, ast.Attribute):  # fmt: skip
            if isinstance(inner, ast.Tuple):
                return len(inner.elts) == 2 and any(n is node for n in below(inner.elts[1]))
            return bool(_TARGET.search(last_name(up.func.value)))
        if isinstance(up, ast.Dict) and inner in up.values:
            key = up.keys[up.values.index(inner)]
            return isinstance(key, ast.Constant) and bool(_TARGET.search(str(key.value)))
        if isinstance(up, (ast.Return, ast.Yield)):
            return isinstance(inner, ast.Tuple) and len(inner.elts) == 2 and \
                any(n is node for n in below(inner.elts[1]))  # fmt: skip
        if isinstance(up, ast.stmt):
            return False
        inner = up
    return False


def _finding(code: Syntax, window: _Part, single: _Part) -> Finding:
    return RULE.finding(
        f"the window {written(window.node)} at {code.at(window.node)} ends with {written(single.node)} "
        f"(line {single.node.lineno}), the value that it is to predict",
        code.place(window.node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "window", "window": written(window.node), "target": written(single.node)},
    )
