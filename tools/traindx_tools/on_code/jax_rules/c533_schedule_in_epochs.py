"""A schedule of optax is as long as the number of epochs, and counts updates.

A schedule inside an optax optimizer is asked with the number of updates so far. `cosine_decay_schedule(lr, epochs)` is
over after as many batches as there should be epochs: the rate is 0 (or at its end) within the first epoch, and nothing
is learned after it. A length of one pass, `decay_steps=len(loader)`, ends with the first epoch. The length has to be
epochs times the updates of an epoch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.steps_of import SCHEDULE_LENGTHS, Loop, loops_around, steps
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C533",
    name="schedule-in-epochs",
    title="A schedule of optax is counted in epochs, and stepped by every update",
    severity=Severity.HIGH,
    sees="Lengths of optax schedules that are the number of epochs, or the batches of one, with an update a batch.",
    matters="The learning rate is at its end within the first epoch.",
    alike=("one update an epoch (the whole data as one batch)", "a length that multiplies both",
           "a schedule that is asked with the epoch by hand"),
    confirm=("print([float(schedule(i)) for i in range(0, total_updates, total_updates // 10)])",),
)  # fmt: skip
_EPOCHS = re.compile(r"(^|_)(n_?)?epochs?$|^epochs?_", re.IGNORECASE)
_OTHERWISE = re.compile(r"MultiSteps|hyperparams\[|hyperparams\s*=")


def check(project: Project) -> Iterator[Finding]:
    """Compare the length of every schedule with the loops around the updates."""
    if not any("optax" in f.text and "_schedule" in f.text for f in project.files):
        return
    if any(f.mentions(_OTHERWISE) for f in project.files if "optax" in f.text):
        return
    look = lookup(project)
    around: list[list[Loop]] | None = None
    for code in look.codes:
        for call in code.calls(*SCHEDULE_LENGTHS):
            if not code.qualified(call.func).startswith("optax."):
                continue
            given = argument(call, *SCHEDULE_LENGTHS[last_name(call.func)])
            unit = _unit(look, code, given) if given is not None else ""
            if not unit or given is None or _asked_by_hand(code, call):
                continue
            if around is None:
                around = [loops_around(look, c, s) for c, s in steps(look)]
            body = code.function(call)
            own = [x for x in around if body is not None and any(c is code and c.function(n) is body for c, n in x)]
            nested = [_nested(loops, unit, given) for loops in own or around]
            epochs = next((n for n in nested if n is not None), None)
            if epochs is not None and all(nested):
                yield _finding(code, call, given, unit, epochs)


def _unit(look: Lookup, code: Syntax, given: ast.expr) -> str:
    """"epochs" or "batches" where a length is the number of epochs, or of the batches of one; else nothing."""
    names: list[str] = []
    where, node = code, given
    for _ in range(6):
        names.append(_label(node))
        step = look.one_step(where, node)
        if step is None or step[1] is node:
            break
        where, node = step
    if isinstance(node, ast.Call) and last_name(node.func) == "len" and "loader" in written(node).lower():
        return "batches"
    plain = isinstance(node, (ast.Constant, ast.Name, ast.Attribute, ast.Subscript))
    return "epochs" if plain and any(_EPOCHS.search(n) for n in names if n) else ""


def _label(node: ast.expr) -> str:
    """What a value is called: a name, an attribute, or the key of an entry."""
    key = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
    return key if isinstance(key, str) else last_name(node)


def _asked_by_hand(code: Syntax, call: ast.Call) -> bool:
    """Whether the program asks the schedule itself: `schedule(epoch)`."""
    statement = code.statement(call)
    names = [last_name(t) for t in statement.targets] if isinstance(statement, ast.Assign) else []
    return any("epoch" in written(a) for n in names for c in code.calls(n) for a in c.args)


def _nested(loops: list[Loop], unit: str, given: ast.expr) -> Loop | None:
    """The loop over epochs, if a loop over batches lies between it and the update."""
    for place, (code, loop) in enumerate(loops):
        over = loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None
        if over is None or place == 0:
            continue
        if isinstance(over, ast.Call) and last_name(over.func) in ("tqdm", "trange", "track") and over.args:
            over = over.args[0] if last_name(over.func) != "trange" else over
        counted = isinstance(over, ast.Call) and last_name(over.func) in ("range", "trange")
        if not counted or not isinstance(loop, ast.For):
            continue
        named = _EPOCHS.search(written(loop.target)) or any(
            _EPOCHS.search(_label(a)) for a in getattr(over, "args", ()))  # fmt: skip
        if named and (unit == "batches" or _same(getattr(over, "args", []), given)):
            return code, loop
    return None


def _same(args: list[ast.expr], given: ast.expr) -> bool:
    """Whether the loop runs as often as the schedule is long, by the names of both."""
    return any(_EPOCHS.search(_label(a)) or _label(given) in written(a) for a in args)


def _finding(code: Syntax, call: ast.Call, given: ast.expr, unit: str, epochs: Loop) -> Finding:
    what = "the number of epochs" if unit == "epochs" else "the batches of one epoch"
    return RULE.finding(
        f"{last_name(call.func)} at {code.at(call)} is {written(given)} steps long, {what}, and optax counts every "
        f"update: the loop over epochs at {epochs[0].at(epochs[1])} has one for each batch, so the rate is at its end "
        f"{'within' if unit == 'epochs' else 'after'} the first epoch",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": unit, "schedule": last_name(call.func)},
    )
