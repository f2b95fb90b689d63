"""A classification loss of JAX gets its labels, or its log-probabilities, in another form than it reads.

`optax.softmax_cross_entropy` reads one distribution over the classes a row, `..._with_integer_labels` one class number.
One-hot rows in the second, class numbers in the first or the two arguments exchanged end in an error, or in a loss of
something else where the shapes happen to fit. By hand, `log_softmax(logits)[y]` picks whole rows of the batch and
`logp[:, y]` every label's column for every row, N x N entries, of which N are meant:
`jnp.take_along_axis(logp, y[:, None], axis=-1)`, or one-hot rows times logp.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C546",
    name="optax-target-form",
    title="A loss gets labels in another form than it reads",
    severity=Severity.HIGH,
    sees="one_hot in a loss of class numbers, class numbers in a loss of distributions, exchanged arguments, and "
         "log-probabilities that are indexed by a batch of labels.",
    matters="An error, or a loss that is not the one of the labels.",
    alike=("one example under vmap, where logp[y] is one number", "rows of soft labels"),
    confirm=("print(labels.shape, labels.dtype, loss.shape) in front of the mean",),
)
_IDS = frozenset({"softmax_cross_entropy_with_integer_labels"})
_ROWS = frozenset({"softmax_cross_entropy", "safe_softmax_cross_entropy"})
_LABELS = re.compile(r"(\w*_)?(y|ys|yb|y_?batch|y_?true|labels?|targets?|classes)(_?b)?(_batch)?", re.IGNORECASE)
_HARD = re.compile(r"(\.astype\((jnp|np|jax\.numpy|numpy)\.u?int\d*\)|dtype=(jnp|np)\.u?int\d*\)|\.argmax\(|argmax\()")


def check(project: Project) -> Iterator[Finding]:
    """Look at every such loss, and at log-probabilities that are indexed."""
    for file in project.files:
        if "jax" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls(*_IDS, *_ROWS):
            if code.qualified(call.func).startswith("optax."):
                yield from _judged(code, call, last_name(call.func))
        if "log_softmax" in file.text and "vmap" not in file.text:
            yield from (f for node in code.of(ast.Subscript) for f in _indexed(code, node))


def _judged(code: Syntax, call: ast.Call, name: str) -> Iterator[Finding]:
    logits, labels = argument(call, 0, "logits"), argument(call, 1, "labels")
    if logits is None or labels is None:
        return
    if _one_hot(code, logits) is not None:
        texts = [source_of(code.file, a) for a in (logits, labels)]
        change = Change(code.file, "logits first").replace(logits, texts[1]).replace(labels, texts[0])
        yield _finding(code, call, "exchanged", f"{name} reads (logits, labels), and gets one-hot rows as its logits",
                       Bearing.CAUSE, change.patches())  # fmt: skip
        return
    rows = _one_hot(code, labels)
    if name in _IDS and rows is not None:
        ids = source_of(code.file, rows.args[0]) if rows.args and rows is labels else None
        patch = Change(code.file, "the numbers themselves").replace(labels, ids).patches() if ids is not None else ()
        yield _finding(code, call, "one-hot", f"{name} reads one class number a row, and {written(labels)[:60]} are "
                       "one-hot rows", Bearing.CAUSE, patch)  # fmt: skip
    elif name in _ROWS and isinstance(labels, ast.Name):
        sure = _is_ids(code, labels)
        if sure is not None:
            classes = f"{source_of(code.file, logits)}.shape[-1]"
            text = f"jax.nn.one_hot({labels.id}, {classes})"
            known = "jax" in code.aliases and isinstance(logits, ast.Name)
            yield _finding(code, call, "class numbers", f"{name} reads a distribution over the classes a row, and "
                           f"{labels.id} holds class numbers (line {sure.lineno})",
                           Bearing.CAUSE if code.scope(sure) is code.scope(call) else Bearing.SIGN,
                           Change(code.file, "as rows").replace(labels, text).patches() if known else ())  # fmt: skip


def _one_hot(code: Syntax, node: ast.expr) -> ast.Call | None:
    """The call of one_hot that a value is, through casts."""
    for _ in range(4):
        node = code.origin(node)
        if isinstance(node, ast.Call) and last_name(node.func) == "one_hot":
            return node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
            node = node.func.value
        else:
            return None
    return None


def _is_ids(code: Syntax, labels: ast.Name) -> ast.expr | None:
    """Where it is seen that labels are numbers: argmax == labels, or what they are made of."""
    made = code.origin(labels)
    if made is not labels and isinstance(made, ast.Call) and _HARD.search(written(made)):
        return made
    if made is not labels or any("one_hot" in written(v) for _, v in code.bindings(labels)):
        return None
    body = code.function(labels)
    around = [body, *(a for a in code.above(labels) if isinstance(a, ast.FunctionDef))]
    found: ast.expr | None = None
    for compare in code.of(ast.Compare):
        sides = [compare.left, *compare.comparators]
        plain = [s for s in sides if isinstance(s, ast.Name) and s.id == labels.id]
        scores = [s for s in sides if isinstance(s, ast.Call) and last_name(s.func) == "argmax"]
        if len(sides) == 2 and isinstance(compare.ops[0], ast.Eq) and plain and scores:
            if any(code.function(compare) is a for a in around):
                return compare
            found = found or compare
    return found if found is not None and "one_hot" not in code.file.text and _LABELS.fullmatch(labels.id) else None


def _indexed(code: Syntax, node: ast.Subscript) -> Iterator[Finding]:
    """`logp[y]` and `logp[:, y]`, that a mean is taken of."""
    made = code.origin(node.value)
    if not isinstance(made, ast.Call) or last_name(made.func) != "log_softmax" or not _averaged(code, node):
        return
    index = node.slice
    columns = isinstance(index, ast.Tuple) and len(index.elts) == 2 and written(index.elts[0]) == ":"
    label = index.elts[1] if columns and isinstance(index, ast.Tuple) else index
    if not isinstance(label, ast.Name) or not _LABELS.fullmatch(label.id) or code.assigned(label) is not None:
        return
    text = f"jnp.take_along_axis({source_of(code.file, node.value)}, {label.id}[:, None], axis=-1)"
    what = "the columns of all labels for every row, N x N entries" if columns else "whole rows of the batch"
    yield _finding(code, node, "indexed", f"{written(node)[:70]} picks {what}, not each row's own label",
                   Bearing.CAUSE if columns else Bearing.SIGN,
                   Change(code.file, "each row's own label").replace(node, text).patches()
                   if "jnp" in code.aliases else ())  # fmt: skip


def _averaged(code: Syntax, node: ast.AST) -> bool:
    """Whether mean or sum is taken of it, as one number."""
    for up in code.above(node):
        if isinstance(up, ast.Call) and last_name(up.func) in ("mean", "sum"):
            return not any(k.arg == "axis" for k in up.keywords)
        if isinstance(up, ast.stmt):
            return False
    return False


def _finding(
    code: Syntax, node: ast.AST, kind: str, why: str, bearing: Bearing, patch: tuple[Patch, ...]
) -> Finding:
    certain = bearing is Bearing.CAUSE
    severity = None if certain else Severity.MEDIUM
    return RULE.finding(f"{why} (at {code.at(node)})", code.place(node), code.file.path, bearing=bearing,
                        severity=severity, measured={"kind": kind}, patch=patch)  # fmt: skip
