"""A flax layer is told its mode by the wrong flag.

`nn.Dropout(deterministic=train)` drops in evaluation and not in training; `nn.BatchNorm(use_running_average=train)`
normalises training batches by running statistics that are never updated there. Both flags mean "evaluate", and
`train` has to be negated. A BatchNorm of flax.linen with `use_running_average=True` written into the module stays at
mean 0 and variance 1 for ever; with False written there it judges every evaluation batch by that batch itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C544",
    name="flax-mode-inverted",
    title="A flax layer is told its mode by the wrong flag",
    severity=Severity.HIGH,
    sees="deterministic=train, use_running_average=train (or not deterministic), and use_running_average written as a "
         "constant into a module.",
    matters="Dropout in the evaluation alone, statistics that never adapt, or metrics that depend on the batch.",
    alike=("a frozen BatchNorm of a pretrained backbone", "nnx layers, whose mode train() and eval() set",
           "batch statistics on purpose, as in GANs and contrastive training"),
    confirm=("print batch_stats after an epoch; apply the model twice to one batch with train=False",),
)  # fmt: skip
_FLAGS = ("deterministic", "use_running_average")
_TRAINS = re.compile(r"(is_)?train(ing)?(_mode)?|is_train", re.IGNORECASE)
_EVALUATES = re.compile(r"deterministic|(is_)?(eval|evaluate|evaluation|inference|test)(_mode)?|use_running_average",
                        re.IGNORECASE)  # fmt: skip
_ON_PURPOSE = re.compile(r"frozen|freeze|pretrained|from_torch|discriminator|generator|contrastive|gan\b|byol|simclr",
                         re.IGNORECASE)  # fmt: skip
_LAYERS = ("Dropout", "BatchNorm", "MultiHeadDotProductAttention", "SelfAttention", "MultiHeadAttention",
           "SpatialDropout", "RNN")  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every layer of flax that is told its mode."""
    for file in project.files:
        if "flax" not in file.text or not any(f in file.text for f in _FLAGS):
            continue
        code = syntax(file)
        for keyword in code.of(ast.keyword):
            call = code.parent(keyword)
            if keyword.arg in _FLAGS and isinstance(call, ast.Call):
                yield from _inverted(code, keyword, call)
        for call in code.calls("BatchNorm"):
            if code.qualified(call.func) == "flax.linen.BatchNorm":
                yield from _constant(code, call)


def _inverted(code: Syntax, keyword: ast.keyword, call: ast.Call) -> Iterator[Finding]:
    """The flag that means "evaluate" gets the one that means "train", or the negation of its like."""
    value, negated = keyword.value, False
    while isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        value, negated = value.operand, not negated
    if not isinstance(value, (ast.Name, ast.Attribute)):
        return
    name = last_name(value)
    if not (_EVALUATES if negated else _TRAINS).fullmatch(name) or not _is_flag(code, call, value):
        return
    inner = source_of(code.file, value)
    patch: tuple[Patch, ...] = ()
    if isinstance(value, ast.Name):
        patch = Change(code.file, "the other way round").replace(
            keyword.value, inner if negated else f"not {inner}").patches()  # fmt: skip
    what = "evaluates" if keyword.arg == "deterministic" else "uses its running statistics"
    yield _finding(code, keyword.value, "inverted",
                   f"{keyword.arg}={written(keyword.value)}: the layer {what} where the module is trained, and the "
                   "reverse", Bearing.CAUSE, patch)  # fmt: skip


def _is_flag(code: Syntax, call: ast.Call, value: ast.expr) -> bool:
    """Whether it is a flag of the module that holds a layer: an argument of the method, or a field of the class."""
    layer = call.func.func if isinstance(call.func, ast.Call) else call.func
    known = last_name(layer) in _LAYERS or code.qualified(layer).startswith("flax.")
    made = code.origin(layer) if not known else None
    held = isinstance(made, ast.Call) and last_name(made.func) in _LAYERS
    body = code.function(call)
    if body is None or not (known or held):
        return False
    root = value
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in parameters(body) and code.assigned(value) is None


def _constant(code: Syntax, call: ast.Call) -> Iterator[Finding]:
    """A BatchNorm whose mode is written as a constant where it is made, and not given where it is called."""
    given = next((k.value for k in call.keywords if k.arg == "use_running_average"), None)
    owner, body = code.owner(call), code.function(call)
    if not isinstance(given, ast.Constant) or not isinstance(given.value, bool) or owner is None or body is None:
        return
    if code.file.mentions(_ON_PURPOSE) or "test" in code.file.path.rpartition("/")[2]:
        return
    flag = next((n for n in parameters(body) if _TRAINS.fullmatch(n) or _EVALUATES.fullmatch(n)), None)
    if flag is None:
        return  # no mode is known here: it may be one of two modules
    negation = f"not {flag}" if _TRAINS.fullmatch(flag) else flag
    why = ("it normalises by running statistics that nothing updates: mean 0 and variance 1" if given.value else
           "it never uses its running statistics: in evaluation too, a sample's output depends on its batch")
    yield _finding(code, given, "constant",
                   f"use_running_average={given.value} is written into BatchNorm, although {body.name} is told by "
                   f"{flag!r} what it is run for: {why}", Bearing.CAUSE,
                   Change(code.file, "by the flag").replace(given, negation).patches())  # fmt: skip


def _finding(
    code: Syntax, node: ast.AST, kind: str, why: str, bearing: Bearing, patch: tuple[Patch, ...]
) -> Finding:
    return RULE.finding(f"{why} (at {code.at(node)})", code.place(node), code.file.path, bearing=bearing,
                        measured={"kind": kind}, patch=patch)  # fmt: skip
