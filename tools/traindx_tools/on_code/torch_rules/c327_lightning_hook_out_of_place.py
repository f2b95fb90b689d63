"""A hook of a LightningModule does what belongs into another one.

Lightning sets the mode before each loop and optimizes by itself. `self.eval()` in training_step turns dropout off and
freezes BatchNorm for the rest of the epoch; `self.train()` in validation_step does the reverse. backward() and step()
by hand want `automatic_optimization = False`: beside the automatic ones they raise an error or update twice. Clearing
the gradients between backward and the step (on_after_backward, on_before_optimizer_step) leaves nothing to apply, an
update in validation_step fits the model to the validation data, and `model.freeze()` in front of `trainer.fit(model)`
leaves no parameter that can learn.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Lookup, lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C327",
    name="lightning-hook-out-of-place",
    title="A Lightning hook does what belongs into another one",
    severity=Severity.HIGH,
    sees="eval() in training_step, train() in validation_step, updates by hand under automatic optimization or in "
         "validation_step, gradients cleared before the step, freeze() in front of fit().",
    matters="The model is trained in the wrong mode, on the validation data, twice, or not at all.",
    alike=("manual optimization", "a part that is frozen and kept in eval mode on purpose",
           "test-time training on purpose"),
    confirm=("print(self.training) in both steps; compare a weight before and after a batch",),
)  # fmt: skip
_BETWEEN = ("on_after_backward", "on_before_optimizer_step", "configure_gradient_clipping")
_EVALUATES = ("validation_step", "test_step")
_SAMPLED = re.compile(r"monte|mc_|mcd|uncertain|adapt|samples\b", re.IGNORECASE)
"""Dropout that samples predictions, and adaptation at test time, run in training mode on purpose."""
_DEEP = 4


@dataclass(frozen=True)
class _Fault:
    node: ast.AST
    kind: str
    why: str
    bearing: Bearing = Bearing.CAUSE
    patch: tuple[Patch, ...] = ()


def check(project: Project) -> Iterator[Finding]:
    """Look at every LightningModule, and at what is done to one before it is fitted."""
    if not any("ightningModule" in f.text for f in project.files):
        return
    look = lookup(project)
    for code in look.codes:
        for owner in code.of(ast.ClassDef):
            if not _is_module(look, owner, _DEEP):
                continue
            hooks = {f.name: f for f in owner.body if isinstance(f, ast.FunctionDef)}
            for fault in (*_modes(code, hooks), *_updates(look, code, owner, hooks), *_cleared(code, hooks)):
                yield _finding(code, fault)
        yield from (_finding(code, fault) for fault in _frozen(look, code))


def _is_module(look: Lookup, owner: ast.ClassDef, left: int) -> bool:
    bases = [last_name(b) for b in owner.bases]
    if "LightningModule" in bases:
        return True
    return left > 0 and any(_is_module(look, found, left - 1) for b in bases for _, found in look.classes.get(b, []))


def _modes(code: Syntax, hooks: dict[str, ast.FunctionDef]) -> Iterator[_Fault]:
    """The whole module put into the other mode inside a step, for good."""
    for names, method, other in ((("training_step",), "eval", "train"), (_EVALUATES, "train", "eval")):
        for step in (hooks[n] for n in names if n in hooks and not _SAMPLED.search(written(hooks[n]))):
            calls = [c for c in below(step) if isinstance(c, ast.Call)]
            back = any(written(c.func) == f"self.{other}" for c in calls)
            for call in calls:
                off = method == "train" and call.args and getattr(call.args[0], "value", True) is False
                alone = isinstance(code.parent(call), ast.Expr)
                if written(call.func) != f"self.{method}" or back or off or not alone or _conditional(code, call, step):
                    continue
                statement = code.statement(call)
                why = (f"self.{method}() in {step.name} puts the whole module into "
                       f"{'evaluation' if method == 'eval' else 'training'} mode, and nothing undoes it")  # fmt: skip
                change = Change(code.file, "Lightning sets the mode").delete(statement)
                yield _Fault(call, f"{method} in step", why, patch=change.patches())


def _conditional(code: Syntax, node: ast.AST, within: ast.AST) -> bool:
    for up in code.above(node):
        if up is within:
            return False
        if isinstance(up, (ast.If, ast.IfExp, ast.Try)):
            return True
    return False


def _updates(
    look: Lookup, code: Syntax, owner: ast.ClassDef, hooks: dict[str, ast.FunctionDef]
) -> Iterator[_Fault]:
    for judged in (hooks[n] for n in _EVALUATES if n in hooks and not _SAMPLED.search(written(hooks[n]))):
        stepped = _stepped(code, judged)
        if stepped is not None and _backward(judged) is not None:
            why = f"{written(stepped)[:60]} in {judged.name} updates the weights with the data that they are judged on"
            yield _Fault(stepped, "update in evaluation", why)
    step = hooks.get("training_step")
    back = _backward(step) if step is not None else None
    if step is None or back is None or not _automatic(look, owner, _DEEP) or _stepped(code, step) is None:
        return
    gives = any(not (isinstance(v, ast.Constant) and v.value is None) for v in returned(step))
    known = "optimizers()" in written(code.origin(_owner(_stepped(code, step))))
    raises = known and (gives or written(back.func) == "self.manual_backward")
    why = (f"{written(back)[:60]} and a step by hand stand in training_step, and automatic_optimization is not turned "
           f"off: {'Lightning runs backward and the step once more' if gives else 'Lightning optimizes by itself'}")
    yield _Fault(back, "by hand under automatic", why, Bearing.CAUSE if raises else Bearing.SIGN)


def _owner(call: ast.Call | None) -> ast.expr:
    """The object whose method is called."""
    return call.func.value if call is not None and isinstance(call.func, ast.Attribute) else ast.Constant(None)


def _automatic(look: Lookup, owner: ast.ClassDef, left: int) -> bool:
    """Whether nothing here, in a base or anywhere in the project turns automatic optimization off."""
    if any("automatic_optimization" in code.file.text for code in look.codes):
        return False
    bases = [last_name(b) for b in owner.bases]
    if "LightningModule" in bases:
        return len(bases) == 1 or all(b == "LightningModule" or b in look.classes or "Mixin" in b for b in bases)
    known = [found for b in bases for _, found in look.classes.get(b, [])]
    return left > 0 and len(known) == len(bases) == 1 and _automatic(look, known[0], left - 1)


def _backward(step: ast.FunctionDef) -> ast.Call | None:
    return next((n for n in below(step) if isinstance(n, ast.Call)
                 and last_name(n.func) in ("backward", "manual_backward")), None)  # fmt: skip


def _stepped(code: Syntax, step: ast.FunctionDef) -> ast.Call | None:
    """`opt.step()` where opt is what `self.optimizers()` gave, or is named like it."""
    for call in (n for n in below(step) if isinstance(n, ast.Call) and last_name(n.func) == "step"):
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        if holder is None:
            continue
        made = written(code.origin(holder))
        if "optimizers()" in made or "optim.optimizer" in written(holder) or last_name(holder).startswith("opt"):
            return call
    return None


def _cleared(code: Syntax, hooks: dict[str, ast.FunctionDef]) -> Iterator[_Fault]:
    for hook in (hooks[n] for n in _BETWEEN if n in hooks):
        for call in (n for n in below(hook) if isinstance(n, ast.Call) and last_name(n.func) == "zero_grad"):
            whole = written(call.func) in ("self.zero_grad", "optimizer.zero_grad", "opt.zero_grad")
            if whole and not _conditional(code, call, hook):
                why = f"{written(call)} in {hook.name} clears the gradients between backward and the optimizer's step"
                change = Change(code.file, "keep the gradients").delete(code.statement(call))
                yield _Fault(call, "cleared before step", why, patch=change.patches())


def _frozen(look: Lookup, code: Syntax) -> Iterator[_Fault]:
    """`model.freeze()` and then `trainer.fit(model)`, with nothing that thaws it between."""
    for call in code.calls("freeze"):
        if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
            continue
        name = call.func.value
        if not isinstance(name, ast.Name) or not isinstance(code.parent(call), ast.Expr):
            continue
        _, made = look.origin(code, name)
        known = [f for _, f in look.classes.get(last_name(made.func), [])] if isinstance(made, ast.Call) else []
        if not known or not all(_is_module(look, f, _DEEP) and not _own(f, "freeze") for f in known):
            continue
        later = [c for c in code.calls("fit") if c.lineno > call.lineno and code.scope(c) is code.scope(call)
                 and c.args and written(c.args[0]) == name.id]  # fmt: skip
        if not later or _conditional(code, call, code.scope(call)):
            continue
        if _thawed(code, call, later[0], name.id):
            continue
        why = (f"{written(call)} turns requires_grad off for every parameter of the model that "
               f"{written(later[0])[:50]} trains: nothing can learn")  # fmt: skip
        change = Change(code.file, "train the model").delete(code.statement(call))
        yield _Fault(call, "frozen before fit", why, patch=change.patches())


def _thawed(code: Syntax, frozen: ast.Call, fit: ast.Call, name: str) -> bool:
    """Whether something between the two lets a part learn again, puts a new part in, or hands the model on."""
    for node in code.inside(code.scope(frozen), ast.Attribute):
        if frozen.lineno < node.lineno <= fit.lineno and (
            node.attr in ("unfreeze", "requires_grad_", "requires_grad", "parameters", "named_parameters")
            or (written(node).startswith(f"{name}.") and node.attr != "eval")
        ):
            return True
    return any(frozen.lineno < c.lineno < fit.lineno and any(written(a) == name for a in c.args)
               for c in code.inside(code.scope(frozen), ast.Call))  # fmt: skip


def _own(owner: ast.ClassDef, name: str) -> bool:
    return any(isinstance(f, FunctionNode) and f.name == name for f in owner.body)


def _finding(code: Syntax, fault: _Fault) -> Finding:
    certain = fault.bearing is Bearing.CAUSE
    return RULE.finding(
        f"{fault.why} (at {code.at(fault.node)})",
        code.place(fault.node),
        code.file.path,
        bearing=fault.bearing,
        severity=None if certain else Severity.MEDIUM,
        measured={"kind": fault.kind},
        patch=fault.patch,
    )
