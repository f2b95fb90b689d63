"""The importance ratio of PPO or GRPO is the difference of log-probabilities.

The ratio new / old is `exp(new_logp - old_logp)`: 1 where the policy has not changed, and clipped to 1 +- epsilon. The
bare difference is 0 there and lies below 1 - epsilon in nearly every sample: clipped, it is a constant, so samples with
a negative advantage give no gradient, and the objective no longer weighs by how likely an action has become.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C249",
    name="ratio-without-exp",
    title="The importance ratio is a difference of log-probabilities",
    severity=Severity.HIGH,
    sees="new_logp - old_logp clipped to 1 - epsilon and 1 + epsilon, with no exp between.",
    matters="The ratio is near 0 where 1 is meant: the clip is always active, and half of the samples teach nothing.",
    alike=("a difference of logarithms clipped around 0, before exp", "a ratio of probabilities: new / old"),
    confirm=("print(ratio.mean()) in the first update after sampling: 0 instead of 1",),
)
_LOG = re.compile(r"log|(^|_)lp(_|$)|(^|_)lps(_|$)", re.IGNORECASE)
_SHAPES = frozenset({"sum", "squeeze", "unsqueeze", "view", "reshape", "flatten", "to", "float", "mean", "stack"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every clip around 1."""
    for file in project.files:
        if "clamp" not in file.text and "clip" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("clamp", "clip", "clip_by_value"):
            clipped, low, high = _clipped(code, call)
            if clipped is None or not _around_one(code, low, high):
                continue
            made = _difference(code, clipped)
            if made is not None:
                yield _finding(code, call, made)


def _clipped(code: Syntax, call: ast.Call) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None]:
    plain = bool(code.qualified(call.func)) or isinstance(call.func, ast.Name)
    first = argument(call, 0, "input", "a", "x", "arr") if plain else getattr(call.func, "value", None)
    after = 1 if plain else 0
    return (first if isinstance(first, ast.expr) else None,
            argument(call, after, "min", "a_min", "min_value"),
            argument(call, after + 1, "max", "a_max", "max_value"))  # fmt: skip


def _around_one(code: Syntax, low: ast.expr | None, high: ast.expr | None) -> bool:
    """Bounds 1 - a and 1 + b, as written or as numbers."""
    if low is None or high is None:
        return False
    low, high = code.origin(low), code.origin(high)
    if _one(code, low, ast.Sub) and _one(code, high, ast.Add):
        return True
    a, b = code.number(low), code.number(high)
    return a is not None and b is not None and 0.3 <= a < 1 < b <= 3


def _one(code: Syntax, node: ast.expr, kind: type[ast.operator]) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, kind):
        return False
    return code.number(node.left) == 1 or (kind is ast.Add and code.number(node.right) == 1)


def _difference(code: Syntax, node: ast.expr) -> ast.BinOp | None:
    """The difference of two logarithms that a value is, through sums over an axis and changes of shape."""
    for _ in range(6):
        node = code.origin(node)
        if isinstance(node, ast.Call) and last_name(node.func) in _SHAPES:
            plain = bool(code.qualified(node.func))
            inner = node.args[0] if plain and node.args else getattr(node.func, "value", None)
            if not isinstance(inner, ast.expr):
                return None
            node = inner
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            return node if _logarithm(code, node.left) and _logarithm(code, node.right) else None
        else:
            return None
    return None


def _logarithm(code: Syntax, node: ast.expr) -> bool:
    """Whether a term is a log-probability by its name, its key, or what it was computed with."""
    made = code.assigned(node)
    if made is not None and isinstance(made, ast.Call) and last_name(made.func) == "exp":
        return False
    text = written(node)
    if re.search(r"\bexp\b", text):
        return False
    if _LOG.search(text):
        return True
    return _stored(code, node) or (made is not None and bool(re.search(r"log_?prob|log_?p\b|log_softmax",
                                                                       written(made))))  # fmt: skip


def _stored(code: Syntax, node: ast.expr) -> bool:
    """What a batch holds at a place, `batch[2]`: the other side of the difference says what it is."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def _finding(code: Syntax, call: ast.Call, made: ast.BinOp) -> Finding:
    return RULE.finding(
        f"{written(made)} at {code.at(made)} is clipped around 1 (line {call.lineno}) as if it were a ratio: it is the "
        "logarithm of one, 0 where the policy has not changed",
        code.place(made),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "no exp", "difference": written(made)},
        patch=_patch(code, made),
    )


def _patch(code: Syntax, made: ast.BinOp) -> tuple[Patch, ...]:
    names = {module: name for name, module in code.aliases.items() if module in ("torch", "jax.numpy", "numpy")}
    library = names.get("jax.numpy") or names.get("torch") or names.get("numpy")
    if library is None:
        return ()
    return Change(code.file, "take the exponential").wrap(made, f"{library}.exp(", ")").patches()
