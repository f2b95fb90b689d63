"""Scores or features are normalised over the samples, and read as if each sample were normalised.

`log_softmax(logits, dim=0)` in front of `nll_loss` divides by the sum over the batch: the probabilities of a sample do
not sum to 1, and the loss falls where samples compete. `normalize(z, dim=0)` in front of `a @ b.T` gives columns of
length 1 and rows of any length: what is compared is no cosine, and a temperature made for cosines no longer fits. The
axis is judged by what reads the result: a loss of the labels, a choice of each row's entry, a product over features.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.flows import places_of
from traindx_tools.on_code.normalised import SOFT, Normalised, axis_is_zero, normalised
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, parameters, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C254",
    name="normalised-over-batch",
    title="Scores or features are normalised over the samples",
    severity=Severity.HIGH,
    sees="softmax, log_softmax, normalize or a division by a norm over axis 0, read by a loss or product of the other.",
    matters="A sample's output depends on its neighbours in the batch, and the loss does not fall as it should.",
    alike=("a softmax over the elements of one vector", "both directions of a similarity, each normalised",
           "normalised columns whose products run over the samples (Barlow Twins)"),
    confirm=("print(p.exp().sum(-1)) or z.norm(dim=-1): it is not 1",),
)
_SAME = frozenset({"float", "to", "type_as", "clone", "contiguous", "astype", "half", "double"})
_LOADERS = re.compile(r"loader|batches|dataiter|train_iter|data_iter|train_dl|valid_dl|^dl$|iterator", re.IGNORECASE)
_TARGETS = re.compile(r"log|hot|target|label", re.IGNORECASE)
_ROWS = {"gather": 0, "argmax": 0, "max": 0, "topk": 1}


def check(project: Project) -> Iterator[Finding]:
    """Look at everything that is normalised over axis 0."""
    seen: set[int] = set()
    for code, found in normalised(project):
        lengths = [n.value for n in found if n.kind == "length"]
        for one in found:
            why = None if id(one.made) in seen or _both_ways(one) else _read_by_rows(code, one, lengths)
            if why is not None:
                seen.add(id(one.made))
                yield _finding(code, one, *why)


def _read_by_rows(code: Syntax, one: Normalised, lengths: list[ast.expr]) -> tuple[str, Bearing] | None:
    """What reads the value as rows that are normalised, and how sure that is."""
    for place in places_of(code, one.value):
        place, up = _through(code, place)
        found = _soft(code, place, up) if one.kind == "soft" else _length(code, place, up, lengths)
        if found is not None:
            return found
    return None


def _through(code: Syntax, node: ast.expr) -> tuple[ast.expr, ast.AST | None]:
    """A value with what holds it, past conversions."""
    up = code.parent(node)
    for _ in range(6):
        call = code.parent(up) if isinstance(up, ast.Attribute) else up
        method = isinstance(up, ast.Attribute) and up.attr in (*_SAME, "log") and isinstance(call, ast.Call)
        logarithm = isinstance(up, ast.Call) and last_name(up.func) == "log" and up.args[:1] == [node]
        shifted = isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add) and code.number(up.right) is not None
        if not isinstance(call, ast.expr) or not (method or logarithm or shifted):
            break
        node, up = call, code.parent(call)
    return node, up


def _soft(code: Syntax, place: ast.expr, up: ast.AST | None) -> tuple[str, Bearing] | None:
    if isinstance(up, ast.Attribute) and isinstance(call := code.parent(up), ast.Call) and call.func is up:
        return _row_choice(code, call, up.attr, 0)
    if isinstance(up, ast.Subscript) and up.value is place and isinstance(up.slice, ast.Tuple):
        first = up.slice.elts[0]
        if "arange" in written(code.origin(first)) and not isinstance(first, ast.Slice):
            return f"{written(up)} (line {up.lineno}) takes an entry of each row", Bearing.CAUSE
    if isinstance(up, ast.Call) and place in up.args:
        name = _called(code, up)
        if re.search(r"nll_?loss", name, re.IGNORECASE) and up.args[0] is place and len(up.args) > 1:
            return _of_labels(code, up)
        if re.search(r"kl_?div", name, re.IGNORECASE) and "batchmean" in written(_maker(code, up)) + written(up):
            return f"{written(up.func)} (line {up.lineno}) averages over the samples of the batch", Bearing.CAUSE
        if name == "take_along_axis" and code.number(argument(up, 2, "axis")) in (1, -1):
            return f"{written(up)} (line {up.lineno}) takes an entry of each row", Bearing.CAUSE
        if name in _ROWS and code.qualified(up.func):
            return _row_choice(code, up, name, 1)
    return _weighted_sum(code, place, up, None)


def _row_choice(code: Syntax, call: ast.Call, name: str, shift: int) -> tuple[str, Bearing] | None:
    """gather(1, y), argmax(1), max(1), topk(5, 1): an entry of each row."""
    if name not in _ROWS or code.number(argument(call, _ROWS[name] + shift, "dim", "axis")) not in (1, -1):
        return None
    if name != "gather" and code.number(argument(call, _ROWS[name] + shift, "dim", "axis")) == -1:
        return None  # also of a vector
    sure = Bearing.CAUSE if name == "gather" else Bearing.SIGN
    return f"{written(call)[-60:]} (line {call.lineno}) takes an entry of each row", sure


def _of_labels(code: Syntax, call: ast.Call) -> tuple[str, Bearing] | None:
    """A loss of labels that come out of a loader, one a sample."""
    target = code.origin(call.args[1])
    many = bool(re.search(r"randint\(.*\(\w+,?\)|torch\.stack|LongTensor\(\[|tensor\(\[\w+, ", written(target)))
    if many or _batched(code, call.args[1]):
        where = f"{written(call)} (line {call.lineno})"
        return f"{where} takes the probability of each sample's label", Bearing.CAUSE
    return None


def _batched(code: Syntax, target: ast.expr) -> bool:
    """Whether a target comes out of a loader, as part of a batch."""
    names = names_in(target)
    for loop in (n for n in code.above(target) if isinstance(n, (ast.For, ast.AsyncFor))):
        bound = names_in(loop.target)
        batch = {t for s in below(loop) if isinstance(s, ast.Assign) and names_in(s.value) & bound
                 for t in (n for part in s.targets for n in names_in(part))}  # fmt: skip
        over = code.origin(loop.iter)
        if names & (bound | batch) and (_LOADERS.search(written(loop.iter)) or "DataLoader(" in written(over)):
            return True
    function = code.function(target)
    return function is not None and function.name in ("training_step", "validation_step", "compute_loss") and \
        "batch" in parameters(function)  # fmt: skip


def _called(code: Syntax, call: ast.Call) -> str:
    """The name of a function, or of the class whose object is called."""
    made = _maker(code, call)
    return last_name(made.func) if isinstance(made, ast.Call) else last_name(call.func)


def _maker(code: Syntax, call: ast.Call) -> ast.expr | None:
    return call.func if isinstance(call.func, ast.Call) else code.assigned(call.func)


def _weighted_sum(
    code: Syntax, place: ast.expr, up: ast.AST | None, lengths: list[ast.expr] | None
) -> tuple[str, Bearing] | None:
    """`(p * log_p).sum(dim=-1)`, `(one_hot * log_p).sum(1)`, `(a * b).sum(-1)`."""
    if not isinstance(up, ast.BinOp) or not isinstance(up.op, ast.Mult):
        return None
    other = up.right if up.left is place else up.left
    if lengths is None:
        if not _TARGETS.search(written(other) + written(code.origin(other))):
            return None
    elif not _one_of(code, other, lengths):
        return None
    total: ast.AST | None = up
    while isinstance(code.parent(total), ast.UnaryOp) if total is not None else False:
        total = code.parent(total)  # type: ignore[arg-type]
    holder = code.parent(total) if total is not None else None
    if isinstance(holder, ast.Attribute) and isinstance(call := code.parent(holder), ast.Call):
        named, axis = holder.attr, argument(call, 0, "dim", "axis")
    elif isinstance(holder, ast.Call) and holder.args and holder.args[0] is total:
        call, named, axis = holder, last_name(holder.func), argument(holder, 1, "dim", "axis")
    else:
        return None
    rows = code.number(axis) == 1 or (code.number(axis) == -1 and (lengths is not None or _averaged(code, call)))
    if named != "sum" or not rows:
        return None
    return f"{written(call)} (line {call.lineno}) sums over the other axis", Bearing.CAUSE


def _averaged(code: Syntax, call: ast.Call) -> bool:
    """Whether a mean is taken of what is left, so that there is an axis of samples."""
    up = code.parent(call)
    outer = code.parent(up) if isinstance(up, ast.Attribute) else up
    return isinstance(outer, ast.Call) and last_name(outer.func) == "mean"


def _one_of(code: Syntax, node: ast.expr, lengths: list[ast.expr]) -> bool:
    """Whether the other side is normalised over axis 0 too."""
    made = code.origin(_turned(node)[0])
    return any(v is made for v in lengths)


def _turned(node: ast.expr) -> tuple[ast.expr, bool]:
    """A matrix without its transposition, and whether there was one."""
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value, True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        axes = {written(a) for a in node.args}
        if node.func.attr == "t" or (node.func.attr == "transpose" and axes in ({"0", "1"}, {"-2", "-1"})):
            return node.func.value, True
    return node, False


def _length(
    code: Syntax, place: ast.expr, up: ast.AST | None, lengths: list[ast.expr]
) -> tuple[str, Bearing] | None:
    """`a @ b.T`, `matmul(a, b.t())`, `einsum("nd,md->nm", a, b)` of two sides normalised over axis 0."""
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult) and not any(
            _one_of(code, side, lengths) for side in (up.left, up.right) if side is not place):  # fmt: skip
        place, up = up, code.parent(up)  # a temperature in front: scale.exp() * a @ b.t()
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.MatMult):
        left, right = up.left, up.right
    elif isinstance(up, ast.Call) and last_name(up.func) in ("matmul", "mm", "dot") and up.args:
        own = not code.qualified(up.func)
        left, right = (up.func.value, up.args[0]) if own and isinstance(up.func, ast.Attribute) else (
            (up.args[0], up.args[1]) if len(up.args) == 2 else (up.args[0], up.args[0]))  # fmt: skip
    elif isinstance(up, ast.Attribute) and up.attr in ("matmul", "mm") and isinstance(code.parent(up), ast.Call):
        call = code.parent(up)
        left, right = place, call.args[0]  # type: ignore[union-attr]
    elif isinstance(up, ast.Call) and last_name(up.func) == "einsum" and len(up.args) == 3:
        return _einsum(code, up, lengths)
    else:
        return _weighted_sum(code, place, up, lengths)
    turned = _turned(right)
    if left is not place or not turned[1] or _turned(left)[1] or not _one_of(code, right, lengths):
        return None
    return f"{written(up)[:80]} (line {getattr(up, 'lineno', 0)}) multiplies rows", Bearing.CAUSE


def _einsum(code: Syntax, call: ast.Call, lengths: list[ast.expr]) -> tuple[str, Bearing] | None:
    how = call.args[0]
    if not isinstance(how, ast.Constant) or not isinstance(how.value, str):
        return None
    match = re.fullmatch(r"(\w)(\w),(\w)\2->\1\3", how.value.replace(" ", ""))
    if match is None or not all(_one_of(code, a, lengths) for a in call.args[1:]):
        return None
    return f"{written(call)[:80]} (line {call.lineno}) multiplies rows", Bearing.CAUSE


def _both_ways(one: Normalised) -> bool:
    """Whether the same scores are normalised over another axis too, or their first axis is no batch by name."""
    if not isinstance(one.made, ast.Call) or not one.made.args:
        return False
    scores = written(one.made.args[0])
    code = one.code
    scope = code.scope(one.made)
    for call in code.calls(*SOFT):
        same = call is not one.made and code.scope(call) is scope and call.args and written(call.args[0]) == scores
        if same and not axis_is_zero(code, call):
            return True
    return False


def _finding(code: Syntax, one: Normalised, why: str, bearing: Bearing) -> Finding:
    made = one.made
    return RULE.finding(
        f"{written(made)} at {one.code.at(made)} normalises over axis 0, the samples, and {why}",
        one.code.place(made),
        one.code.file.path,
        bearing=bearing,
        severity=Severity.HIGH if bearing is Bearing.CAUSE else Severity.MEDIUM,
        measured={"kind": one.kind},
        patch=_patch(one.code, made),
    )


def _patch(code: Syntax, made: ast.expr) -> tuple[Patch, ...]:
    if not isinstance(made, ast.Call):
        return ()
    axes = [k.value for k in made.keywords if k.arg in ("dim", "axis")] or made.args[-1:]
    zero = next((a for a in axes if isinstance(a, ast.Constant) and a.value == 0 and a.value is not False), None)
    return Change(code.file, "normalise each sample").replace(zero, "-1").patches() if zero is not None else ()
