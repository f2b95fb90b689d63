"""The teacher of a distillation does not stay what it was.

Its outputs are targets, so they have to be the same for the same input. In training mode dropout removes other units at
each call, and BatchNorm normalises with the batch and moves its statistics: targets are noisy and worse than the
teacher is. A teacher whose parameters an optimizer holds and whose output stays in the graph is pulled towards its
student, which is the shorter way to a small distance: both end at something that neither was taught.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.teachers import Teacher, peeled, teachers
from traindx_tools.rules import Rule

RULE = Rule(
    id="C253",
    name="teacher-not-fixed",
    title="The teacher of a distillation does not stay what it was",
    severity=Severity.HIGH,
    sees="A network called teacher that is loaded and never put into eval mode, or whose parameters are trained along.",
    matters="Targets are noisy, or move towards the student: it learns from something worse than the teacher.",
    alike=("a teacher that is the moving average of its student",
           "two networks that teach each other, each with labels",
           "a teacher without dropout and BatchNorm, which has no mode"),
    confirm=("assert not teacher.training in the step", "compare two calls of the teacher on one batch"),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every teacher in a training step."""
    codes = [syntax(f) for f in project.files if "torch" in f.text or "lightning" in f.text or "teacher" in f.text]
    if not any("teacher" in c.file.text.lower() or "tutor" in c.file.text or "tchr" in c.file.text for c in codes):
        return
    told: set[tuple[str, str]] = set()
    for teacher in teachers(codes):
        if teacher.averaged:
            continue
        for kind, judge in (("trained", _trained), ("mode", _in_train_mode), ("graph", _graph)):
            found = judge(teacher)
            if found is not None and (kind, teacher.name) not in told:
                told.add((kind, teacher.name))
                yield found
                break


def _trained(teacher: Teacher) -> Finding | None:
    by = teacher.trained_by
    if by is None or teacher.frozen or teacher.cut or not teacher.loaded or _has_own_labels(teacher):
        return None
    code, optimizer = by
    return _finding(
        teacher,
        f"{written(teacher.call)} at {teacher.code.at(teacher.call)} stays in the graph, and the optimizer at "
        f"{code.at(optimizer)} holds the teacher's parameters: the teacher is trained towards its student",
        "trained", Severity.HIGH, _detached(teacher),
    )  # fmt: skip


def _has_own_labels(teacher: Teacher) -> bool:
    """Whether the teacher is trained on labels as well: two networks that learn together."""
    code = teacher.code
    statement = code.statement(teacher.call)
    names = {t.id for t in getattr(statement, "targets", ()) if isinstance(t, ast.Name)}
    for call in code.calls("cross_entropy", "criterion", "ce", "ce_loss", "loss_fn", "nll_loss"):
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Name) and first.id in names:
            return True
    return False


def _in_train_mode(teacher: Teacher) -> Finding | None:
    layer = teacher.mode_dependent
    if not layer or not teacher.loaded:
        return None
    modes = teacher.in_eval_mode_by
    asks = f"{written(teacher.call)} at {teacher.code.at(teacher.call)} asks a teacher in training mode"
    if not modes:
        why = f"nothing puts it into eval mode, and it has {layer}"
        return _finding(teacher, f"{asks}: {why}", "mode", Severity.HIGH, _put_into_eval(teacher))
    undone = _undone(teacher)
    if undone is not None and all(k is not None and _in_init(c, k) for c, k in modes):
        where = f"{written(undone[1])} at {undone[0].at(undone[1])} reaches every module inside"
        why = f"{where}, also the teacher (it has {layer}) that __init__ had put into eval mode"
        return _finding(teacher, f"{asks}: {why}", "mode", Severity.HIGH, ())
    return None


def _in_init(code: Syntax, call: ast.Call) -> bool:
    function = code.function(call)
    return function is not None and function.name == "__init__"


def _undone(teacher: Teacher) -> tuple[Syntax, ast.Call] | None:
    """`model.train()` in a loop, of the plain module that holds the teacher and has no train of its own."""
    owner = teacher.code.owner(teacher.call)
    if owner is None or any(isinstance(n, ast.FunctionDef) and n.name == "train" for n in owner.body):
        return None
    if not any(last_name(b) == "Module" for b in owner.bases):
        return None
    for code, call in teacher.sources.calls.get("train", ()):
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        made = peeled(code.assigned(receiver)) if isinstance(receiver, ast.Name) else None
        if isinstance(made, ast.Call) and last_name(made.func) == owner.name and code.loops(call) and not call.args:
            return code, call
    return None


def _graph(teacher: Teacher) -> Finding | None:
    """Its forward is recorded although nothing needs it: memory, and no more."""
    if teacher.cut or teacher.frozen or not teacher.loaded or teacher.trained_by is not None or teacher.made is None:
        return None
    recorded = f"{written(teacher.call)} at {teacher.code.at(teacher.call)} is recorded for a gradient of the teacher"
    return _finding(teacher, f"{recorded} that nothing uses: memory of a second network", "graph", Severity.LOW,
                    _detached(teacher))  # fmt: skip


def _detached(teacher: Teacher) -> tuple[Patch, ...]:
    statement = teacher.code.statement(teacher.call)
    alone = isinstance(statement, ast.Assign) and statement.value is teacher.call and isinstance(
        statement.targets[0], ast.Name)  # fmt: skip
    change = Change(teacher.code.file, "keep the teacher out of the graph")
    return change.wrap(teacher.call, "", ".detach()").patches() if alone else ()


def _put_into_eval(teacher: Teacher) -> tuple[Patch, ...]:
    """eval() behind the statement that loads its weights, in the same source."""
    for code, call in teacher.mentions(r"^load_state_dict$"):
        statement = code.statement(call)
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if receiver is not None and isinstance(statement, ast.Expr):
            change = Change(code.file, "the teacher in eval mode")
            return change.after(statement, f"{written(receiver)}.eval()").patches()
    return ()


def _finding(teacher: Teacher, statement: str, kind: str, severity: Severity, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(
        statement,
        teacher.code.place(teacher.call),
        teacher.code.file.path,
        bearing=Bearing.CAUSE,
        severity=severity,
        measured={"kind": kind},
        patch=patch,
    )
