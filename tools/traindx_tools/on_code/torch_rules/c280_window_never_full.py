"""The counter of a gradient accumulation never reaches its window.

`if (i + 1) % accumulate == 0: optimizer.step()` with `i` from `enumerate` begins anew in every epoch. Where an epoch
has fewer micro-batches than the window, the condition never holds: backward runs, gradients exist, and no step is
ever taken. The same happens to a counter that is set to 0 inside the loop, or counted up only behind the
condition it is asked in. Where gradients are cleared at the top of each epoch, the last, incomplete window of each
epoch is lost even if the others are complete.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.call_paths import calls_by_text, loops_of, path_to, reached_calls
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.row_counts import Counter, Spot
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.truths import Known, holds
from traindx_tools.rules import Rule

RULE = Rule(
    id="C280",
    name="window-never-full",
    title="The accumulation counter never reaches its window",
    severity=Severity.CRITICAL,
    sees="The values that the counter of `if count % k == 0: optimizer.step()` takes, with where it is set back and "
         "how many batches an epoch has.",
    matters="backward runs, the optimizer never steps: nothing is learned, every evaluation gives the same value.",
    alike=("a learning rate of 0", "an optimizer over other parameters", "a counter that goes on over the epochs"),
    confirm=("count the calls of optimizer.step() in an epoch",),
)  # fmt: skip
_OPTIMIZER = re.compile(r"opt|solver|adam|sgd|scaler", re.IGNORECASE)
_NO_OPTIMIZER = re.compile(r"sched|warm|env|timer|progress|profil|\bema\b", re.IGNORECASE)
_STEPS = frozenset({"optimizer_step", "apply_gradients", "apply_updates"})
_BACKWARD = re.compile(r"^(manual_)?backward$|grad_fn|value_and_grad|^grad$|grads_of|accumulate", re.IGNORECASE)
_LOADER = re.compile(r"load|batch|data|train", re.IGNORECASE)
_MANY = 400


@dataclass(frozen=True, eq=False)
class _Window:
    """A condition around a step with the loop that it is asked in."""

    code: Syntax
    node: ast.If
    test: ast.expr
    step: ast.Call
    skips: bool
    """Whether the step follows behind `if test: continue`."""

    @property
    def guarded(self) -> list[ast.AST]:
        """What runs where the window is full."""
        if not self.skips:
            return list(self.node.body)
        block = getattr(self.code.parent(self.node), "body", [])
        return [s for s in block if s.lineno > self.node.lineno]


def check(project: Project) -> Iterator[Finding]:
    """Look at every step under a condition."""
    files = [f for f in project.files if "step" in f.text or "apply_" in f.text]
    if not any("%" in f.text or ">=" in f.text or "==" in f.text for f in files):
        return
    look = lookup(project)
    for file in files:
        code = syntax(file)
        for window in _windows(look, code):
            found = _judged(look, window)
            if found is not None:
                yield found


def _windows(look: Lookup, code: Syntax) -> Iterator[_Window]:
    for node in code.of(ast.If):
        test = code.origin(node.test)
        if not any(map(_counts, below(test))):
            continue
        skips = isinstance(node.body[-1], ast.Continue) and not node.orelse
        window = _Window(code, node, test, ast.Call(node.test, [], []), skips)
        step = next((c for part in window.guarded for owner, c in reached_calls(look, code, part, 1)
                     if _steps(owner, c)), None)  # fmt: skip
        if step is not None:
            yield _Window(code, node, test, step, skips)


def _counts(node: ast.AST) -> bool:
    """Whether a remainder is taken, or a comparison may be one with a number."""
    if isinstance(node, ast.Compare):
        return any(isinstance(op, (ast.GtE, ast.Gt, ast.Eq, ast.Lt)) for op in node.ops)
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)


def _steps(code: Syntax, call: ast.Call) -> bool:
    if last_name(call.func) in _STEPS:
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    text = written(call.func.value) + written(getattr(code.origin(call.func.value), "func", None))
    return _OPTIMIZER.search(text) is not None and not _NO_OPTIMIZER.search(text)


def _judged(look: Lookup, window: _Window) -> Finding | None:
    code = window.code
    path = path_to(look, code, window.node)
    loops = loops_of(path)
    inner = next(((c, n) for c, n in loops if _backs(look, c, n)), None)
    if inner is None or _steps_besides(look, window, inner, loops):
        return None
    for counter in _counters(code, window.test):
        values = _values(look, window, counter, inner, loops)
        if values is not None:
            return _finding(look, window, counter, inner, values)
    return None


def _steps_besides(look: Lookup, window: _Window, inner: Loop, loops: list[Loop]) -> bool:
    """Whether the same optimizer steps outside the condition as well, in this loop or one around it."""
    guarded = {id(n) for part in window.guarded for n in below(part)}
    called = written(window.step.func)
    return any(
        call is not window.step and id(call) not in guarded
        for code, loop in loops[loops.index(inner) :]
        for call in calls_by_text(look, code, loop).get(called, ())
    )


def _backs(look: Lookup, code: Syntax, loop: ast.AST) -> bool:
    return any(_BACKWARD.search(last_name(c.func)) for _, c in reached_calls(look, code, loop))


def _counters(code: Syntax, test: ast.expr) -> list[ast.expr]:
    """The names of a condition that change: targets of loops, and what is counted up."""
    found: dict[str, ast.expr] = {}
    for node in below(test):
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(code.parent(node), ast.Attribute):
            text = written(node)
            added = _changes(code, node)
            indexed = isinstance(node, ast.Name) and _loop_of(code, node) is not None
            if indexed or (added and all(amount is not None for _, amount in added)):
                found[text] = node
    return list(found.values())


def _loop_of(code: Syntax, name: ast.Name) -> ast.For | None:
    """The loop whose index a name is: of `for i in range()` or `for i, x in enumerate()`."""
    for loop in code.loops(name):
        target = getattr(loop, "target", None)
        first = target.elts[0] if isinstance(target, (ast.Tuple, ast.List)) and target.elts else target
        if isinstance(loop, ast.For) and isinstance(first, ast.Name) and first.id == name.id:
            return loop if "enumerate" in written(loop.iter) or "range" in written(loop.iter) else None
    return None


def _changes(code: Syntax, name: ast.expr) -> list[tuple[ast.stmt, float | None]]:
    """What is added to a counter: (statement, amount) of `n += 1` and `n = n + 1`; None where that is no number."""
    text = written(name)
    found: list[tuple[ast.stmt, float | None]] = []
    for node in code.of(ast.AugAssign):
        if written(node.target) == text and _same_scope(code, node, name):
            found.append((node, code.number(node.value) if isinstance(node.op, ast.Add) else None))
    for made in code.of(ast.Assign):
        value = made.value if any(written(t) == text for t in made.targets) else None
        if isinstance(value, ast.BinOp) and _same_scope(code, made, name):
            added = isinstance(value.op, ast.Add) and written(value.left) == text
            found.append((made, code.number(value.right) if added else None))
    return found


def _same_scope(code: Syntax, node: ast.AST, name: ast.expr) -> bool:
    if isinstance(name, ast.Attribute):
        return code.owner(node) is code.owner(name)
    return code.scope(node) is code.scope(name)


@dataclass(frozen=True)
class _Values:
    kind: str
    """"never", "once", "lost"."""
    where: str
    """How the counter is set back."""
    batches: int | None
    window: float | None
    certain: bool
    reset: ast.stmt | None = None


Loop = tuple[Syntax, ast.AST]


def _values(look: Lookup, window: _Window, counter: ast.expr, inner: Loop, loops: list[Loop]) -> _Values | None:
    """How often the condition holds, where that is known to be too seldom."""
    size, certain = _size(look, window)
    if size is not None and size < 2:
        return None
    count = _batches(look, inner)
    own = _loop_of(window.code, counter) if isinstance(counter, ast.Name) else None
    if own is not None:
        if own is not inner[1]:
            return None
        first = _first_index(window.code, own)
        if first is None:
            return None
        if count is None:
            return _lost(window, size, inner, loops, "enumerate begins at its start again")
        if count > _MOST_ASKED:
            return None
        known = _known(look, window, size)
        held = [_true(window, counter, first + n, known) for n in range(int(count))]
        where = f"{counter.id} begins at {first:g} in every pass" if isinstance(counter, ast.Name) else ""
        if held and all(t is False for t in held):
            return _Values("never", where, int(count), size, certain)
        return None
    return _counted(look, window, counter, inner, loops, count, (size, certain))


def _size(look: Lookup, window: _Window) -> tuple[float | None, bool]:
    """The window's length, and whether it is known: the divisor of the remainder, or what is compared with."""
    for node in below(window.test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            number = Counter(look).number(Spot(window.code, node.right))
            return (number, True) if number is not None else (None, False)
    for node in below(window.test):
        if isinstance(node, ast.Compare):
            number = Counter(look).number(Spot(window.code, node.comparators[0]))
            return (number, True) if number is not None else (None, False)
    return None, False


def _true(window: _Window, counter: ast.expr, value: float, known: Known) -> bool | None:
    full = holds(window.test, {written(counter): value}, known)
    return full if full is None or not window.skips else not full


def _known(look: Lookup, window: _Window, size: float | None) -> Known:
    """What the other parts of the condition are, each looked up once: it is asked for every batch."""
    found: dict[int, float | None] = {}

    def known(node: ast.expr) -> float | None:
        if id(node) not in found:
            number = Counter(look).number(Spot(window.code, node))
            supposed = number is None and size is None and isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
            found[id(node)] = _SUPPOSED if supposed else number
        return found[id(node)]

    return known


_MOST_ASKED = 50_000
"""Iterations that are gone through one by one; of a longer loop (of a replay buffer that fills) nothing is said."""
_SUPPOSED = 8.0
"""A window whose length no file says is taken to be this long, as a sign and no proof."""


def _first_index(code: Syntax, loop: ast.For) -> float | None:
    calls = [n for n in below(loop.iter) if isinstance(n, ast.Call)]
    call = next((c for c in calls if last_name(c.func) in ("enumerate", "range")), None)
    if call is None:
        return None
    if last_name(call.func) == "enumerate":
        start = argument(call, 1, "start")
        return 0.0 if start is None else code.number(start)
    return 0.0 if len(call.args) == 1 else code.number(call.args[0]) if len(call.args) == 2 else None


def _batches(look: Lookup, loop: Loop) -> float | None:
    code, node = loop
    return Counter(look).batches(Spot(code, node.iter)) if isinstance(node, ast.For) else None


def _counted(look: Lookup, window: _Window, counter: ast.expr, inner: Loop, loops: list[Loop], count: float | None,
             size: tuple[float | None, bool]) -> _Values | None:  # fmt: skip
    """Follow a counter that is set and counted up by statements."""
    code = window.code
    sets = [(s, code.number(v)) for s, v in code.bindings(counter)]
    adds = _changes(code, counter)
    sets = [(s, v) for s, v in sets if not any(s is a for a, _ in adds)]
    if not sets or any(v is None for _, v in (*sets, *adds)) or _set_elsewhere(look, code, counter):
        return None
    outer = [n for _, n in loops[loops.index(inner) + 1 :]]
    each: list[tuple[tuple[int, ...], str, float]] = []
    inside: list[tuple[str, float]] = []
    start: float | None = None
    anew: ast.stmt | None = None
    body = window.guarded
    for statement, amount, kind in (*((s, v, "set") for s, v in sets), *((s, v, "add") for s, v in adds)):
        assert amount is not None
        path = path_to(look, code, statement)
        around = [n for _, n in path]
        if any(statement is g or any(g is n for n in around) for g in body):
            inside.append((kind, amount))
        elif any(n is inner[1] for n in around):
            if any(isinstance(n, ast.If) for n in around[: around.index(inner[1])]) or not _straight(around, inner[1]):
                return None
            each.append((_position(look, code, statement, inner), kind, amount))
            anew = statement if kind == "set" else anew
        elif kind == "set":
            repeated = any(n is o for n in around for o in outer)
            if start is not None and start != amount:
                return None
            start = amount
            anew = statement if repeated and anew is None else anew
        else:
            return None
    reset_inside = any(k == "set" for _, k, _ in each)
    if not reset_inside and start is None:
        return None
    restarts = anew is not None and not reset_inside
    if restarts and count is None:
        return _lost(window, size[0], inner, loops, f"it is set back at line {getattr(anew, 'lineno', 0)}")
    total = int(count) if restarts and count is not None else _MANY
    if total > _MOST_ASKED:
        return None
    trues = _simulated(look, window, counter, size[0], (start or 0.0, sorted(each, key=lambda e: e[0]), inside), total,
                       _position(look, code, window.node, inner))  # fmt: skip
    if trues is None or (size[0] is not None and size[0] * 3 > total and not restarts):
        return None
    where = (f"it is set back in every iteration, at line {getattr(anew, 'lineno', 0)}" if reset_inside else
             f"it is set back in every pass, at line {getattr(anew, 'lineno', 0)}" if restarts else
             "it only changes behind the condition itself")  # fmt: skip
    if trues == 0:
        return _Values("never", where, int(count) if count is not None and restarts else None, *size, anew)
    once = trues == 1 and not restarts and not reset_inside and not each
    return _Values("once", where, None, *size) if once else None


def _straight(around: list[ast.AST], inner: ast.AST) -> bool:
    """Whether nothing between a statement and the loop repeats or skips it."""
    between = around[: around.index(inner)]
    return not any(isinstance(n, (ast.For, ast.While, ast.Try, ast.ExceptHandler)) for n in between)


def _set_elsewhere(look: Lookup, code: Syntax, counter: ast.expr) -> bool:
    """Whether another object writes the attribute (`trainer.micro = 0`), or the name is global or handed in."""
    if isinstance(counter, ast.Attribute):
        return written(counter.value) != "self" or any(
            isinstance(t, ast.Attribute) and t.attr == counter.attr and isinstance(t.ctx, ast.Store)
            and (written(t.value) != "self" or c.owner(t) is not code.owner(counter))
            for c in look.codes for t in c.of(ast.Attribute))  # fmt: skip
    names = {n for g in code.of(ast.Global) for n in g.names} | {n for g in code.of(ast.Nonlocal) for n in g.names}
    return written(counter) in names


def _position(look: Lookup, code: Syntax, node: ast.AST, inner: Loop) -> tuple[int, ...]:
    """The order of statements within the loop: the line in the loop's function, then those in the called ones."""
    lines = [getattr(node, "lineno", 0)]
    for _, up in path_to(look, code, node):
        if up is inner[1]:
            break
        if isinstance(up, ast.Call):
            lines.append(up.lineno)
    return tuple(reversed(lines))


def _simulated(look: Lookup, window: _Window, counter: ast.expr, size: float | None,
               program: tuple[float, list[tuple[tuple[int, ...], str, float]], list[tuple[str, float]]], total: int,
               asked: tuple[int, ...]) -> int | None:  # fmt: skip
    """How often the condition holds in this many iterations."""
    value, each, inside = program
    trues = 0
    holding: dict[float, bool | None] = {}
    known = _known(look, window, size)
    order = [*((k, n) for at, k, n in each if at <= asked), ("ask", 0.0), *((k, n) for at, k, n in each if at > asked)]
    for _ in range(total):
        for kind, amount in order:
            if kind != "ask":
                value = amount if kind == "set" else value + amount
                continue
            if value not in holding:
                holding[value] = _true(window, counter, value, known)
            full = holding[value]
            if full is None:
                return None
            if full:
                trues += 1
                for what, by in inside:
                    value = by if what == "set" else value + by
    return trues


def _lost(window: _Window, size: float | None, inner: Loop, loops: list[Loop], where: str) -> _Values | None:
    """The last window of an epoch, where the gradients are cleared at the top of the next one."""
    at = loops.index(inner)
    if at + 1 >= len(loops) or isinstance(window.test, ast.BoolOp):
        return None
    code, epoch = loops[at + 1]
    inside = {id(n) for n in below(inner[1])}
    clears = [n for n in below(epoch) if isinstance(n, ast.Call) and last_name(n.func) == "zero_grad"
              and id(n) not in inside and code.loops(n)[:1] == [epoch]]  # fmt: skip
    loader = _LOADER.search(written(getattr(inner[1], "iter", None)))
    if not clears or loader is None or any(isinstance(up, ast.If) for up in code.above(clears[0])):
        return None
    return _Values("lost", where, None, size, False)


def _finding(look: Lookup, window: _Window, counter: ast.expr, inner: Loop, values: _Values) -> Finding:
    code, test = window.code, f"not {written(window.test)}" if window.skips else written(window.test)
    size = f"{values.window:g}" if values.window is not None else "the window"
    if values.kind == "lost":
        why = (f"the counter of {test} begins anew in every epoch ({values.where}) and the gradients are cleared "
               f"between epochs: what an epoch leaves of an incomplete window is lost, all of it where an epoch has "
               f"fewer batches than {size}")  # fmt: skip
    elif values.kind == "once":
        why = f"{test} holds once and never again: {values.where}, so the optimizer is not stepped any more"
    elif values.batches is not None:
        why = (f"{test} never holds: {values.where} and a pass has {values.batches} micro-batches, fewer than the "
               f"window of {size}, so the optimizer is never stepped")  # fmt: skip
    else:
        why = f"{test} never holds: {values.where}, so {written(counter)} cannot reach {size} and no step is taken"
    return RULE.finding(
        f"{written(window.step)[:60]} at {code.file.path}:{window.node.lineno}: {why}",
        code.place(window.node),
        code.file.path,
        bearing=Bearing.CAUSE if values.certain and values.kind != "lost" else Bearing.SIGN,
        severity=Severity.LOW if values.kind == "lost" else None if values.certain else Severity.HIGH,
        measured={"kind": values.kind, "window": values.window, "batches": values.batches, "counter": written(counter)},
        patch=_patch(look, window, counter, inner, values),
    )


def _patch(look: Lookup, window: _Window, counter: ast.expr, inner: Loop, values: _Values) -> tuple[Patch, ...]:
    """Step at the end of the pass as well, or set the counter back outside the loop."""
    code, loop = inner
    unsure = values.kind != "never" or window.skips or not values.certain or code is not window.code
    if unsure or not isinstance(loop, ast.For):
        return ()
    if values.reset is not None and values.batches is None:
        if code.parent(values.reset) is not loop:
            return ()
        return Change(code.file, "count over the iterations").move_before(values.reset, loop).patches()
    items = loop.iter.args[0] if isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) == "enumerate" and (
        loop.iter.args) else loop.iter  # fmt: skip
    made = look.origin(code, items)[1] if isinstance(items, (ast.Name, ast.Attribute)) else items
    plain = isinstance(made, ast.Call) and last_name(made.func) == "DataLoader" and made is not items
    if values.reset is not None or not plain or window.test is not window.node.test or _first_index(code, loop) != 0:
        return ()
    last = f"{written(window.test)} or {written(counter)} + 1 == len({written(items)})"
    return Change(code.file, "step at the end of the epoch as well").replace(window.node.test, last).patches()
