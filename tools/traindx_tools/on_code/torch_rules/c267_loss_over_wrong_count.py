"""A total of losses is divided by another number than it was added up by.

A criterion gives the mean over its batch. `total += loss.item()` adds up one mean a batch and is divided by the number
of batches; divided by the number of samples, the reported loss is too small by the batch size.
`total += loss.item() * len(x)` adds up samples and is divided by their number; divided by the number of batches it is
too large by the batch size. Training is not touched, but curves of another batch size, of another script or of a
validation that divides rightly cannot be compared with it.
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
    id="C267",
    name="loss-over-wrong-count",
    title="A total of losses is divided by another number than it was added up by",
    severity=Severity.MEDIUM,
    sees="Means of batches added up and divided by the number of samples, or sums over samples divided by batches.",
    matters="The reported loss is wrong by the batch size; comparisons with other runs and splits mislead.",
    alike=('a criterion with reduction="sum", whose total is divided by the samples rightly',
           "a loader of one sample a batch"),
    confirm=("at the start a classifier of k classes reports about ln(k), not ln(k) / batch size",),
)  # fmt: skip
_LOADER = re.compile(r"(\w*_)?(data_?)?loader\w*|\w*_dl|dl_\w*|dl", re.IGNORECASE)
_CLASSES = frozenset({"CrossEntropyLoss", "NLLLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss",
                      "BCEWithLogitsLoss", "PoissonNLLLoss", "GaussianNLLLoss"})  # fmt: skip
_FUNCTIONS = frozenset({"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
                        "binary_cross_entropy", "binary_cross_entropy_with_logits"})  # fmt: skip
_READS = frozenset({"item", "float", "detach", "cpu", "numpy"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every division of what a loop over a loader has added up."""
    for file in project.files:
        if "+=" not in file.text or "DataLoader" not in file.text:
            continue
        if not any(word in file.text for word in ("Loss(", "loss(", "entropy")):
            continue
        code = syntax(file)
        for node, total, by in _divisions(code):
            added = _added(code, total)
            loops = [loop for a in added for loop in code.loops(a)[:1]]
            if not loops or len(loops) != len(added) or any(loop in code.loops(node) for loop in loops):
                continue
            over = loops[0].iter if isinstance(loops[0], ast.For) else None
            loader = _loader(code, over)
            if loader is None or any(loop is not loops[0] for loop in loops) or not _starts_at_zero(code, total):
                continue
            if all(_is_mean(code, a.value) for a in added) and _is_samples(code, loader, loops[0], by):
                yield _finding(code, node, added[0], "samples", _patch(code, by, f"len({written(loader[0])})"))
            elif all(_is_weighed(code, a.value) for a in added) and _is_batches(loader, by):
                patch = _patch(code, by, f"len({written(loader[0])}.dataset)")
                yield _finding(code, node, added[0], "batches", patch)


def _divisions(code: Syntax) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """Where a total is divided and what by; not where the quotient is multiplied or divided again."""
    for node in code.of(ast.BinOp):
        if isinstance(node.op, ast.Div) and isinstance(node.left, (ast.Name, ast.Attribute)):
            up = code.parent(node)
            if not (isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Mult, ast.Div, ast.FloorDiv))):
                yield node, node.left, node.right
    for changed in code.of(ast.AugAssign):
        if isinstance(changed.op, ast.Div) and isinstance(changed.target, (ast.Name, ast.Attribute)):
            yield changed, changed.target, changed.value


def _added(code: Syntax, node: ast.expr) -> list[ast.AugAssign]:
    """The statements that add to a name; none where it is changed in another way too."""
    scope, name = code.scope(node), written(node)
    changed = [a for a in code.of(ast.AugAssign) if code.scope(a) is scope and written(a.target) == name]
    added = [a for a in changed if isinstance(a.op, ast.Add)]
    divided = [a for a in changed if isinstance(a.op, ast.Div)]
    return added if len(added) + len(divided) == len(changed) and len(divided) <= 1 else []


def _starts_at_zero(code: Syntax, total: ast.expr) -> bool:
    """Whether every plain assignment to the name is the zero that it starts with."""
    found = [value for _, value in code.bindings(total)]
    if isinstance(total, ast.Attribute):
        return bool(found) and all(code.number(v) == 0 for v in found)
    here = [v for s, v in code.bindings(total) if code.scope(s) is code.scope(total)]
    return bool(here) and all(_zero(v) for v in here)


def _zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _loader(code: Syntax, over: ast.expr | None) -> tuple[ast.expr, ast.Call] | None:
    """The loader that a loop goes through and its DataLoader call, where its batches hold more than one sample."""
    while isinstance(over, ast.Call) and last_name(over.func) in ("enumerate", "tqdm", "track", "trange") and over.args:
        over = over.args[0]
    if not isinstance(over, (ast.Name, ast.Attribute)):
        return None
    made = code.origin(over)
    if isinstance(made, ast.Call) and last_name(made.func) == "DataLoader":
        return (over, made) if _batched(code, made) else None
    known = code.calls("DataLoader")
    named = _LOADER.fullmatch(last_name(over)) is not None and not code.bindings(over)
    return (over, known[0]) if named and known and all(_batched(code, c) for c in known) else None


def _batched(code: Syntax, made: ast.Call) -> bool:
    size = argument(made, 1, "batch_size")
    return size is not None and code.number(size) != 1 and not (isinstance(size, ast.Constant) and size.value is None)


def _read(node: ast.expr) -> ast.expr:
    """A value without `.item()`, `float()` and their like."""
    while isinstance(node, ast.Call) and last_name(node.func) in _READS:
        if isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif node.args:
            node = node.args[0]
        else:
            break
    return node


def _is_mean(code: Syntax, value: ast.expr) -> bool:
    """Whether a value is what a criterion of torch gives for a batch: its mean."""
    read = _read(value)
    call = code.origin(read)
    changed = (a for a in code.of(ast.AugAssign) if code.scope(a) is code.scope(value))
    weighed = any(written(a.target) == written(read) for a in changed)
    if not isinstance(call, ast.Call) or weighed:
        return False
    if last_name(call.func) in _FUNCTIONS:
        return code.qualified(call.func).startswith("torch.") and _averages(call)
    made = call.func if isinstance(call.func, ast.Call) else code.origin(call.func)
    return isinstance(made, ast.Call) and last_name(made.func) in _CLASSES and _averages(made)


def _averages(call: ast.Call) -> bool:
    if any(k.arg in (None, "size_average", "reduce") for k in call.keywords):
        return False
    given = argument(call, 99, "reduction")
    return given is None or (isinstance(given, ast.Constant) and given.value == "mean")


def _is_weighed(code: Syntax, value: ast.expr) -> bool:
    """`loss.item() * len(x)`: the sum over the samples of a batch."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mult):
        return False
    return any(_is_mean(code, a) and _is_size(code.origin(b))
               for a, b in ((value.left, value.right), (value.right, value.left)))  # fmt: skip


def _is_size(node: ast.expr) -> bool:
    """`len(y)`, `y.size(0)`, `y.shape[0]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return False
    return last_name(node.func) == "size" or (last_name(node.func) == "len" and isinstance(node.args[0], ast.Name))


def _is_samples(code: Syntax, loader: tuple[ast.expr, ast.Call], loop: ast.AST, by: ast.expr) -> bool:
    """`len(loader.dataset)`, `len(dataset)` of the loader's data set, or the sizes of its batches added up."""
    name, made = loader
    by = code.origin(by) if not _added(code, by) else by
    if isinstance(by, ast.Call) and last_name(by.func) == "len" and len(by.args) == 1:
        held = argument(made, 0, "dataset")
        own = code.origin(name) is made and held is not None and written(held) == written(by.args[0])
        return own or written(by.args[0]) == f"{written(name)}.dataset"
    sizes = _added(code, by) if isinstance(by, (ast.Name, ast.Attribute)) else []
    return bool(sizes) and all(code.loops(a)[:1] == [loop] and _is_size(code.origin(a.value)) for a in sizes)


def _is_batches(loader: tuple[ast.expr, ast.Call], by: ast.expr) -> bool:
    """`len(loader)`."""
    length = isinstance(by, ast.Call) and last_name(by.func) == "len" and len(by.args) == 1
    return isinstance(by, ast.Call) and length and written(by.args[0]) == written(loader[0])


def _patch(code: Syntax, by: ast.expr, count: str) -> tuple[Patch, ...]:
    return Change(code.file, "divide by what was counted").replace(by, count).patches()


def _finding(code: Syntax, node: ast.AST, added: ast.AugAssign, kind: str, patch: tuple[Patch, ...]) -> Finding:
    if kind == "samples":
        why = (f"divides a sum of one mean loss a batch (added up at line {added.lineno}) by the number of samples: "
               "the reported loss is too small by the batch size")  # fmt: skip
    else:
        why = (f"divides losses that were weighed by the size of their batch (added up at line {added.lineno}) by the "
               "number of batches: the reported loss is too large by the batch size")  # fmt: skip
    return RULE.finding(
        f"{written(node)} at {code.at(node)} {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=patch,
    )
