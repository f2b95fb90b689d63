"""A schedule of optax counts micro-batches inside MultiSteps, which asks it once for each window of them.

`optax.MultiSteps(adam(schedule), every_k_schedule=8)` calls the inner optimizer, and with it the schedule, once in 8
calls of update. A schedule that is as long as the loops around update (epochs times batches) gets to an eighth of its
length: the warm-up takes 8 times as long, the decay hardly begins. The length has to be divided by k. The other way
round, `chain(adam(schedule), apply_every(8))` asks the schedule at every micro-batch: a length that was divided by 8 is
over after an eighth of the run.

Lengths are compared with the loops around update as they are written, names followed to what they were made of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.lookup import Lookup, Where, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.steps_of import SCHEDULE_LENGTHS, loops_around, steps
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C562",
    name="schedule-in-micro-batches",
    title="A schedule counts micro-batches, and is asked once for each window of them",
    severity=Severity.HIGH,
    sees="The length of a schedule inside optax.MultiSteps, against the loops around update and the window.",
    matters="Warm-up and decay are k times too long: the learning rate ends far above its floor.",
    alike=("a length that was divided by the window", "a batch size that is the window's and not the micro-batch's",
           "a run that is k times as long"),
    confirm=("print the last step that the schedule was asked with (state.gradient_step), beside its length",),
)  # fmt: skip
_ROUNDS = frozenset({"int", "round", "max", "ceil", "floor"})
_DEEP, _MOST = 8, 60


@dataclass(frozen=True)
class _Window:
    """A wrapper that collects k micro-batches, and what it wraps."""

    code: Syntax
    call: ast.Call
    every: ast.expr
    inner: tuple[Where, ...]


def check(project: Project) -> Iterator[Finding]:
    """Compare the schedules in every window with the loops around the updates."""
    if not any("MultiSteps" in f.text or "apply_every" in f.text for f in project.files):
        return
    look = lookup(project)
    rounds = [_count(look, loops_around(look, code, call)) for code, call in steps(look)]
    known = [r for r in rounds if r]
    if not known or len(known) < len(rounds):
        return
    for code in look.codes:
        for call in code.calls("MultiSteps", "apply_every"):
            window = _window(look, code, call)
            if window is not None:
                yield from _judged(look, window, known)


def _window(look: Lookup, code: Syntax, call: ast.Call) -> _Window | None:
    name = code.qualified(call.func)
    if name in ("optax.MultiSteps", "optax.transforms.MultiSteps"):
        inner, every = argument(call, 0, "opt"), argument(call, 1, "every_k_schedule")
        if inner is None or every is None:
            return None
        return _Window(code, call, every, ((code, inner),))
    up = code.parent(call)
    every = argument(call, 0, "k")
    if name != "optax.apply_every" or every is None or not isinstance(up, ast.Call) or last_name(up.func) != "chain":
        return None
    return _Window(code, call, every, tuple((code, a) for a in up.args if a is not call))


def _judged(look: Lookup, window: _Window, rounds: list[list[str]]) -> Iterator[Finding]:
    k = look.number(window.code, window.every)
    if k is None or k <= 1:
        return
    collected = last_name(window.call.func) == "MultiSteps"
    wanted = [_normal(r, 1.0 if collected else 1 / k) for r in rounds]
    for where, schedule, given in _schedules(look, window.inner):
        if _normal(_total(look, where, given)) in wanted:
            patch = _patch(window, where, schedule, given) if collected else ()
            yield _finding(window, where, schedule, given, k, patch)


def _normal(parts: list[str], by: float = 1.0) -> tuple[float, tuple[str, ...]]:
    """A product with its numbers taken together."""
    names: list[str] = []
    for part in parts:
        try:
            by = by / float(part[1:]) if part.startswith("/") else by * float(part)
        except (ValueError, ZeroDivisionError):
            names.append(part)
    return float(f"{by:.9g}"), tuple(sorted(names))


def _schedules(look: Lookup, inner: tuple[Where, ...]) -> Iterator[tuple[Syntax, ast.Call, ast.expr]]:
    """Every schedule inside a transformation, names followed, with its length."""
    queue: list[Where] = list(inner)
    seen: set[int] = set()
    for code, node in queue:
        where, made = look.origin(code, node)
        if not isinstance(made, ast.Call) or id(made) in seen or len(queue) > _MOST:
            continue
        seen.add(id(made))
        if last_name(made.func) in SCHEDULE_LENGTHS and where.qualified(made.func).startswith("optax."):
            given = argument(made, *SCHEDULE_LENGTHS[last_name(made.func)])
            if given is not None:
                yield where, made, given
        found = look.called(where, made)
        if found is not None:
            queue += [(found[0], r.value) for r in below(found[1]) if isinstance(r, ast.Return) and r.value]
        for value in [*made.args, *(k.value for k in made.keywords)]:
            queue += [(where, v) for v in (value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value])]


def _total(look: Lookup, code: Syntax, given: ast.expr) -> list[str]:
    """The factors of a length; of `total - warmup` those of the total."""
    for _ in range(_DEEP):
        code, node = look.origin(code, given)
        if isinstance(node, ast.Call) and last_name(node.func) in _ROUNDS and node.args:
            given = node.args[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            given = node.left
        else:
            return _factors(look, code, node)
    return []


def _factors(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> list[str]:
    """A product as texts of its factors, a divisor with a stroke before it: names followed, constants as numbers."""
    number = look.number(code, node)
    if number is not None:
        return [] if number == 1 else [f"{number:g}"]
    if left <= 0:
        return [written(node)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _factors(look, code, node.left, left - 1) + _factors(look, code, node.right, left - 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Div)):
        below = _factors(look, code, node.right, left - 1)
        return _cancelled(_factors(look, code, node.left, left - 1), [_inverse(b) for b in below])
    if isinstance(node, ast.Call) and last_name(node.func) in _ROUNDS and len(node.args) == 1:
        return _factors(look, code, node.args[0], left - 1)
    if isinstance(node, ast.Call) and last_name(node.func) == "len" and node.args:
        made = look.origin(code, node.args[0])[1]
        of = made if isinstance(made, (ast.Name, ast.Attribute)) else node.args[0]
        return [f"len({written(of)})"]
    step = look.one_step(code, node)
    if step is not None and step[1] is not node and not isinstance(step[1], (ast.Subscript, ast.Await)):
        return _factors(look, *step, left - 1)
    rows = node.value if isinstance(node, ast.Subscript) and written(node.slice) == "0" else None
    if isinstance(rows, ast.Attribute) and rows.attr == "shape":
        return [f"len({written(rows.value)})"]
    return [written(node)]


def _inverse(part: str) -> str:
    return part[1:] if part.startswith("/") else f"/{part}"


def _cancelled(parts: list[str], more: list[str]) -> list[str]:
    left = list(parts)
    for part in more:
        if _inverse(part) in left:
            left.remove(_inverse(part))
        else:
            left.append(part)
    return left


def _count(look: Lookup, loops: list[tuple[Syntax, ast.AST]]) -> list[str]:
    """The factors of how often the loops run; nothing where one of them is not known."""
    found: list[str] = []
    for code, loop in loops:
        if not isinstance(loop, (ast.For, ast.AsyncFor)):
            return []
        one = _turns(look, code, loop.iter)
        if one is None:
            return []
        found += one
    return found


def _turns(look: Lookup, code: Syntax, over: ast.expr) -> list[str] | None:
    """How many rounds an iterable has."""
    name = last_name(over.func) if isinstance(over, ast.Call) else ""
    args = over.args if isinstance(over, ast.Call) else []
    if name in ("tqdm", "track", "enumerate", "list", "progress_bar") and args:
        return _turns(look, code, args[0])
    if name in ("range", "trange", "arange") and args:
        if len(args) == 1:
            return _factors(look, code, args[0])
        span = args[1]
        below = [] if len(args) < 3 else [_inverse(f) for f in _factors(look, code, args[2])]
        start = look.number(code, args[0])
        if start == 0:
            return _cancelled(_factors(look, code, span), below)
        plus = isinstance(span, ast.BinOp) and isinstance(span.op, ast.Add) and look.number(code, span.right) == 1
        return _factors(look, code, span.left) if start == 1 and isinstance(span, ast.BinOp) and plus else None
    if name in ("array_split", "split") and len(args) > 1:
        return _factors(look, code, args[1])
    if name == "reshape" and args:
        shape = args[0].elts if isinstance(args[0], ast.Tuple) else args
        return _factors(look, code, shape[0]) if written(shape[0]) != "-1" else None
    if isinstance(over, ast.Name):
        made = code.assigned(over)
        if isinstance(made, ast.Call) and last_name(made.func) in ("reshape", "array_split", "range"):
            return _turns(look, code, made)
        return _factors(look, code, ast.copy_location(ast.Call(ast.Name("len", ast.Load()), [over], []), over))
    if isinstance(over, ast.Call) and over.args:
        return _generated(look, code, over)
    return None


def _generated(look: Lookup, code: Syntax, call: ast.Call) -> list[str] | None:
    """Rounds of a generator of the project: those of the loop that its yield stands in."""
    found = look.called(code, call)
    if found is None or isinstance(found[1], ast.Lambda):
        return None
    yields = [n for n in below(found[1]) if isinstance(n, ast.Yield)]
    loops = found[0].loops(yields[0]) if len(yields) == 1 else []
    if len(loops) != 1 or not isinstance(loops[0], ast.For):
        return None
    return _turns(look, found[0], loops[0].iter)


def _patch(window: _Window, where: Syntax, schedule: ast.Call, given: ast.expr) -> tuple[Patch, ...]:
    """The lengths divided by the window, where all stand in one function."""
    if where is not window.code or where.scope(given) is not where.scope(window.call):
        return ()
    warm = argument(schedule, 2, "warmup_steps") if last_name(schedule.func).startswith("warmup") else None
    plain = isinstance(window.every, (ast.Name, ast.Attribute, ast.Constant))
    parts = isinstance(given, ast.BinOp) and isinstance(given.op, (ast.Sub, ast.Add))
    if not plain or parts or (warm is not None and where.number(warm) is not None):
        return ()  # whether a number counts windows is not known
    change = Change(where.file, "count windows")
    for length in (given, *([warm] if warm is not None else [])):
        text = source_of(where.file, length)
        product = isinstance(length, (ast.Name, ast.Attribute, ast.Call)) or (
            isinstance(length, ast.BinOp) and isinstance(length.op, ast.Mult)
        )
        text = text if product else f"({text})"
        change = change.replace(length, f"{text} // {source_of(where.file, window.every)}")
    return change.patches()


def _finding(window: _Window, code: Syntax, schedule: ast.Call, given: ast.expr, k: float,
             patch: tuple[Patch, ...]) -> Finding:  # fmt: skip
    name, wrapper = last_name(schedule.func), last_name(window.call.func)
    if wrapper == "MultiSteps":
        why = (f"is {written(given)[:70]} steps long, the number of micro-batches, and is asked once for each {k:g} of "
               f"them inside optax.MultiSteps at {window.code.at(window.call)}: warm-up takes {k:g} times as long, and "
               f"the decay gets to 1/{k:g} of its length")  # fmt: skip
    else:
        why = (f"is {written(given)[:70]} steps long, the number of windows, and apply_every at "
               f"{window.code.at(window.call)} lets it be asked at every micro-batch: the rate is at its end after "
               f"1/{k:g} of the run")  # fmt: skip
    kind = "micro-batches" if wrapper == "MultiSteps" else "windows"
    return RULE.finding(f"{name} at {code.at(schedule)} {why}", code.place(given), code.file.path,
                        bearing=Bearing.CAUSE, measured={"kind": kind, "window": k}, patch=patch)  # fmt: skip
