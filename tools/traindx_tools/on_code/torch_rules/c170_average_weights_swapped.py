"""The weights of a moving average are swapped.

`ema = d * ema + (1 - d) * p` keeps a share d of the past; with d = 0.999 it averages over a thousand steps. Written
the other way round, `(1 - d) * ema + d * p`, the average is the last value: an EMA model equals the raw one, a target
network follows at once, a teacher is its student. For `tau` (0.005) it is the reverse.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, syntax, written
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C170",
    name="average-weights-swapped",
    title="The weights of a moving average are swapped",
    severity=Severity.HIGH,
    sees="The two factors of a moving average, and which of them multiplies the average.",
    matters="The average forgets everything in one step: an EMA or a target network is a copy of the newest weights.",
    alike=("a momentum of BatchNorm, whose factor is the weight of the new batch",),
    confirm=("compare the averaged weights with the current ones: they are equal",),
    thresholds={"share of the past": Threshold(0.1, "at most", "averages in use keep 0.9 to 0.9999 of the past")},
)
_AVERAGE = re.compile(r"ema|avg|averag|shadow|target|tgt|teacher|slow|moving|smooth|polyak|momentum_enc|key_enc", re.I)
_WORDS = ("mul_", "lerp_", "lerp", "incremental_update", "decay", "tau", "ema", "polyak", "momentum", "alpha", "beta")
_MOST = 0.1


def check(project: Project) -> Iterator[Finding]:
    """Look at every sum of two weighted values, and at the in-place forms of it."""
    for file in project.files:
        if not any(w in file.text for w in _WORDS) or ("torch" not in file.text and "jax" not in file.text):
            continue
        code = syntax(file)
        for node, average, share, said in _averages(code):
            if share is not None and 0 < share <= _MOST and _AVERAGE.search(average):
                yield RULE.finding(
                    f"{said} at {code.at(node)} keeps a share of {share:.3g} of {average} in every step: the factors "
                    "are swapped, and the average is the newest value",
                    code.place(node),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "swapped", "share": share},
                )


def _averages(code: Syntax) -> Iterator[tuple[ast.AST, str, float | None, str]]:
    """(where, the average, the share that it keeps, the text) of every moving average."""
    for node in code.of(ast.BinOp):
        if isinstance(node.op, ast.Add):
            yield from _sum(code, node)
    for call in code.calls("add_", "add"):
        yield from _in_place(code, call)
    for call in code.calls("lerp_", "lerp"):
        own = isinstance(call.func, ast.Attribute) and code.qualified(call.func) != "torch.lerp"
        average = call.func.value if own and isinstance(call.func, ast.Attribute) else argument(call, 0, "input")
        weight = code.number(argument(call, 1 if own else 2, "weight"))
        if average is not None and weight is not None:
            yield call, written(average), 1 - weight, code.file.segment(call)
    for call in code.calls("incremental_update"):
        step, old = code.number(argument(call, 2, "step_size")), argument(call, 1, "old_tensors")
        new = argument(call, 0, "new_tensors")
        if step is not None and old is not None:
            turned = new is not None and _AVERAGE.search(written(new)) and not _AVERAGE.search(written(old))
            if turned and new is not None and step <= _MOST:
                yield call, written(new), step, code.file.segment(call)
            else:
                yield call, "target " + written(old), 1 - step, code.file.segment(call)


def _sum(code: Syntax, node: ast.BinOp) -> Iterator[tuple[ast.AST, str, float | None, str]]:
    left, right = _product(node.left), _product(node.right)
    if (
        left is None
        or right is None
        or not any(_complement(a, b) for a, b in ((left[0], right[0]), (right[0], left[0])))
    ):
        return
    target = _target(code, node)
    for (factor, value), (_, other) in ((left, right), (right, left)):
        same = target is not None and _base(value) == _base(target)
        name, against = (_base(v) + _of_pair(code, v) for v in (value, other))
        named = _AVERAGE.search(name) is not None and _AVERAGE.search(against) is None
        if (same or (target is None and named)) and _AVERAGE.search(name):
            yield node, name, code.number(factor), code.file.segment(node)
            return


def _product(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """(factor, value) of `factor * value`; the factor is the side that is a number, a plain name or 1 - it."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return None
    for factor, value in ((node.left, node.right), (node.right, node.left)):
        if _is_factor(factor):
            return factor, value
    return None


def _is_factor(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return isinstance(node.left, ast.Constant) and node.left.value in (1, 1.0)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    name = last_name(node)
    return re.fullmatch(r"\w*(decay|tau|alpha|beta\d?|momentum|rate|rho|polyak|d|m|mu)", name, re.I) is not None


def _complement(one: ast.expr, other: ast.expr) -> bool:
    """Whether the second factor is 1 minus the first."""
    if isinstance(one, ast.Constant) and isinstance(other, ast.Constant):
        return bool(abs(one.value + other.value - 1) < 1e-9) if isinstance(one.value, float) else False  # type: ignore[operator]
    return isinstance(other, ast.BinOp) and isinstance(other.op, ast.Sub) and written(other.right) == written(one)


def _target(code: Syntax, node: ast.AST) -> ast.expr | None:
    """What the sum is written to: an assigned name, or the receiver of copy_."""
    for up in code.above(node):
        if isinstance(up, ast.Assign):
            return up.targets[0]
        if (
            isinstance(up, ast.Call)
            and last_name(up.func) in ("copy_", "update_")
            and isinstance(up.func, ast.Attribute)
        ):
            return up.func.value
        if isinstance(up, (ast.Lambda, ast.stmt)):
            return None
    return None


def _base(node: ast.expr) -> str:
    """A tensor without `.data`, `.detach()`."""
    text = written(node)
    for tail in (".data", ".detach()", ".float()"):
        text = text.replace(tail, "")
    return text


def _in_place(code: Syntax, call: ast.Call) -> Iterator[tuple[ast.AST, str, float | None, str]]:
    """`x.mul_(a).add_(y, alpha=b)` and `x.mul_(a).add_(b * y)`."""
    inner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not (isinstance(inner, ast.Call) and last_name(inner.func) in ("mul_", "mul") and inner.args):
        return
    average = inner.func.value if isinstance(inner.func, ast.Attribute) else None
    share = code.number(inner.args[0])
    added = argument(call, 9, "alpha")
    if added is None and call.args:
        product = _product(call.args[0])
        added = product[0] if product is not None else None
    other = code.number(added)
    if average is not None and share is not None and other is not None and abs(share + other - 1) < 1e-6:
        yield call, _base(average) + _of_pair(code, average), share, code.file.segment(call)


def _of_pair(code: Syntax, node: ast.expr) -> str:
    """What a variable runs over: " of teacher.parameters()" for t in zip(student..., teacher...), or in a tree_map."""
    head = node
    while isinstance(head, ast.Attribute):
        head = head.value
    for loop in code.loops(node):
        if (
            not isinstance(loop, ast.For)
            or not isinstance(loop.iter, ast.Call)
            or not isinstance(loop.target, ast.Tuple)
        ):
            continue
        for part, over in zip(loop.target.elts, loop.iter.args, strict=False):
            if isinstance(head, ast.Name) and head.id in names_in(part):
                return f" of {written(over)}"
    step = next((a for a in code.above(node) if isinstance(a, ast.Lambda)), None)
    mapped = code.parent(step) if step is not None else None
    if step is not None and isinstance(mapped, ast.Call) and mapped.args and mapped.args[0] is step:
        for given, over in zip(step.args.args, mapped.args[1:], strict=False):
            if isinstance(head, ast.Name) and head.id == given.arg:
                return f" of {written(over)}"
    return ""
