"""The warm-up is longer than the run, in the unit in which it is stepped.

A warm-up of 500 steps whose scheduler is stepped once an epoch needs 500 epochs: with 20 of them the learning rate
ends at 4 % of its value. The rule knows the length of the warm-up (LinearLR's total_iters, the divisor in LambdaLR's
function) and how often the loop around `scheduler.step()` runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax
from traindx_tools.on_code.trace import Place
from traindx_tools.on_code.values import Function, Thing, number
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C216",
    name="warm-up-longer-than-run",
    title="The warm-up is longer than the run",
    severity=Severity.HIGH,
    sees="The length of a warm-up and the number of times that its scheduler is stepped, where both are constants.",
    matters="The learning rate stays a fraction of what was set for the whole run.",
    alike=("a schedule that is stepped in every batch", "a learning rate that is too small by itself"),
    confirm=("print the learning rate at the last step",),
    thresholds={
        "share": Threshold(0.8, "of the warm-up", "a run that ends before 80 % of it never trains at full rate")
    },
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every step of a scheduler with a warm-up."""
    for loop in project.training_loops:
        seen: set[int] = set()
        for place in loop.of("step"):
            scheduler = place.event.receiver
            if not isinstance(scheduler, Thing) or id(scheduler) in seen:
                continue
            seen.add(id(scheduler))
            length, times = _length(project, scheduler), _times(loop, place)
            if length is not None and times is not None and times < 0.8 * length:
                yield _finding(place, scheduler, length, times)


def _length(project: Project, scheduler: Thing) -> float | None:
    if scheduler.short == "LinearLR":
        start = number(scheduler.kwargs.get("start_factor"))
        rises = start is None or start < 1
        total = scheduler.argument(3, "total_iters")
        return number(total) if rises and total is not None else None
    if scheduler.short == "LambdaLR":
        rule = scheduler.argument(1, "lr_lambda")
        return _ramp(syntax(rule.info.file), rule.info.node) if isinstance(rule, Function) else None
    return None


def _ramp(code: Syntax, node: ast.AST) -> float | None:
    """W of `min(1, (step + 1) / W)`."""
    for call in (n for n in below(node) if isinstance(n, ast.Call) and last_name(n.func) == "min"):
        ones = [a for a in call.args if code.number(a) == 1]
        ratios = [a for a in call.args if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div)]
        if len(call.args) == 2 and ones and ratios:
            return code.number(ratios[0].right)
    return None


def _times(loop: TrainingLoop, place: Place) -> float | None:
    """How often the step runs: the product of the counts of the loops around it, where all are known."""
    total = 1.0
    for block in (*[b for b in loop.path if b.kind == "loop"][:-1], *place.loops):
        count = number(block.count)
        if count is None:
            return None
        total *= count
    return total if place.loops and not any(b.kind == "branch" for b in place.path) else None


def _finding(place: Place, scheduler: Thing, length: float, times: float) -> Finding:
    event = place.event
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} runs {times:g} times and the warm-up of "
        f"{scheduler.short} (made at {scheduler.site}) takes {length:g}: the learning rate ends at "
        f"{100 * times / length:.0f} % of its value",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "warm-up", "length": length, "times": times},
    )
