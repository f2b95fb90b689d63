"""A training_step computes a loss and does not return it, or not as Lightning can use it.

Under automatic optimization Lightning sends back what training_step returns. A step without a value is skipped: no
backward, no optimizer step, one warning in the log. Whatever it logs itself goes on being logged, so that the curves
look like those of a model that does not learn. A loss that was cut from its graph (`loss.detach()`, `loss.item()`), or
a dictionary without the key "loss", ends the first batch with an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Lookup, lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, names_in, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C322",
    name="training-step-returns-nothing",
    title="training_step does not return its loss",
    severity=Severity.CRITICAL,
    sees="A training_step of a LightningModule that computes or logs a loss and has no return with a value, or that "
         "returns the loss without its graph, or a dictionary without the key loss.",
    matters="Every batch is skipped: no gradient, no step, the same weights to the end.",
    alike=("manual optimization", "a step that returns nothing for some batches on purpose", "an abstract base class"),
    confirm=("print(trainer.global_step) after an epoch: it counts batches, and the weights are those of the start",),
)
_LOSS = re.compile(r"loss|error|nll|elbo|objective|cost|criterion|entropy|kl_div|mse|(^|_)(ce|bce)(_|$)", re.IGNORECASE)
_LOGS = frozenset({"log", "log_dict"})
_CUTS = frozenset({"detach", "item", "tolist"})
_DEEP = 4


def check(project: Project) -> Iterator[Finding]:
    """Look at every module with a training_step."""
    if not any("training_step" in f.text and "ightningModule" in f.text for f in project.files):
        return
    look = lookup(project)
    for code, step in look.functions.get("training_step", []):
        owner = code.parent(step)
        if not isinstance(owner, ast.ClassDef) or not _automatic(look, code, owner, _DEEP):
            continue
        yield from _unusable(code, owner, step)
        if _gives(step):
            continue
        last = _loss(code, step)
        if last is not None:
            yield _finding(look, code, owner, step, last)


def _automatic(look: Lookup, code: Syntax, owner: ast.ClassDef, left: int) -> bool:
    """Whether it is certainly a LightningModule, and Lightning optimizes it."""
    switched = any("automatic_optimization" in written(t) for n in below(owner) if isinstance(n, ast.Assign)
                   for t in n.targets)  # fmt: skip
    hooks = {f.name for f in owner.body if isinstance(f, FunctionNode)} & {
        "optimizer_step", "backward", "optimize", "training_step_end"}  # fmt: skip
    if switched or hooks or left <= 0:
        return False
    bases = [last_name(b) for b in owner.bases]
    if "LightningModule" in bases:
        return len(bases) == 1 or all(b in look.classes or b == "LightningModule" or "Mixin" in b for b in bases)
    known = [found for b in bases for found in look.classes.get(b, [])]
    return len(known) == len(bases) == 1 and _automatic(look, *known[0], left - 1)


def _unusable(code: Syntax, owner: ast.ClassDef, step: ast.FunctionDef) -> Iterator[Finding]:
    """Returned values that hold no loss to send back: the only one of a step, that optimizes nothing by hand."""
    values = list(returned(step))
    by_hand = any(last_name(n.func) in ("backward", "manual_backward") for n in below(step)
                  if isinstance(n, ast.Call))  # fmt: skip
    if len(values) != 1 or by_hand:
        return
    given = code.origin(values[0])
    why, patch = "", tuple[Patch, ...]()
    if isinstance(given, ast.Dict) and given.keys and all(isinstance(k, ast.Constant) for k in given.keys):
        keys = [k.value for k in given.keys if isinstance(k, ast.Constant)]
        changed = isinstance(values[0], ast.Name) and _changed(code, step, values[0].id)
        if "loss" not in keys and not changed:
            why = f"a dictionary without the key \"loss\" ({', '.join(map(repr, keys))}), which Lightning refuses"
            named = [k for k in given.keys if isinstance(k, ast.Constant) and _LOSS.search(str(k.value))]
            if len(named) == 1:
                patch = Change(code.file, "the key that is read").replace(named[0], '"loss"').patches()
    cut = given if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) else None
    if cut is not None and last_name(cut.func) in _CUTS and not cut.args and isinstance(cut.func, ast.Attribute):
        inner = cut.func.value
        if _LOSS.search(written(inner)):
            why = f"{written(given)[:60]}, a number without the graph that backward needs"
            patch = Change(code.file, "return the loss with its graph").unwrap(given, inner).patches()
    if why:
        yield RULE.finding(
            f"{owner.name}.training_step at {code.at(step)} returns {why}",
            code.place(values[0]), code.file.path, bearing=Bearing.CAUSE,
            measured={"kind": "not usable", "class": owner.name}, patch=patch,
        )  # fmt: skip


def _changed(code: Syntax, step: ast.FunctionDef, name: str) -> bool:
    """Whether a dictionary gets more entries later."""
    stores = any(code.function(s) is step for s in code.item_stores.get(name, []))
    calls = [n for n in below(step) if isinstance(n, ast.Call)]
    return stores or any(written(c.func) == f"{name}.update" or (
        last_name(c.func) not in _LOGS and any(written(a) == name for a in c.args)) for c in calls)  # fmt: skip


def _gives(step: ast.FunctionDef) -> bool:
    """Whether it returns or yields something, optimizes by hand, or only raises."""
    own = [n for n in below(step) if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Raise))]
    calls = {last_name(n.func) for n in below(step) if isinstance(n, ast.Call)}
    values = [v for v in returned(step) if not (isinstance(v, ast.Constant) and v.value is None)]
    return bool(values or own or calls & {"backward", "manual_backward", "step", "optimizers", "toggle_optimizer"})


def _loss(code: Syntax, step: ast.FunctionDef) -> ast.stmt | None:
    """The last statement that makes a loss, or hands the batch to a method that returns one."""
    found: ast.stmt | None = None
    for statement in (s for s in below(step) if isinstance(s, (ast.Assign, ast.AugAssign, ast.Expr))):
        value = statement.value
        calls = [n for n in below(value) if isinstance(n, ast.Call)]
        if isinstance(statement, ast.Expr):
            named = any(_LOGS & {last_name(c.func)} and _LOSS.search(written(c)) for c in calls)
            helper = isinstance(value, ast.Call) and written(value.func).startswith("self.") and (
                _LOSS.search(last_name(value.func)) or "step" in last_name(value.func))  # fmt: skip
        else:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            named, helper = any(_LOSS.search(last_name(t)) for t in targets), False
        if (named or helper) and (found is None or statement.lineno >= found.lineno):
            found = statement
    return found


def _finding(look: Lookup, code: Syntax, owner: ast.ClassDef, step: ast.FunctionDef, last: ast.stmt) -> Finding:
    return RULE.finding(
        f"{owner.name}.training_step at {code.at(step)} returns nothing ({written(last)[:70]} at line {last.lineno} "
        "is its loss): Lightning skips every batch, and no weight changes",
        code.place(last),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "nothing", "class": owner.name},
        patch=_patch(look, code, step, last),
    )


def _patch(look: Lookup, code: Syntax, step: ast.FunctionDef, last: ast.stmt) -> tuple[Patch, ...]:
    """Return the loss that the step's own body makes last; return what the method gives that is only called."""
    end = step.body[-1]
    if isinstance(end, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
        return ()
    change = Change(code.file, "return the loss")
    top = [s for s in step.body if isinstance(s, (ast.Assign, ast.AugAssign))]
    names = [t.id for s in top for t in (s.targets if isinstance(s, ast.Assign) else [s.target])
             if isinstance(t, ast.Name) and _LOSS.search(t.id)]  # fmt: skip
    whole = [n for n in names if n.lower() in ("loss", "total_loss", "total", "objective", "elbo_loss")] or names
    if whole and len({*whole}) == 1:
        if isinstance(end, ast.Return):
            return change.edit(end.lineno, end.col_offset, end.end_col_offset or 0, f"return {whole[-1]}").patches()
        return change.after(end, f"return {whole[-1]}").patches()
    call = last.value if isinstance(last, ast.Expr) else None
    if not names and last is end and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        body = look.function(code, call.func)
        if body is not None and len(list(returned(body[1]))) == 1 and not names_in(call.func) - {"self"}:
            return change.insert(end.lineno, end.col_offset, "return ").patches()
    return ()
