"""Inputs and labels of a batch are taken by different rows.

`x[order[i:j]], y[i:j]`: the inputs come in a shuffled order, the labels in the order of the file; or each of the two is
indexed by a permutation of its own. Every label then belongs to another sample, and nothing but their frequencies can
be learned. One array of row numbers has to index both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C329",
    name="rows-indexed-apart",
    title="Inputs and labels of a batch are taken by different rows",
    severity=Severity.CRITICAL,
    sees="Inputs that are indexed by shuffled or drawn row numbers, beside labels that are sliced, or indexed by other "
         "row numbers.",
    matters="Labels are random with respect to the inputs: the loss stays at that of guessing.",
    alike=("labels that were put into the same order before", "mixup, which pairs a batch with a shuffled copy"),
    confirm=("print a few (input, label) pairs as they reach the loss",),
)  # fmt: skip
_PART = r"(_?(tr|train|training|all|full|data|np|arr))?\d?"
_INPUTS = re.compile(rf"(train_|all_)?(x|xs|images?|imgs|inputs?|features?|sequences|texts|tokens|waves){_PART}", re.I)
_LABELS = re.compile(rf"(train_|all_)?(y|ys|labels?|targets?|classes|digits){_PART}", re.IGNORECASE)
_PERMUTES = frozenset({"permutation", "randperm", "argsort"})
_DRAWS = frozenset({"randint", "choice", "integers", "sample"})
_REORDERS = frozenset({"take", "shuffle", "permutation", "index_select"})
_MIXED = re.compile(r"mix|contrast|negative|mismatch|permuted|null|baseline|bootstrap|swap", re.IGNORECASE)


@dataclass(frozen=True)
class _Rows:
    """Which rows: "slice", "permuted" or "drawn", and the draw that they come from."""

    kind: str
    draw: ast.expr | None


def check(project: Project) -> Iterator[Finding]:
    """Look at inputs and labels that are indexed side by side."""
    for file in project.files:
        if not any(w in file.text for w in (*_PERMUTES, *_DRAWS)) or not any(
                w in file.text for w in ("torch", "jax", "numpy", "tensorflow")):  # fmt: skip
            continue
        code = syntax(file)
        for one, other in _pairs(code):
            body = code.function(one)
            if _MIXED.search(getattr(body, "name", "")) or _reordered(code, one) or _reordered(code, other):
                continue
            a, b = _rows(code, one.slice), _rows(code, other.slice)
            if a is not None and b is not None:
                yield from _judged(code, one, other, a, b)
        yield from _shuffled(code)


def _pairs(code: Syntax) -> Iterator[tuple[ast.Subscript, ast.Subscript]]:
    """(inputs[...], labels[...]) in one call or tuple, or in two assignments that follow each other."""
    groups: list[list[ast.expr]] = [list(t.elts) for t in code.of(ast.Tuple)]
    groups += [[*c.args, *(k.value for k in c.keywords)] for c in code.of(ast.Call)]
    groups += [list(d.values) for d in code.of(ast.Dict)]
    for first in code.of(ast.Assign):
        block = getattr(code.parent(first), "body", [])
        at = block.index(first) if isinstance(block, list) and first in block else -1
        after = block[at + 1] if 0 <= at < len(block) - 1 else None
        if isinstance(after, ast.Assign):
            groups.append([first.value, after.value])
    for group in groups:
        held = [s for v in group if (s := _held(v)) is not None]
        inputs = [s for s in held if _INPUTS.fullmatch(last_name(s.value))]
        labels = [s for s in held if _LABELS.fullmatch(last_name(s.value))]
        if len(inputs) == len(labels) == 1:
            yield inputs[0], labels[0]


def _shuffled(code: Syntax) -> Iterator[Finding]:
    """`x = permutation(key, x)` and `y = permutation(other_key, y)` in one function."""
    found: dict[int, list[tuple[ast.Assign, ast.Call, str]]] = {}
    for call in code.calls("permutation"):
        statement, full = code.parent(call), code.qualified(call.func)
        place = 1 if full == "jax.random.permutation" else 0
        array = call.args[place] if len(call.args) > place else None
        if isinstance(statement, ast.Assign) and isinstance(array, ast.Name) and written(
                statement.targets[0]) == array.id:  # fmt: skip
            found.setdefault(id(code.scope(call)), []).append((statement, call, array.id))
    for group in found.values():
        inputs = [g for g in group if _INPUTS.fullmatch(g[2])]
        labels = [g for g in group if _LABELS.fullmatch(g[2])]
        if len(inputs) != 1 or len(labels) != 1 or _MIXED.search(getattr(code.function(inputs[0][0]), "name", "")):
            continue
        (one, first, x), (_, second, y) = inputs[0], labels[0]
        keyed = code.qualified(first.func) == "jax.random.permutation"
        same = keyed and written(first.args[0]) == written(second.args[0])
        if not same and not _seeded(code, first, second):
            yield RULE.finding(
                f"{written(one)[:70]} at {code.at(one)} shuffles {x}, and {y} is shuffled by another draw at line "
                f"{second.lineno}: labels do not belong to their inputs",
                code.place(one), code.file.path, bearing=Bearing.CAUSE, measured={"kind": "two draws"},
            )  # fmt: skip


def _held(node: ast.expr) -> ast.Subscript | None:
    """The subscript inside `jnp.asarray(x[rows])`, `x[rows].to(device)`."""
    for _ in range(4):
        if isinstance(node, ast.Subscript):
            return node if isinstance(node.value, (ast.Name, ast.Attribute)) else None
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Attribute) and last_name(node.func) in ("to", "cuda", "float", "long", "astype"):
            node = node.func.value
        elif len(node.args) >= 1 and last_name(node.func) in ("asarray", "array", "tensor", "from_numpy", "as_tensor"):
            node = node.args[0]
        else:
            return None
    return None


def _reordered(code: Syntax, node: ast.Subscript) -> bool:
    """Whether the array was put into an order of its own before: `y = y[order]`."""
    name = node.value
    if not isinstance(name, ast.Name):
        return False
    return any(
        last_name(v.func) in _REORDERS if isinstance(v, ast.Call) else
        isinstance(v, ast.Subscript) and not isinstance(v.slice, ast.Constant)
        for _, v in code.bindings(name)
    )  # fmt: skip


def _rows(code: Syntax, index: ast.expr) -> _Rows | None:
    if isinstance(index, ast.Tuple):
        index = index.elts[0] if index.elts else index
    if isinstance(index, ast.Slice):
        return _Rows("slice", None) if index.step is None and (index.lower or index.upper) is not None else None
    for _ in range(6):
        made = code.origin(index)
        if isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Slice):
            index = made.value
        elif isinstance(made, ast.Call) and last_name(made.func) in ("asarray", "array", "numpy", "tensor", "to"):
            inner = made.args[0] if made.args else getattr(made.func, "value", None)
            if not isinstance(inner, ast.expr):
                return None
            index = inner
        elif isinstance(made, ast.Call) and last_name(made.func) in (*_PERMUTES, *_DRAWS):
            return _Rows("permuted" if last_name(made.func) in _PERMUTES else "drawn", made)
        else:
            return None
    return None


def _judged(code: Syntax, one: ast.Subscript, other: ast.Subscript, a: _Rows, b: _Rows) -> Iterator[Finding]:
    if a.kind == b.kind == "slice" or a.draw is b.draw:
        return
    if a.draw is not None and b.draw is not None and _seeded(code, a.draw, b.draw):
        return
    how = {"slice": "in the order of the file", "permuted": "in a shuffled order", "drawn": "by drawn row numbers"}
    apart = a.draw is not None and b.draw is not None
    says = f"{how[a.kind]}, {written(other)} {'by a draw of its own' if apart else how[b.kind]}"
    patch: tuple[Patch, ...] = ()
    plain = not isinstance(one.slice, ast.Tuple) and not isinstance(other.slice, ast.Tuple)
    if plain and isinstance(one.slice, ast.Name) and isinstance(other.slice, ast.Slice):
        patch = Change(code.file, "by the same rows").replace(other.slice, one.slice.id).patches()
    elif plain and isinstance(other.slice, ast.Name) and isinstance(one.slice, ast.Slice):
        patch = Change(code.file, "by the same rows").replace(one.slice, other.slice.id).patches()
    yield RULE.finding(
        f"{source_of(code.file, one)} at {code.at(one)} is taken {says}: labels do not belong to their inputs",
        code.place(one),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "two draws" if apart else "one in order"},
        patch=patch,
    )


def _seeded(code: Syntax, a: ast.expr, b: ast.expr) -> bool:
    """Whether the two draws may be the same: equal keys, or a generator or seed made for each."""
    text = written(a)
    return (text == written(b) and ("key" in text or "rng(" in text or "seed" in text or "argsort" in text)) or any(
        last_name(c.func) in ("seed", "manual_seed", "set_state") for c in code.of(ast.Call)
        if code.scope(c) is code.scope(a))  # fmt: skip
