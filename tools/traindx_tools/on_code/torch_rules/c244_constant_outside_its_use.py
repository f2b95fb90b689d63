"""A constant lies far outside what it is used with.

`nn.Dropout(p)` takes the share that is dropped: a keep probability of 0.9 given to it drops nine of ten units. Label
smoothing of 0.6 or more puts most of the target on the wrong classes. A contrastive loss divides similarities by a
temperature such as 0.07; multiplied by it, cosines lie within -0.07 and 0.07, the softmax over the batch is uniform
whatever the model does, and the loss stays at the logarithm of the batch size. Gradients that are clipped to 1e-8 are
gone: what is left lies below the epsilon of Adam, or below the resolution of a weight times any rate of SGD.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.clipping import NORM_BOUND, VALUE_BOUND, tiny_bounds
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C244",
    name="constant-outside-its-use",
    title="A constant lies far outside its use",
    severity=Severity.HIGH,
    sees="A dropout of 0.9 or more, a label smoothing of 0.6 or more, cosines multiplied by a temperature below 0.5, "
         "gradients clipped to almost nothing.",
    matters="Hardly any of the units, targets, differences between pairs or gradients is left.",
    alike=("a learned scale that is the exponential of a parameter", "similarities divided by the temperature",
           "a dropout whose probability is 1 - keep", "a bound of 0 that switches clipping off"),
    confirm=("set the constant to its usual value (dropout 0.1 to 0.5, smoothing 0.1) and compare ten steps",),
    thresholds={
        "dropout": Threshold(0.9, "at or above", "usual 0 to 0.5"),
        "label smoothing": Threshold(0.6, "at or above", "usual 0 to 0.2"),
        "temperature": Threshold(0.5, "at or below", "cosines times it hardly differ"),
        "clipped norm": Threshold(NORM_BOUND, "at or below", "usual 0.1 to 10; its elements lie below Adam's epsilon"),
        "clipped value": Threshold(VALUE_BOUND, "at or below", "usual 0.01 to 1; with Adam 1e-8, its epsilon"),
    },
)
_MOST = {name: float(threshold.value) for name, threshold in RULE.thresholds.items()}
_WORDS = ("Dropout", "label_smoothing", "normalize", "cosine_similarity", "clip", "clamp")
_DROPOUTS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout")
_LOSSES = ("cross_entropy", "CrossEntropyLoss", "log_softmax", "softmax_cross_entropy_with_integer_labels")


def check(project: Project) -> Iterator[Finding]:
    """Look at every dropout, every smoothed loss and every scaled similarity."""
    for file in project.files:
        if not any(word in file.text for word in _WORDS):
            continue
        code = syntax(file)
        yield from _dropouts(code)
        yield from _smoothings(code)
        yield from _temperatures(project, code)
        yield from _clipped(code)


def _dropouts(code: Syntax) -> Iterator[Finding]:
    for call in code.calls(*_DROPOUTS):
        if not code.qualified(call.func).startswith(("torch.nn.", "flax.")):
            continue
        given = argument(call, 0, "p", "rate")
        value = code.number(given)
        if given is None or value is None or not _MOST["dropout"] <= value < 1:
            continue
        kept = "keep" in written(given)
        better = f"1 - {written(given)}" if kept else f"{1 - value:.4g}"
        patch = Change(code.file, "give the share to drop").replace(given, better).patches() if kept else ()
        yield _finding(
            code, call, f"{written(call)} drops {value:.0%} of the units; it takes the share to drop, not to keep",
            "dropout", value, patch, Bearing.CAUSE if kept else Bearing.SIGN,
        )  # fmt: skip


def _smoothings(code: Syntax) -> Iterator[Finding]:
    for call in code.of(ast.Call):
        given = argument(call, 99, "label_smoothing")
        value = code.number(given) if given is not None else None
        if given is not None and value is not None and _MOST["label smoothing"] <= value <= 1:
            change = Change(code.file, "the usual smoothing").replace(given, "0.1")
            yield _finding(
                code, call, f"label_smoothing={written(given)} leaves {1 - value:.2g} of the target on the label",
                "label smoothing", value, change.patches(), Bearing.CAUSE,
            )  # fmt: skip


def _temperatures(project: Project, code: Syntax) -> Iterator[Finding]:
    """softmax over cosines times a small number."""
    for call in code.calls(*_LOSSES):
        given = argument(call, 0, "input", "logits")
        scores = code.origin(given) if given is not None else None
        if isinstance(scores, ast.Call):  # scores.view(...), torch.cat(...)
            continue
        if not isinstance(scores, ast.BinOp) or not isinstance(scores.op, ast.Mult):
            continue
        for factor, other in ((scores.right, scores.left), (scores.left, scores.right)):
            value = code.number(factor)
            value = _by_name(project, factor) if value is None else value
            if value is None or not 0 < value <= _MOST["temperature"] or not _cosines(code, other):
                continue
            text = f"{source_of(code.file, other)} / {source_of(code.file, factor)}"
            change = Change(code.file, "divide by the temperature").replace(scores, text)
            yield _finding(
                code, scores, f"{written(scores)} multiplies cosines by {value:g}: scores lie within {value:g} of 0, "
                "and a temperature divides", "temperature", value, change.patches(), Bearing.CAUSE,
            )  # fmt: skip


def _by_name(project: Project, factor: ast.expr) -> float | None:
    """The largest number that the project gives to a temperature of this name, as a setting, default or argument."""
    name = last_name(factor)
    if not _TEMPERATURE.fullmatch(name):
        return None
    found: list[float | None] = []
    for code in map(syntax, project.files):
        found += [code.number(v) for d in code.of(ast.Dict) for k, v in zip(d.keys, d.values, strict=True)
                  if isinstance(k, ast.Constant) and k.value == name]
        found += [code.number(k.value) for k in code.of(ast.keyword) if k.arg == name]
        found += [code.number(a.value) for a in code.of(ast.Assign) if any(last_name(t) == name for t in a.targets)]
        found += [code.number(a.value) for a in code.of(ast.AnnAssign) if last_name(a.target) == name and a.value]
        for spec in code.of(ast.arguments):
            defaults = [*zip(reversed(spec.args), reversed(spec.defaults), strict=False),
                        *((a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None)]
            found += [code.number(d) for a, d in defaults if a.arg == name]
    return max((n for n in found if n is not None), default=None)


_TEMPERATURE = re.compile(r"(\w+_)?(temp|temperature|tau)(_\w+)?")


def _cosines(code: Syntax, node: ast.expr) -> bool:
    """A product of normalised rows, or a cosine similarity."""
    made = code.origin(node)
    if isinstance(made, ast.Call) and last_name(made.func) in ("cosine_similarity", "CosineSimilarity"):
        return True
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.MatMult):
        sides = [made.left, made.right]
    elif isinstance(made, ast.Call) and last_name(made.func) in ("matmul", "mm", "einsum"):
        sides = [a for a in made.args if not isinstance(a, ast.Constant)]
        if isinstance(made.func, ast.Attribute) and not code.qualified(made.func):
            sides = [made.func.value, *sides]
    else:
        return False
    return len(sides) == 2 and all(_normalised(code, s) for s in sides)


def _normalised(code: Syntax, node: ast.expr) -> bool:
    while True:
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            node = node.value
        elif isinstance(node, ast.Call) and last_name(node.func) in ("t", "transpose") and \
                isinstance(node.func, ast.Attribute):  # fmt: skip
            node = node.func.value
        else:
            break
    made = code.origin(node)
    if isinstance(made, ast.Call) and last_name(made.func) == "normalize":
        return True
    if isinstance(node, ast.Name) and _unpacked_normalised(code, node):
        return True
    divided = isinstance(made, ast.BinOp) and isinstance(made.op, ast.Div)
    return divided and bool(re.search(r"norm\(", written(made.right)))  # type: ignore[attr-defined]


def _unpacked_normalised(code: Syntax, name: ast.Name) -> bool:
    """`a, b = self.encode(x, y)`, where every return of `encode` in this file normalises that part."""
    for assign in code.of(ast.Assign):
        target = assign.targets[0]
        if code.scope(assign) is not code.scope(name) or not isinstance(target, ast.Tuple):
            continue
        places = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Name) and t.id == name.id]
        if not places or not isinstance(assign.value, ast.Call):
            continue
        called = last_name(assign.value.func)
        parts = [r.value.elts[places[0]] for r in code.of(ast.Return)
                 if (f := code.function(r)) is not None and f.name == called and isinstance(r.value, ast.Tuple)
                 and len(r.value.elts) == len(target.elts)]  # fmt: skip
        return bool(parts) and all(
            isinstance(made := code.origin(p), ast.Call) and last_name(made.func) == "normalize" for p in parts)
    return False


def _clipped(code: Syntax) -> Iterator[Finding]:
    for bound in tiny_bounds(code):
        change = Change(code.file, "the usual bound").replace(bound.node, "1.0")
        patch = change.patches() if bound.certain and isinstance(bound.node, ast.Constant) else ()
        what = "the norm of all gradients" if bound.kind == "norm" else "each gradient"
        yield _finding(
            code, bound.call, f"{written(bound.call)} clips {what} to {bound.value:g}: nothing of them is left",
            f"clipped {bound.kind}", bound.value, patch, Bearing.CAUSE if bound.certain else Bearing.SIGN,
        )  # fmt: skip


def _finding(
    code: Syntax, node: ast.AST, why: str, kind: str, value: float, patch: tuple[Patch, ...], bearing: Bearing
) -> Finding:
    return RULE.finding(
        f"{why} at {code.at(node)}",
        code.place(node),
        code.file.path,
        bearing=bearing,
        severity=Severity.HIGH if bearing is Bearing.CAUSE else Severity.MEDIUM,
        measured={"kind": kind, "value": value},
        patch=patch,
    )
