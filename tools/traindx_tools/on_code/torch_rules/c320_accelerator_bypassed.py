"""The loop goes past the part that Accelerate plays in accumulation and mixed precision.

`accelerator.backward(loss)` divides the loss by the accumulation steps, multiplies it by the loss scale under fp16, and
hands it to the engine under DeepSpeed. `loss.backward()` does none of that: over a window of k micro-batches gradients
are k times too large, and the scaler of fp16 divides gradients that it never multiplied, or refuses the step. The other
side: with `gradient_accumulation_steps=k` the loss is divided by k, and it is `accumulate(model)` alone that holds the
optimizer back. Without it every micro-batch is a step with a gradient that is k times too small.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, written
from traindx_tools.on_code.wrapped_parts import Wrapping, keyword
from traindx_tools.rules import Rule

RULE = Rule(
    id="C320",
    name="accelerator-bypassed",
    title="The loop goes past the accelerator",
    severity=Severity.HIGH,
    sees="loss.backward() beside prepared parts, with accumulation or fp16 asked for; gradient_accumulation_steps "
         "without accumulate().",
    matters="Gradients are too large or too small by the accumulation steps, nothing is accumulated, or fp16 has no "
            "loss scale.",
    alike=("a branch for runs without an accelerator", "full precision without accumulation, where both ways are one",
           "accumulation that is written by hand"),
    confirm=("print the gradient norm of one batch with 1 and with 4 accumulation steps",),
)  # fmt: skip
_OWNER = re.compile(r"accel|^acc$", re.IGNORECASE)
_BRANCH = re.compile(r"accel|deepspeed|fabric|scaler|amp\b|fp16|apex", re.IGNORECASE)
_WINDOW = re.compile(r"accumulate|no_sync|sync_gradients\s*=[^=]|_do_sync|_set_sync_gradients|skip_backward")
_GUARD = re.compile(r"%|accum|sync|last", re.IGNORECASE)
_MOST_CALLERS = 4
_DEEP = 3


def check(project: Project) -> Iterator[Finding]:
    """Look at every backward, and at every accelerator that is told to accumulate."""
    text = [f.text for f in project.files if "accelerat" in f.text or "Accelerator" in f.text]
    if not any("Accelerator(" in t for t in text) or not any("prepare" in t for t in text):
        return
    wrapping = Wrapping(lookup(project))
    made = [(c, m) for c, m in wrapping.makers if last_name(m.func) == "Accelerator"]
    if not made:
        return
    yield from _plain(wrapping, made)
    if not any(f.mentions(_WINDOW) for f in project.files):
        yield from _without_window(wrapping, made)


_Made = list[tuple[Syntax, ast.Call]]


def _plain(wrapping: Wrapping, made: _Made) -> Iterator[Finding]:
    """Backward passes of a loss itself, where what the accelerator would have done matters."""
    whys = {_why(wrapping, c, m) for c, m in made}
    if len(whys) != 1 or None in whys:
        return
    (why,) = whys
    for code in wrapping.look.codes if why is not None else ():
        for call in code.calls("backward"):
            loss = call.func.value if isinstance(call.func, ast.Attribute) else None
            if why is None or loss is None or call.args or _is_owner(loss) or _chosen(code, call):
                continue
            owner = _reached(wrapping, code, call, _DEEP)
            if owner is None or (isinstance(loss, ast.Call) and last_name(loss.func) == "scale"):
                continue
            kind, what, certain = why
            name = owner or "accelerator"
            yield RULE.finding(
                f"{written(call)} at {code.at(call)} goes past {name}.backward(), {what}",
                code.place(call),
                code.file.path,
                bearing=Bearing.CAUSE if certain else Bearing.SIGN,
                severity=None if certain else Severity.MEDIUM,
                measured={"kind": "backward", "matters": kind},
                patch=_through(code, call, loss, owner),
            )


def _why(wrapping: Wrapping, code: Syntax, made: ast.Call) -> tuple[str, str, bool] | None:
    """What is lost without accelerator.backward(): (kind, in words, whether it is certain); None where nothing is."""
    half = keyword(made, "mixed_precision")
    steps = _steps(wrapping, code, made)
    if isinstance(half, ast.expr):
        _, value = wrapping.look.origin(code, half)
        if isinstance(value, ast.Constant) and value.value == "fp16":
            so = f"which scales the loss for mixed_precision='fp16' ({code.at(made)}): small gradients become 0,"
            return "fp16", f"{so} and the scaler refuses the step or divides gradients that it never multiplied", True
    if steps is not None:
        count, certain = steps
        so = f"which divides the loss by gradient_accumulation_steps={count} ({code.at(made)}): over one window the"
        return "accumulation", f"{so} gradients are that many times larger", certain
    if keyword(made, "deepspeed_plugin", "deepspeed_plugins") is not None:
        return "deepspeed", "which runs DeepSpeed's own backward: its engine sees no gradient", True
    return None


def _steps(wrapping: Wrapping, code: Syntax, made: ast.Call) -> tuple[str, bool] | None:
    """How often gradients are accumulated as it is written, and whether that is certain; None for once."""
    value = keyword(made, "gradient_accumulation_steps", "gradient_accumulation_plugin")
    if not isinstance(value, ast.expr):
        return None
    if isinstance(value, ast.Call) and last_name(value.func) == "GradientAccumulationPlugin":
        inner = keyword(value, "num_steps") or (value.args[0] if value.args else None)
        value = inner if isinstance(inner, ast.expr) else value
    number = wrapping.look.number(code, value)
    if number is None:
        return written(value), False
    return (f"{number:g}", True) if number > 1 else None


def _is_owner(node: ast.expr) -> bool:
    return bool(_OWNER.search(last_name(node))) or last_name(node) in ("fabric", "engine", "scaler", "self")


def _chosen(code: Syntax, node: ast.AST) -> bool:
    """Whether it stands in a branch for another way of training."""
    for up in code.above(node):
        if isinstance(up, FunctionNode):
            return False
        if isinstance(up, (ast.If, ast.IfExp)) and _BRANCH.search(written(up.test)):
            return True
        if isinstance(up, ast.With) and any("scale_loss" in written(i.context_expr) for i in up.items):
            return True
    return False


def _reached(wrapping: Wrapping, code: Syntax, node: ast.AST, left: int) -> str | None:
    """The accelerator's name where a node stands beside what it prepared; "" where only a caller knows it."""
    body, owner = code.function(node), code.owner(node)
    for taker in wrapping.takers(code):
        around = list(code.above(taker))
        beside = code.function(taker) is None if body is None else any(a is body or a is owner for a in around)
        if beside and _takes_trained(taker):
            return written(taker.func.value) if isinstance(taker.func, ast.Attribute) else ""
    if not isinstance(body, ast.FunctionDef) or left <= 0:
        return None
    if body.name.startswith("__"):
        return None
    given = next((n for n in parameters(body) if _OWNER.search(n)), "")
    for other, call in wrapping.look.callers(body, code)[:_MOST_CALLERS]:
        method = isinstance(call.func, ast.Attribute) and not other.qualified(call.func)
        if method == (owner is not None) and _reached(wrapping, other, call, left - 1) is not None:
            return given
    return None


def _takes_trained(taker: ast.Call) -> bool:
    """Whether more than a loader is prepared."""
    names = [last_name(a).lower() for a in taker.args]
    return len(names) > 1 or any(re.search(r"opt|model|net", n) for n in names)


def _through(code: Syntax, call: ast.Call, loss: ast.expr, owner: str | None) -> tuple[Patch, ...]:
    if not owner:
        return ()
    change = Change(code.file, f"send the loss back through {owner}")
    rest = "".join(f", {k.arg}={source_of(code.file, k.value)}" for k in call.keywords if k.arg)
    return change.replace(call, f"{owner}.backward({source_of(code.file, loss)}{rest})").patches()


def _without_window(wrapping: Wrapping, made: _Made) -> Iterator[Finding]:
    """Accelerators that divide the loss, in a project where nothing holds the step back."""
    for code, call in made:
        steps = _steps(wrapping, code, call)
        if steps is None:
            continue
        used = [(c, b) for c in wrapping.look.codes for b in c.calls("backward")
                if b.args and isinstance(b.func, ast.Attribute) and _is_owner(b.func.value)]  # fmt: skip
        plain = [(c, s) for c in wrapping.look.codes for s in c.calls("step") if _beside(c, s, used)]
        if not used or not plain or any(_held_back(c, s) for c, s in plain):
            continue
        count, certain = steps
        where, step = plain[0]
        yield RULE.finding(
            f"{written(call)[:80]} at {code.at(call)} asks for gradient_accumulation_steps={count} and no loop stands "
            f"in accumulate(): {written(step)} at {where.at(step)} runs on every micro-batch, with a loss that was "
            f"divided by {count}",
            code.place(call),
            code.file.path,
            bearing=Bearing.CAUSE if certain else Bearing.SIGN,
            severity=None if certain else Severity.MEDIUM,
            measured={"kind": "accumulate", "steps": count, "step_line": step.lineno},
        )


def _beside(code: Syntax, step: ast.Call, used: _Made) -> bool:
    """Whether a step stands in the function of a backward, and is an optimizer's."""
    name = written(step.func)
    if re.search(r"sched|profil|prof\b|env\b|bar\b|scaler|ema", name, re.IGNORECASE):
        return False
    return any(c is code and code.function(b) is code.function(step) for c, b in used)


def _held_back(code: Syntax, step: ast.AST) -> bool:
    """Whether a condition or a loop of its own stands around a step inside the loop over batches."""
    loops = code.loops(step)
    if len(loops) > 2:
        return True
    for up in code.above(step):
        if isinstance(up, FunctionNode):
            return False
        if isinstance(up, (ast.If, ast.IfExp)) and _GUARD.search(written(up.test)):
            return True
    return False
