"""The target has not the form that the loss reads.

Margin losses (cosine embedding, margin ranking, hinge embedding, soft margin) read 1 and -1: at a target of 0 the score
falls out of the loss, so pairs that should be pushed apart give no gradient. A binary cross entropy reads 0 and 1: with
-1 it has no lower bound and falls for ever. Cross entropy with float targets reads one distribution over classes: with
several ones in a row softmax is asked for a sum of k, labels compete with each other, and the loss cannot go below
k log k; independent labels belong to a binary cross entropy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, method_of, names_in, syntax, written
from traindx_tools.on_code.value_sets import Values, values_of
from traindx_tools.rules import Rule

RULE = Rule(
    id="C255",
    name="target-of-other-form",
    title="The target has not the form that the loss reads",
    severity=Severity.HIGH,
    sees="0 and 1 in a loss of 1 and -1, -1 and 1 in a binary cross entropy, several ones a row in cross entropy.",
    matters="Half of the pairs give no gradient, or the loss has its minimum at something else than the labels.",
    alike=("targets mapped by 2 * y - 1", "one-hot or smoothed targets, whose rows sum to 1",
           "multi-hot targets divided by their number"),
    confirm=("print(target.unique(), target.sum(-1)[:5])",),
)
_SIGNED = {"cosine_embedding_loss": (2, "CosineEmbeddingLoss"), "margin_ranking_loss": (2, "MarginRankingLoss"),
           "hinge_embedding_loss": (1, "HingeEmbeddingLoss"), "soft_margin_loss": (1, "SoftMarginLoss")}  # fmt: skip
_BINARY = {"binary_cross_entropy_with_logits": (1, "BCEWithLogitsLoss"), "binary_cross_entropy": (1, "BCELoss"),
           "sigmoid_binary_cross_entropy": (1, "")}  # fmt: skip
_OF_CLASSES = {"cross_entropy": (1, "CrossEntropyLoss"), "softmax_cross_entropy": (1, ""),
               "safe_softmax_cross_entropy": (1, "")}  # fmt: skip
_FLOATS = frozenset({"float", "astype", "to", "type", "type_as", "double", "half"})
_MULTI = re.compile(r"multi_?_?(hot|label)|MultiLabelBinarizer", re.IGNORECASE)


_LOSSES = ("argin", "mbedding_loss", "mbedding_Loss", "mbeddingloss", "mbeddingLoss", "entropy", "BCE", "Entropy")


def check(project: Project) -> Iterator[Finding]:
    """Look at the target of every such loss."""
    for file in project.files:
        code = syntax(file) if any(w in file.text for w in _LOSSES) else None
        if code is None:
            continue
        for call, name, target in _losses(code, _SIGNED):
            values = values_of(code, target) or _collated(project, code, target)
            if values is not None and 0.0 in values and values <= {0.0, 1.0}:
                yield _signed(code, call, name, target, values)
        for call, name, target in _losses(code, _BINARY):
            values = values_of(code, target)
            if values is not None and -1.0 in values and values <= {-1.0, 1.0}:
                yield _finding(code, call, target, "binary", f"{name} reads targets of 0 and 1, and "
                               f"{written(target)} is {_set(values)}: at -1 the loss has no lower bound",
                               Bearing.CAUSE, ())  # fmt: skip
        for call, name, target in _losses(code, _OF_CLASSES):
            yield from _several(code, call, name, target)


def _losses(code: Syntax, table: dict[str, tuple[int, str]]) -> Iterator[tuple[ast.Call, str, ast.expr]]:
    """Calls of these losses, as functions of a library or as objects, with their targets."""
    for call in code.calls(*table):
        if code.qualified(call.func).startswith(("torch.", "optax.")):
            target = argument(call, table[last_name(call.func)][0], "target", "labels", "targets")
            if target is not None:
                yield call, last_name(call.func), target
    classes = {made: position for position, made in table.values() if made}
    if not any(name in code.file.text for name in classes):
        return
    for call in code.of(ast.Call):
        made = call.func if isinstance(call.func, ast.Call) else code.assigned(call.func)
        if isinstance(made, ast.Call) and last_name(made.func) in classes:
            target = argument(call, classes[last_name(made.func)], "target")
            if target is not None:
                yield call, last_name(made.func), target


def _collated(project: Project, code: Syntax, target: ast.expr) -> Values | None:
    """What a data set returns at the place that a loop over a loader unpacks."""
    while isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute) and last_name(target.func) in (
            *_FLOATS, "cuda", "view", "squeeze", "long"):  # fmt: skip
        target = target.func.value
    made = code.assigned(target) if isinstance(target, ast.Name) else None
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in (*_FLOATS, "cuda"):
        target = made.func.value
    if not isinstance(target, ast.Name):
        return None
    for loop in (n for n in code.above(target) if isinstance(n, ast.For)):
        unpacked = loop.target.elts[1] if isinstance(loop.target, ast.Tuple) and written(
            loop.iter).startswith("enumerate(") and len(loop.target.elts) == 2 else loop.target  # fmt: skip
        if not isinstance(unpacked, ast.Tuple) or target.id not in names_in(unpacked):
            continue
        places = [i for i, e in enumerate(unpacked.elts) if isinstance(e, ast.Name) and e.id == target.id]
        items = list(_samples(project, len(unpacked.elts)))
        if len(items) == 1 and places:
            return values_of(items[0][0], items[0][1][places[0]])
    return None


def _samples(project: Project, size: int) -> Iterator[tuple[Syntax, list[ast.expr]]]:
    """What each `__getitem__` of the project returns, tuples of this length."""
    for file in project.files:
        if "__getitem__" not in file.text:
            continue
        code = syntax(file)
        for back in code.of(ast.Return):
            function = code.function(back)
            if function is not None and function.name == "__getitem__" and back.value is not None:
                value = code.origin(back.value)
                yield code, value.elts if isinstance(value, ast.Tuple) and len(value.elts) == size else [value] * size


def _signed(code: Syntax, call: ast.Call, name: str, target: ast.expr, values: Values) -> Finding:
    text = source_of(code.file, target)
    simple = isinstance(target, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    bool_like = isinstance(code.origin(target), ast.Compare)
    mapped = f"2 * {text if simple else f'({text})'}{'.float()' if bool_like else ''} - 1"
    patch = Change(code.file, "targets of 1 and -1").replace(target, mapped).patches() if len(values) == 2 else ()
    why = f"{name} reads targets of 1 and -1, and {written(target)} is {_set(values)}: at 0 there is no gradient"
    return _finding(code, call, target, "signed", why, Bearing.CAUSE, patch)


def _several(code: Syntax, call: ast.Call, name: str, target: ast.expr) -> Iterator[Finding]:
    """Float targets with several ones a row."""
    made = code.origin(target)
    how = _multi_hot(code, made)
    sure = how is not None
    if how is None and _is_float(made) and _thresholded(code, call, target):
        how, sure = "the scores are judged one by one, by a sigmoid and a threshold", True
    if how is None and _MULTI.search(written(target)) and (_is_float(made) or name.endswith("softmax_cross_entropy")):
        how, sure = f"{written(target)} says that it has several labels", False
    if how is not None:
        yield _finding(
            code, call, target, "several",
            f"{name} reads one distribution over the classes a row, and {written(target)} can have several ones: {how}",
            Bearing.CAUSE if sure else Bearing.SIGN, _binary_instead(code, call) if sure else (),
        )  # fmt: skip


def _multi_hot(code: Syntax, node: ast.expr) -> str | None:
    """Thresholded entries made into floats, a sum of one-hot rows, what a MultiLabelBinarizer gives."""
    is_float = False
    for _ in range(10):
        node = code.origin(node)
        if isinstance(node, ast.Compare):
            ordered = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE))
            constant = ordered and code.number(node.comparators[0]) is not None
            return f"entries are compared with a number ({written(node)})" if is_float and constant else None
        if not isinstance(node, ast.Call):
            return None
        name, plain = last_name(node.func), bool(code.qualified(node.func))
        inner = (node.args[0] if node.args else None) if plain else getattr(node.func, "value", None)
        if name in ("fit_transform", "transform") and isinstance(inner, ast.expr):
            maker = code.origin(inner)
            return "a MultiLabelBinarizer made it" if "MultiLabelBinarizer" in written(maker) else None
        if name in ("sum", "amax", "max", "any") and code.number(argument(node, 1 if plain else 0, "dim", "axis")) == 1:
            hot = code.unwrapped(inner, lambda n: method_of(n, _FLOATS)) if isinstance(inner, ast.expr) else None
            is_hot = isinstance(hot, ast.Call) and last_name(hot.func) == "one_hot"
            return "one-hot rows are added up" if is_hot else None
        if name in _FLOATS or name in ("FloatTensor", "tensor", "as_tensor", "from_numpy", "cuda", "cpu"):
            is_float = is_float or _is_float(node)
            if not isinstance(inner, ast.expr):
                return None
            node = inner
        else:
            return None
    return None


def _is_float(node: ast.expr) -> bool:
    """Whether a conversion to floats is written: `y.float()`, `y.to(torch.float32)`, `torch.tensor(y, dtype=float)`."""
    text = written(node)
    return isinstance(node, ast.Call) and (
        last_name(node.func) in ("float", "FloatTensor") or "float" in text[text.rfind("(") :])


def _thresholded(code: Syntax, call: ast.Call, target: ast.expr) -> bool:
    """Whether sigmoid of the same scores is compared with a number in the same function, and that with the target."""
    scores, scope = written(argument(call, 0, "input", "logits")), code.scope(call)
    for sigmoid in code.calls("sigmoid", "expit"):
        inner = sigmoid.args[0] if sigmoid.args else getattr(sigmoid.func, "value", None)
        if code.scope(sigmoid) is scope and written(inner) == scores and _agrees(code, sigmoid, target):
            return True
    return False


def _agrees(code: Syntax, sigmoid: ast.Call, target: ast.expr) -> bool:
    """Whether the thresholded sigmoid is compared with the target, through names."""
    scope = code.scope(sigmoid)
    own = _named(code, sigmoid)
    compares = [c for c in code.of(ast.Compare) if code.scope(c) is scope and code.number(c.comparators[0]) is not None
                and (names_in(c.left) & own or any(n is sigmoid for n in below(c.left)))]  # fmt: skip
    guesses = own.union(*(_named(code, c) for c in compares))
    for other in _agreements(code):
        judged = names_in(other) & guesses or any(n is c for n in below(other) for c in compares)
        if compares and code.scope(other) is scope and names_in(other) & names_in(target) and judged:
            return True
    return False


def _named(code: Syntax, node: ast.expr) -> set[str]:
    """The names that the statement around a value binds."""
    statement = code.statement(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {t.id for t in targets if isinstance(t, ast.Name)}


def _agreements(code: Syntax) -> Iterator[ast.expr]:
    yield from (c for c in code.of(ast.Compare) if isinstance(c.ops[0], ast.Eq))
    yield from code.calls("f1_score", "eq", "multilabel_accuracy", "accuracy_score")


def _binary_instead(code: Syntax, call: ast.Call) -> tuple[Patch, ...]:
    """Binary cross entropy in its place, where it is called as a function with nothing else given."""
    if last_name(call.func) != "cross_entropy" or len(call.args) != 2 or call.keywords or not isinstance(
            call.func, ast.Attribute):  # fmt: skip
        return ()
    name = f"{written(call.func.value)}.binary_cross_entropy_with_logits"
    return Change(code.file, "labels that are independent of each other").replace(call.func, name).patches()


def _set(values: Values) -> str:
    return " or ".join(f"{v:g}" for v in sorted(values))


def _finding(
    code: Syntax, call: ast.Call, target: ast.expr, kind: str, why: str, bearing: Bearing, patch: tuple[Patch, ...]
) -> Finding:
    return RULE.finding(
        f"{why} (at {code.at(call)})",
        code.place(call),
        code.file.path,
        bearing=bearing,
        severity=Severity.HIGH if bearing is Bearing.CAUSE else Severity.MEDIUM,
        measured={"kind": kind, "target": written(target)[:80]},
        patch=patch,
    )
