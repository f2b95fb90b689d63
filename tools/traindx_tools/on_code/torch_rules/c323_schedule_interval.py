"""A Lightning schedule is counted in steps and stepped once an epoch, or the reverse.

Lightning steps a scheduler at the end of each epoch unless the dictionary that configure_optimizers returns says
`"interval": "step"`. A OneCycle, cosine or warm-up schedule whose length is `trainer.estimated_stepping_batches` (or
batches times epochs) then moves a few thousandths of its way: the rate stays at its start, for a warm-up near 0. The
reverse, a length in epochs with `"interval": "step"`, runs through the whole schedule in the first batches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.lookup import Lookup, lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written

(RULE,) = pages("frameworks", ("C323",))
_LENGTHS = {
    "OneCycleLR": (2, "total_steps"), "CosineAnnealingLR": (1, "T_max"), "LinearLR": (3, "total_iters"),
    "PolynomialLR": (1, "total_iters"), "CosineAnnealingWarmRestarts": (1, "T_0"),
    "get_linear_schedule_with_warmup": (2, "num_training_steps"),
    "get_cosine_schedule_with_warmup": (2, "num_training_steps"),
    "get_polynomial_decay_schedule_with_warmup": (2, "num_training_steps"),
    "get_cosine_with_hard_restarts_schedule_with_warmup": (2, "num_training_steps"),
    "get_constant_schedule_with_warmup": (1, "num_warmup_steps"),
    "LinearWarmupCosineAnnealingLR": (2, "max_epochs"),
}  # fmt: skip
_CERTAIN = re.compile(r"estimated_stepping_batches")
_STEPS = re.compile(r"estimated_stepping_batches|len\([\w.]*(loader|dataloader)\w*(\(\))?\)|steps_per_epoch|n_steps|"
                    r"(total|max|num|train\w*)_(train\w*_)?steps|num_batches|num_training_batches")  # fmt: skip
_EPOCHS = re.compile(r"(max|num|n|total)_epochs|(^|\.)epochs\b")
_DEEP = 6


@dataclass(frozen=True)
class _Returned:
    """A scheduler as configure_optimizers returns it. `holder`: the dictionary around it, where there is one."""

    code: Syntax
    made: ast.Call
    name: ast.expr
    holder: ast.Dict | None
    by_step: bool


def check(project: Project) -> Iterator[Finding]:
    """Look at every configure_optimizers."""
    if not any("configure_optimizers" in f.text and "ched" in f.text for f in project.files):
        return
    look = lookup(project)
    for code, body in look.functions.get("configure_optimizers", []):
        owner = code.parent(body)
        if isinstance(owner, ast.ClassDef) and not _by_hand(look, owner, _DEEP):
            for one in _schedulers(code, body):
                yield from _judged(look, one)


def _by_hand(look: Lookup, owner: ast.ClassDef, left: int) -> bool:
    """Whether the class steps its schedulers itself, or something that it inherits from may."""
    for node in below(owner):
        if isinstance(node, ast.FunctionDef) and node.name in ("lr_scheduler_step", "lr_schedulers"):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("lr_schedulers", "automatic_optimization"):
            return True
        if isinstance(node, ast.Call) and last_name(node.func) == "step" and "sched" in written(node.func):
            return True
    bases = [found for b in owner.bases for found in look.classes.get(last_name(b), [])]
    return left > 0 and any(_by_hand(look, base, left - 1) for _, base in bases)


def _schedulers(code: Syntax, body: ast.FunctionDef) -> Iterator[_Returned]:
    for value in returned(body):
        value = code.origin(value)
        if isinstance(value, ast.Dict):
            given = _entry(value, "lr_scheduler")
            yield from _one(code, given) if given is not None else ()
        elif isinstance(value, ast.Tuple) and len(value.elts) == 2:
            second = code.origin(value.elts[1])
            for part in second.elts if isinstance(second, (ast.List, ast.Tuple)) else ():
                yield from _one(code, part)


def _entry(table: ast.Dict, name: str) -> ast.expr | None:
    return next((v for k, v in zip(table.keys, table.values, strict=True)
                 if isinstance(k, ast.Constant) and k.value == name), None)  # fmt: skip


def _one(code: Syntax, given: ast.expr) -> Iterator[_Returned]:
    """A scheduler, alone or in its dictionary; nothing where the dictionary cannot be read."""
    holder = code.origin(given)
    if isinstance(holder, ast.Call) and last_name(holder.func) == "dict" and not holder.args:
        table = {k.arg: k.value for k in holder.keywords}
        inside, interval, held = table.get("scheduler"), table.get("interval"), None
        if None in table or inside is None:
            return
    elif isinstance(holder, ast.Dict):
        if None in holder.keys or code.item_stores.get(written(given)):
            return
        inside, interval, held = _entry(holder, "scheduler"), _entry(holder, "interval"), holder
    else:
        inside, interval, held = given, None, None
    if inside is None or (interval is not None and not isinstance(code.origin(interval), ast.Constant)):
        return
    said = code.origin(interval) if interval is not None else None
    made = code.origin(inside)
    if isinstance(made, ast.Call):
        yield _Returned(code, made, inside, held, isinstance(said, ast.Constant) and said.value == "step")


def _judged(look: Lookup, one: _Returned) -> Iterator[Finding]:
    name = last_name(one.made.func)
    spec = _LENGTHS.get(name)
    if spec is None:
        return
    length = argument(one.made, *spec)
    if name == "OneCycleLR" and length is None:
        length = argument(one.made, 4, "steps_per_epoch")
        text = "steps_per_epoch" if length is not None else ""
    else:
        text = _spelled(look, one.code, length, _DEEP) if length is not None else ""
    if length is None:
        return
    if not one.by_step and name != "CosineAnnealingWarmRestarts" and _STEPS.search(text):
        certain = bool(_CERTAIN.search(text)) or text == "steps_per_epoch"
        said = one.holder is not None and _entry(one.holder, "interval") is not None
        how = "stands beside an interval of epochs" if said else "has no interval beside it"
        why = (f"{name} at {one.code.at(one.made)} is {written(length)[:60]} steps long and {how}: Lightning steps it "
               "once an epoch, and the rate hardly moves")  # fmt: skip
        yield _finding(one, why, "per epoch", certain)
    elif one.by_step and _EPOCHS.search(text) and not _STEPS.search(text) and "*" not in text:
        why = (f"{name} at {one.code.at(one.made)} is {written(length)[:60]} epochs long and stands beside "
               "\"interval\": \"step\": it is at its end after as many batches")  # fmt: skip
        yield _finding(one, why, "per step", True)


def _spelled(look: Lookup, code: Syntax, node: ast.expr, left: int) -> str:
    """How a length is written, with what its names were made of."""
    texts = [written(node)]
    for part in below(node) if left > 0 else ():
        if isinstance(part, (ast.Name, ast.Attribute)):
            made = code.assigned(part)
            if made is not None and made is not node:
                texts.append(_spelled(look, code, made, left - 1))
    return " ".join(texts) if len(texts) < 20 else ""


def _finding(one: _Returned, why: str, kind: str, certain: bool) -> Finding:
    return RULE.finding(
        why,
        one.code.place(one.made),
        one.code.file.path,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN,
        severity=None if certain else Severity.MEDIUM,
        measured={"kind": kind},
    )
