"""A part of the training is not handed to Accelerate's prepare() or Fabric's setup() with its fellows.

`accelerator.accumulate(model)` only sets a flag; it is the prepared optimizer that looks at the flag and holds its
step() and zero_grad() back until the window is full. A plain torch optimizer steps on every micro-batch, so nothing is
accumulated. Under fp16 the prepared optimizer also takes the loss scale out of the gradients: a plain one steps with
gradients that are thousands of times too large. A plain scheduler moves on every micro-batch although its length is
counted in updates. A plain loader gives every process the same batches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, written
from traindx_tools.on_code.wrapped_parts import Part, Wrapping, keyword
from traindx_tools.rules import Rule

RULE = Rule(
    id="C284",
    name="part-not-prepared",
    title="An optimizer, scheduler, model or loader is not prepared with its fellows",
    severity=Severity.HIGH,
    sees="An optimizer, scheduler, model or loader that is used beside accelerator.prepare() or fabric.setup() and is "
         "given to neither.",
    matters="The step is not held back while gradients accumulate, or gradients keep the loss scale, or every process "
            "gets the same batches.",
    alike=("a step under `if accelerator.sync_gradients`", "one window per batch: no accumulation",
           "a scheduler that counts micro-batches", "parts that are prepared in a loop or by a helper"),
    confirm=("print(type(optimizer)): AcceleratedOptimizer once it is prepared",),
)  # fmt: skip
_OPTIMIZER = re.compile(r"(^|_)opt(im\w*)?s?(_|\d|$)|optimi[sz]er", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched", re.IGNORECASE)
_GUARDED = re.compile(r"sync|%|accum|step|last", re.IGNORECASE)
_MIXED = frozenset({"fp16", "bf16", "16-mixed", "bf16-mixed", "16"})
_COUNTS = re.compile(r"accum|update_steps|updates", re.IGNORECASE)
_SHARES = re.compile(r"num_processes|process_index|split_between|DistributedSampler|world_size|local_rank|set_device")


def check(project: Project) -> Iterator[Finding]:
    """Look at every step, and at every loop over a loader, beside a call that prepares."""
    if not any(("accelerat" in f.text and "prepare" in f.text) or "fabric" in f.text.lower() for f in project.files):
        return
    wrapping = Wrapping(lookup(project))
    if not any(wrapping.takers(c) for c in wrapping.look.codes):
        return
    told: set[str] = set()
    for code in wrapping.look.codes:
        for finding in (*_steps(wrapping, code), *_models(wrapping, code), *_loaders(wrapping, code)):
            key = f"{finding.measured.get('part')} {finding.measured.get('call')}"
            if key not in told:
                told.add(key)
                yield finding


def _steps(wrapping: Wrapping, code: Syntax) -> Iterator[Finding]:
    for step in code.calls("step"):
        owner = step.func.value if isinstance(step.func, ast.Attribute) else None
        if owner is None or not isinstance(owner, (ast.Name, ast.Attribute)):
            continue
        for part in wrapping.left_out(code, owner, (step,)):
            kind = _kind(part)
            if kind == "optimizer":
                yield from _optimizer(wrapping, code, step, part)
            elif kind == "scheduler":
                yield from _scheduler(wrapping, code, step, part)


def _kind(part: Part) -> str:
    """What is stepped, by what it is made of or else by its name."""
    for _, value in part.code.bindings(part.name):
        full = part.code.qualified(value.func) if isinstance(value, ast.Call) else ""
        if "lr_scheduler" in full or "schedule" in full:
            return "scheduler"
        if full.startswith(("torch.optim.", "bitsandbytes.optim", "transformers.optimization")):
            return "optimizer"
    name = last_name(part.name)
    return "scheduler" if _SCHEDULER.search(name) else "optimizer" if _OPTIMIZER.search(name) else ""


def _optimizer(wrapping: Wrapping, code: Syntax, step: ast.Call, part: Part) -> Iterator[Finding]:
    scaled = _half(wrapping, part)
    window = _window(wrapping, part)
    if _accumulates(wrapping, part) and window != "one":
        certain = window == "many"
        what = (f"so {written(step)} at {code.at(step)} is not held back in accumulate(): a plain optimizer steps on "
                "every micro-batch and nothing is accumulated")  # fmt: skip
        yield _finding(part, "optimizer", what, "accumulate", certain)
    elif scaled:
        what = (f"so {written(step)} at {code.at(step)} steps with gradients that still hold the loss scale of "
                f"{scaled}")  # fmt: skip
        yield _finding(part, "optimizer", what, "loss scale", True)


def _scheduler(wrapping: Wrapping, code: Syntax, step: ast.Call, part: Part) -> Iterator[Finding]:
    """A scheduler whose length is counted in updates and which every micro-batch steps."""
    values = [v for _, v in part.code.bindings(part.name)]
    every = _accumulates(wrapping, part) and _window(wrapping, part) == "many"
    if every and any(_in_updates(part.code, v) for v in values):
        what = (f"so {written(step)} at {code.at(step)} moves it on in every micro-batch, although its length is "
                "counted in updates: the rate ends too early")  # fmt: skip
        yield _finding(part, "scheduler", what, "scheduler", True)


def _in_updates(code: Syntax, value: ast.expr) -> bool:
    """Whether the length that a scheduler is given was divided by the accumulation steps."""
    seen: list[ast.expr] = [value]
    for node in seen:  # grows while it is walked, to a bound
        for part in below(node):
            if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.FloorDiv, ast.Div)) and (
                    _COUNTS.search(written(part.right))):  # fmt: skip
                return True
            if isinstance(part, (ast.Name, ast.Attribute)) and len(seen) < 40:
                seen += [v for _, v in code.bindings(part) if v not in seen][:2]
    return False


def _models(wrapping: Wrapping, code: Syntax) -> Iterator[Finding]:
    """A model in a prepared optimizer that is not prepared itself, and is handed to nothing else."""
    for made in code.of(ast.Call):
        given = made.args[0] if made.args else None
        if not (isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute)
                and given.func.attr == "parameters"):  # fmt: skip
            continue
        if not code.qualified(made.func).startswith("torch.optim."):
            continue
        model, up = given.func.value, code.parent(made)
        if not isinstance(up, ast.Assign) or any(True for _ in wrapping.left_out(code, up.targets[0], (made,))):
            continue
        for part in wrapping.left_out(code, model, (made,)):
            owners = [c for c in part.code.of(ast.Call) for a in c.args if written(a) == written(part.name)
                      and last_name(c.func) not in ("accumulate", "print", "len", "unwrap_model")]  # fmt: skip
            if owners or not any(c.calls("backward") for c in wrapping.look.codes):
                continue
            mixed = _precision(wrapping, part)
            so = f"so {mixed} never reaches its forward pass" if mixed else (
                "so several processes train copies of it that drift apart")  # fmt: skip
            yield _finding(part, "model", so, "model", bool(mixed))


def _loaders(wrapping: Wrapping, code: Syntax) -> Iterator[Finding]:
    """A loop that trains over a loader which is not prepared, while the model is."""
    if not code.calls("backward") or code.file.mentions(_SHARES):
        return
    for loop in code.of(ast.For):
        source = loop.iter
        while isinstance(source, ast.Call) and last_name(source.func) in ("enumerate", "tqdm") and source.args:
            source = source.args[0]
        backward = any(isinstance(n, ast.Call) and last_name(n.func) == "backward" and n.args for n in below(loop))
        if not backward or not isinstance(source, (ast.Name, ast.Attribute)):
            continue
        for part in wrapping.left_out(code, source, (loop,)):
            made = part.code.origin(part.name)
            sampled = isinstance(made, ast.Call) and argument(made, 3, "sampler", "batch_sampler") is not None
            if isinstance(made, ast.Call) and last_name(made.func) == "DataLoader" and not sampled:
                what = f"so every process goes through the same batches in the loop at line {loop.lineno}"
                yield _finding(part, "loader", what, "loader", False)


def _accumulates(wrapping: Wrapping, part: Part) -> bool:
    """Whether the step is reached inside accumulate() and no condition holds it back."""
    for node in part.path:
        code = next((c for c in wrapping.look.codes if c.parent(node) is not None), None)
        if code is None:
            return False
        for up in code.above(node):
            if isinstance(up, FunctionNode):
                break
            if isinstance(up, (ast.If, ast.IfExp)) and _GUARDED.search(written(up.test)):
                return False
            if isinstance(up, ast.With) and any("accumulate(" in written(i.context_expr) for i in up.items):
                return True
    return False


def _window(wrapping: Wrapping, part: Part) -> str:
    """Micro-batches in one update: "one", "many" (or not known), or "default one" where an option says one."""
    found: set[str] = set()
    for code, made in wrapping.makers_of(part):
        if last_name(made.func) != "Accelerator":
            continue
        value = keyword(made, "gradient_accumulation_steps", "gradient_accumulation_plugin")
        if value is None:
            found.add("one")
        elif isinstance(value, str) or wrapping.look.number(code, value) != 1:
            found.add("many")
        else:
            found.add("one" if isinstance(value, ast.Constant) else "default one")
    assigned = any("gradient_accumulation_steps" in written(t) for c in wrapping.look.codes for n in c.of(ast.Assign)
                   for t in n.targets if isinstance(t, ast.Attribute) and "accel" in written(t))  # fmt: skip
    if assigned or "many" in found:
        return "many"
    return "default one" if "default one" in found or not found else "one"


def _half(wrapping: Wrapping, part: Part) -> str:
    """The half precision with a loss scale that the program trains in."""
    known = _precision(wrapping, part)
    return known if known in ("fp16", "16-mixed", "16") else ""


def _precision(wrapping: Wrapping, part: Part) -> str:
    """The mixed precision that the program asks for, where it is written."""
    for code, made in wrapping.makers_of(part):
        value = keyword(made, "mixed_precision", "precision")
        if isinstance(value, ast.expr):
            _, known = wrapping.look.origin(code, value)
            if isinstance(known, ast.Constant) and str(known.value) in _MIXED:
                return str(known.value)
    return ""


def _finding(part: Part, what: str, so: str, kind: str, certain: bool) -> Finding:
    code, name = part.code, written(part.name)
    call = written(part.call)
    verb = "setup" if "setup" in last_name(part.call.func) else "prepare"
    return RULE.finding(
        f"The {what} {name} is not passed to {verb}() at {code.at(part.call)} ({call[:80]}), {so}",
        code.place(part.call),
        code.file.path,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN,
        severity=None if certain else Severity.MEDIUM,
        measured={"kind": kind, "part": name, "call": part.call.lineno},
        patch=_patch(part, kind),
    )


def _patch(part: Part, kind: str) -> tuple[Patch, ...]:
    """The part beside its fellows, in what is given and in what comes back."""
    code, call = part.code, part.call
    up = code.parent(call)
    bound = [s for s, _ in code.bindings(part.name)]
    home = [code.function(call), *(a for a in code.above(call) if isinstance(a, FunctionNode))]
    before = all(s.lineno < call.lineno and code.function(s) in home for s in bound)
    if not isinstance(up, ast.Assign) or len(up.targets) != 1 or call.keywords or not call.args or not before:
        return ()
    if last_name(call.func) not in ("prepare", "setup") or (kind == "loader" and last_name(call.func) == "setup"):
        return ()
    target = up.targets[0]
    change = Change(code.file, f"prepare {written(part.name)} with its fellows")
    text = source_of(code.file, part.name)
    last = call.args[-1]
    change.insert(last.end_lineno or last.lineno, last.end_col_offset or 0, f", {text}")
    if isinstance(target, ast.Tuple) and len(target.elts) == len(call.args):
        end = target.elts[-1]
    elif len(call.args) == 1 and isinstance(target, (ast.Name, ast.Attribute)):
        end = target
    else:
        return ()
    if names_in(target) & names_in(part.name) and isinstance(part.name, ast.Name):
        return ()
    return change.insert(end.end_lineno or end.lineno, end.end_col_offset or 0, f", {text}").patches()
