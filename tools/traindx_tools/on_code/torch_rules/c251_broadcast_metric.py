"""A metric compares (N, 1) with (N,): every prediction with every target.

A layer with one output gives (N, 1), labels come as (N,). The loss says so, it gets `y.unsqueeze(1)` or
`out.squeeze(1)`, and the metric beside it compares the bare two: `(pred == y).sum()` counts over N x N pairs. An
accuracy is then near that of a random pairing and hardly moves while the model learns (or exceeds 1, divided by N); an
absolute error is that of unrelated pairs. Early stopping and the best checkpoint follow a number that says nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.values import Tensor
from traindx_tools.rules import Rule

RULE = Rule(
    id="C251",
    name="broadcast-metric",
    title="A metric compares (N, 1) with (N,)",
    severity=Severity.HIGH,
    sees="An output and its target that the loss brings to one shape, and that a metric compares as they are.",
    matters="The metric runs over N x N pairs: it hardly moves while the model learns, or exceeds 100 percent.",
    alike=("a metric whose two sides are both reshaped", "targets that already have the shape (N, 1)",
           "one prediction compared with all on purpose, by [:, None]"),
    confirm=("print(pred.shape, y.shape, (pred == y).shape)",),
)
_SAME = frozenset({
    "sigmoid", "round", "tanh", "exp", "float", "long", "int", "bool", "cpu", "detach", "numpy", "to", "type", "astype",
    "type_as", "cuda", "double", "half", "clone", "clamp", "abs", "relu", "asarray", "array", "tensor", "as_tensor",
    "ge", "gt", "lt", "le", "rint", "sign", "expit", "contiguous", "from_numpy", "logical_not", "heaviside",
})  # fmt: skip
_LOSS = re.compile(r"loss|criterion|binary_cross_entropy|^bce|mse|objective|squared_error", re.IGNORECASE)
_CLASSES = re.compile(r"^cross_entropy$|CrossEntropyLoss$|nll_loss|NLLLoss|integer_labels$")
_PASSED = frozenset({"float", "int", "long", "double", "cpu", "numpy", "detach", "abs", "pow", "square", "item", "type",
                     "to", "astype", "sqrt", "bool"})  # fmt: skip
_DEEP = 12


@dataclass(frozen=True)
class _Bare:
    """A value by what it came from, and how its shape was changed: "adds", "drops" or ""."""

    key: str
    change: str
    end: ast.expr


@dataclass(frozen=True)
class _Proof:
    """How a loss brings an output and a target to one shape."""

    how: str
    call: ast.expr
    sure: bool


def check(project: Project) -> Iterator[Finding]:
    """Look at every comparison that is counted, in the sources that bring two shapes together."""
    for file in project.files:
        if not any(w in file.text for w in ("squeeze", "view(", "reshape(", "flatten(", "None]", "ross")):
            continue
        code = syntax(file)
        counted = list(_counted(code))
        proofs = _proofs(project, code) if counted else {}
        for node, left, right in counted:
            a, b = _bare(code, left), _bare(code, right)
            if a is None or b is None or a.change or b.change:
                continue
            for output, target, first in ((a, b, left), (b, a, right)):
                proof = _proof(project, code, proofs, output, target)
                if proof is not None:
                    yield _finding(code, node, first, proof)
                    break


def _counted(code: Syntax) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """`a == b`, `a.eq(b)`, `a - b` that are summed or averaged over everything."""
    for compare in code.of(ast.Compare):
        if len(compare.ops) == 1 and isinstance(compare.ops[0], (ast.Eq, ast.NotEq)) and _reduced(code, compare):
            yield compare, compare.left, compare.comparators[0]
    for call in code.calls("eq", "equal"):
        if code.qualified(call.func) in ("torch.eq", "numpy.equal", "jax.numpy.equal") and len(call.args) == 2:
            left, right = call.args
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "eq" and call.args:
            left, right = call.func.value, call.args[0]
        else:
            continue
        if _reduced(code, call):
            yield call, left, right
    for node in code.of(ast.BinOp):
        if isinstance(node.op, ast.Sub) and _reduced(code, node):
            yield node, node.left, node.right


def _reduced(code: Syntax, node: ast.expr) -> bool:
    """Whether it is summed or averaged over all its entries, through elementwise steps and one name."""
    here: ast.AST = node
    for _ in range(_DEEP):
        up = code.parent(here)
        if isinstance(up, ast.Attribute) and isinstance(call := code.parent(up), ast.Call) and call.func is up:
            if up.attr in ("sum", "mean"):
                return not call.args and not any(k.arg in ("dim", "axis") for k in call.keywords)
            if up.attr not in _PASSED:
                return False
            here = call
        elif isinstance(up, ast.Call) and here in up.args:
            if last_name(up.func) in ("sum", "mean", "average", "count_nonzero"):
                return len(up.args) == 1 and not any(k.arg in ("dim", "axis") for k in up.keywords)
            if last_name(up.func) not in _PASSED:
                return False
            here = up
        elif isinstance(up, ast.BinOp) and isinstance(up.op, ast.Pow) and up.left is here:
            here = up
        elif isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
            reads = [n for n in code.of(ast.Name) if n.id == up.targets[0].id and code.assigned(n) is up.value
                     and isinstance(n.ctx, ast.Load)]  # fmt: skip
            if not reads:
                return False
            here = reads[0]
        else:
            return False
    return False


def _bare(code: Syntax, node: ast.expr) -> _Bare | None:
    """What a value came from, through elementwise steps; None where its shape is changed in another way."""
    change = ""
    for _ in range(_DEEP):
        made = code.assigned(node) if isinstance(node, ast.Name) else None
        if made is not None:
            node = made
            continue
        step = _shape_step(code, node)
        if step is not None:
            inner, how = step
            if change and change != how:
                return None
            node, change = inner, how
            continue
        inner_of = _elementwise(code, node)
        if inner_of is None:
            break
        node = inner_of
    if isinstance(node, ast.Name):
        return _Bare(f"{node.id}@{id(_binder(code, node))}", change, node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.value, ast.Name):
        return _Bare(f"{written(node)}@{id(_binder(code, node.value))}", change, node)
    if isinstance(node, ast.Call):
        own = isinstance(node.func, (ast.Name, ast.Attribute)) and not code.qualified(node.func)
        return _Bare(f"{written(node)}@{id(code.scope(node) if own else node)}", change, node)
    return None


def _binder(code: Syntax, name: ast.Name) -> ast.AST:
    """The loop that binds a name, or its function."""
    for up in code.above(name):
        if isinstance(up, (ast.For, ast.AsyncFor)) and name.id in {n.id for n in below(up.target)
                                                                   if isinstance(n, ast.Name)}:  # fmt: skip
            return up
    return code.scope(name)


def _shape_step(code: Syntax, node: ast.expr) -> tuple[ast.expr, str] | None:
    """`y.unsqueeze(1)`, `y.view(-1, 1)`, `y[:, None]` add an axis; `p.squeeze(1)`, `p.view(-1)`, `p[:, 0]` drop one."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        rows, last = node.slice.elts
        if isinstance(rows, ast.Slice) and rows.lower is rows.upper is None and isinstance(last, ast.Constant):
            if last.value is None:
                return node.value, "adds"
            return (node.value, "drops") if last.value == 0 else None
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name, plain = node.func.attr, bool(code.qualified(node.func))
    inner = (node.args[0] if node.args else None) if plain else node.func.value
    numbers = [code.number(a) for a in (node.args[1:] if plain else node.args)]
    if inner is None:
        return None
    if (name in ("unsqueeze", "expand_dims") and numbers in ([1], [-1])) or (
            name in ("view", "reshape") and len(numbers) == 2 and numbers[1] == 1):  # fmt: skip
        return inner, "adds"
    if (name == "squeeze" and numbers in ([], [1], [-1])) or (name in ("view", "reshape") and numbers == [-1]) or (
            name in ("flatten", "ravel") and not numbers):  # fmt: skip
        return inner, "drops"
    return None


def _elementwise(code: Syntax, node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and code.number(node.comparators[0]) is not None:
        return node.left
    if isinstance(node, ast.BinOp) and code.number(node.right) is not None:
        return node.left
    if isinstance(node, ast.Call) and last_name(node.func) in _SAME:
        if code.qualified(node.func) or isinstance(node.func, ast.Name):
            return node.args[0] if node.args else None
        return node.func.value if isinstance(node.func, ast.Attribute) else None
    return None


_Proofs = dict[tuple[str, str], _Proof | None]


def _proofs(project: Project, code: Syntax) -> _Proofs:
    """By output and target: how losses and differences bring the two to one shape; None where one takes them bare."""
    found: _Proofs = {}
    for left, right, call in _pairs(code):
        a, b = _bare(code, left), _bare(code, right)
        if a is None or b is None:
            continue
        if not a.change and not b.change and not _of_classes(code, call):
            if isinstance(call, ast.Call):
                found[a.key, b.key] = found[b.key, a.key] = None
        elif {a.change, b.change} == {"", "adds"}:
            output, target = (a, b) if b.change else (b, a)
            found.setdefault((output.key, target.key), _Proof("adds", call, True))
        elif {a.change, b.change} == {"", "drops"}:
            output, target = (a, b) if a.change else (b, a)
            sure = _column(project, output.end)
            found.setdefault((output.key, target.key), _Proof("drops", call, sure))
        elif _of_classes(code, call) and not b.change:
            found.setdefault(("", b.key), _Proof("classes", call, True))
    return found


def _pairs(code: Syntax) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    for call in code.of(ast.Call):
        made = call.func if isinstance(call.func, ast.Call) else code.assigned(call.func)
        name = last_name(made.func) if isinstance(made, ast.Call) else last_name(call.func)
        if _LOSS.search(name) or _LOSS.search(last_name(call.func)) or _CLASSES.search(name):
            one, other = argument(call, 0, "input", "logits", "pred"), argument(call, 1, "target", "labels", "target")
            if one is not None and other is not None:
                yield one, other, call
    for node in code.of(ast.BinOp):
        if isinstance(node.op, ast.Sub):
            yield node.left, node.right, node


def _of_classes(code: Syntax, call: ast.expr) -> bool:
    if not isinstance(call, ast.Call):
        return False
    made = call.func if isinstance(call.func, ast.Call) else code.assigned(call.func)
    return bool(_CLASSES.search(last_name(made.func) if isinstance(made, ast.Call) else last_name(call.func)))


def _proof(project: Project, code: Syntax, proofs: _Proofs, output: _Bare, target: _Bare) -> _Proof | None:
    key = (output.key, target.key)
    if key in proofs:
        return proofs[key]
    by_classes = proofs.get(("", target.key))
    if by_classes is not None and _column(project, output.end):
        return by_classes
    return None if isinstance(output.end, ast.Name) else _elsewhere(proofs, output, target)


def _elsewhere(proofs: _Proofs, output: _Bare, target: _Bare) -> _Proof | None:
    """The same call and the same names in another function, which trains where this one evaluates."""
    wanted = output.key.partition("@")[0], target.key.partition("@")[0]
    alike = [p for (o, t), p in proofs.items() if (o.partition("@")[0], t.partition("@")[0]) == wanted]
    if not alike or any(p is None or p.how != "adds" for p in alike) or alike[0] is None:
        return None
    return _Proof("adds", alike[0].call, False)


def _column(project: Project, node: ast.expr) -> bool:
    """Whether a call gave (..., 1), by the layers that were followed."""
    known = [e.result for e in project.by_method.get("__call__", ()) if e.node is node]
    shapes = [r.shape for r in known if isinstance(r, Tensor) and r.shape is not None and "layer" in r.tags]
    return bool(shapes) and len(shapes) == len(known) and all(s.dims and s.dims[-1] == 1 for s in shapes)


def _finding(code: Syntax, node: ast.expr, output: ast.expr, proof: _Proof) -> Finding:
    why = {
        "adds": f"the loss at line {proof.call.lineno} gives the target an axis first",
        "drops": f"the loss at line {proof.call.lineno} takes the output's last axis away first",
        "classes": f"the loss at line {proof.call.lineno} takes the target as (N,), and the output ends in one entry",
    }[proof.how]
    return RULE.finding(
        f"{written(node)} at {code.at(node)} compares (N, 1) with (N,), N x N pairs: {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE if proof.sure else Bearing.SIGN,
        severity=Severity.HIGH if proof.sure else Severity.MEDIUM,
        measured={"kind": "metric", "by": proof.how, "loss_line": proof.call.lineno},
        patch=_patch(code, output) if proof.sure else (),
    )


def _patch(code: Syntax, output: ast.expr) -> tuple[Patch, ...]:
    text = source_of(code.file, output)
    tight = isinstance(output, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) or text.startswith("(")
    squeezed = f"{text}.squeeze(-1)" if tight else f"({text}).squeeze(-1)"
    return Change(code.file, "compare (N,) with (N,)").replace(output, squeezed).patches()
