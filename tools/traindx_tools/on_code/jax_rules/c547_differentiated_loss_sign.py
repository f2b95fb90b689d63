"""A differentiated loss has the wrong sign.

Updates of optax, and `p - lr * g`, descend. A loss with a minus before it (`-cross_entropy(...)`), a mean of
log-probabilities without one, or a penalty that is subtracted (`loss - 1e-4 * sum(w ** 2)`) is made larger by every
step: predictions become worse than guesses, or the weights grow.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.tracing import differentiated
from traindx_tools.rules import Rule

RULE = Rule(
    id="C547",
    name="differentiated-loss-sign",
    title="A differentiated loss has the wrong sign",
    severity=Severity.CRITICAL,
    sees="What a differentiated loss function returns: a loss of optax with a minus, log-probabilities of labels "
         "without one, a penalty on the weights that is subtracted.",
    matters="Every step moves away from the goal: the loss falls without bound and the accuracy below chance.",
    alike=("a minimax game, an attack, or ascent on purpose", "a log-likelihood whose gradient is added",
           "a reward, or an entropy, that is maximised"),
    confirm=("print the accuracy beside the loss: it falls while the loss falls",),
)  # fmt: skip
_LOSSES = frozenset({
    "softmax_cross_entropy", "softmax_cross_entropy_with_integer_labels", "sigmoid_binary_cross_entropy", "l2_loss",
    "squared_error", "huber_loss", "log_cosh", "hinge_loss", "ctc_loss", "cosine_distance", "kl_divergence",
    "poly_loss_cross_entropy", "sigmoid_focal_loss",
})  # fmt: skip
_ON_PURPOSE = re.compile(
    r"ascen|advers|attack|maximi[sz]|\bdual|lagrang|\bgan\b|discrimin|critic|generator|reward|gradient_reversal|"
    r"unlearn|saddle|set_to_zero|scale\(1|scale\(lr|tree_map\(jnp\.negative|:\s*-\s*\w+,"
)
_NAMED = re.compile(r"loss|nll|cost|cross_ent|criterion|error", re.IGNORECASE)
_DESCENDS = re.compile(r"apply_updates|apply_gradients|p - |param - |w - |optimizer\.update|\.update\(grads")
_ENTROPY = re.compile(r"entrop|bonus|diversity", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at what every differentiated loss returns."""
    if not any(f.mentions(_DESCENDS) for f in project.files if "jax" in f.text or "flax" in f.text):
        return
    for file in project.files:
        if "grad" not in file.text or file.mentions(_ON_PURPOSE):
            continue
        code = syntax(file)
        seen: set[int] = set()
        for _, function in differentiated(code):
            if id(function) in seen:
                continue
            seen.add(id(function))
            values = list(returned(function))
            for value in values if len(values) == 1 else ():
                yield from _judged(code, function, value)


def _judged(code: Syntax, function: ast.FunctionDef, value: ast.expr) -> Iterator[Finding]:
    first = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
    node = code.origin(first)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        loss = _loss(code, node.operand)
        if loss is not None:
            patch = Change(code.file, "minimise it").unwrap(node, node.operand).patches()
            yield _finding(code, node, "negated", f"{function.name} returns {last_name(loss.func)} with a minus before "
                           "it: descending it makes the predictions worse", patch)  # fmt: skip
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        if _NAMED.search(f"{function.name} {written(node.left)}") and _penalty(code, node.right):
            why = f"{function.name} subtracts {written(node.right)[:60]}, the squares of the weights"
            yield _finding(code, node, "penalty", f"{why}: every step makes them larger", ())
    elif isinstance(node, ast.Call) and _NAMED.search(function.name) and _log_probability(code, node):
        patch = Change(code.file, "minimise it").wrap(node, "-", "").patches()
        why = f"{function.name} returns {written(node)[:60]}, the log-probability of the labels without a minus"
        yield _finding(code, node, "no minus", f"{why}: descending it makes the right labels less likely", patch)


def _inner(code: Syntax, node: ast.expr) -> ast.expr:
    """What a mean or a sum is taken of."""
    for _ in range(5):
        node = code.origin(node)
        if isinstance(node, ast.Call) and last_name(node.func) in ("mean", "sum", "average", "nanmean", "squeeze"):
            own = isinstance(node.func, ast.Attribute) and not code.qualified(node.func)
            given = node.func.value if own and isinstance(node.func, ast.Attribute) else (
                node.args[0] if node.args else None)  # fmt: skip
            if given is None:
                return node
            node = given
        else:
            return node
    return node


def _loss(code: Syntax, node: ast.expr) -> ast.Call | None:
    inner = _inner(code, node)
    known = isinstance(inner, ast.Call) and last_name(inner.func) in _LOSSES
    return inner if known and isinstance(inner, ast.Call) and code.qualified(inner.func).startswith("optax.") else None


def _log_probability(code: Syntax, node: ast.Call) -> bool:
    """A mean of log_softmax at the labels: picked by take_along_axis, by an index, or by one-hot rows."""
    inner = _inner(code, node)
    if inner is node:
        return False
    if isinstance(inner, ast.Call) and last_name(inner.func) == "take_along_axis" and inner.args:
        return _is_log(code, inner.args[0])
    if isinstance(inner, ast.Subscript):
        return isinstance(inner.slice, ast.Tuple) and "arange" in written(inner.slice) and _is_log(code, inner.value)
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult):
        for one, other in ((inner.left, inner.right), (inner.right, inner.left)):
            rows = code.origin(one)
            if isinstance(rows, ast.Call) and last_name(rows.func) == "one_hot" and _is_log(code, other):
                return True
    return False


def _is_log(code: Syntax, node: ast.expr) -> bool:
    made = code.origin(node)
    return isinstance(made, ast.Call) and last_name(made.func) == "log_softmax"


def _penalty(code: Syntax, node: ast.expr) -> bool:
    """A positive multiple of a sum over the squares of all parameters."""
    made = code.origin(node)
    text = written(made)
    if _ENTROPY.search(text) or "log" in text or ("tree" not in text and "params" not in text):
        return False
    factors = [made.left, made.right] if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult) else [made]
    numbers = [n for f in factors if (n := code.number(f)) is not None]
    if len(factors) != 2 or len(numbers) != 1 or numbers[0] <= 0:
        return False
    total = next(f for f in factors if code.number(f) is None)
    total = code.origin(total)
    squares = any((isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow) and code.number(n.right) == 2)
                  or (isinstance(n, ast.Call) and last_name(n.func) in ("square", "norm", "vdot", "global_norm"))
                  for n in below(total))  # fmt: skip
    over = any(isinstance(n, ast.Call) and last_name(n.func) in ("tree_leaves", "leaves", "global_norm", "tree_reduce")
               for n in below(total))  # fmt: skip
    return squares and over and not any(
        isinstance(n, (ast.BinOp, ast.UnaryOp)) and isinstance(n.op, (ast.Sub, ast.USub)) for n in below(total))


def _finding(code: Syntax, node: ast.AST, kind: str, why: str, patch: tuple[Patch, ...]) -> Finding:
    severity = Severity.HIGH if kind == "penalty" else None
    return RULE.finding(f"{why} (at {code.at(node)})", code.place(node), code.file.path, bearing=Bearing.CAUSE,
                        severity=severity, measured={"kind": kind}, patch=patch)  # fmt: skip
