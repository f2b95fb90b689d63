"""Batches of the loop never train.

Two ways. The last statement of the loop over batches is `break` or `return`, under no condition: an aid of debugging,
or a line indented one level too deep, and the first batch of every epoch (or the first epoch) is all that is seen. Or
`backward()` stands behind the loop, on the loss that its last iteration left: every other batch runs forward and is
forgotten. A loss that is summed over the loop, a recurrent loop whose state goes from step to step, and a loop that is
left under a condition are something else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.call_paths import reached_calls
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Loops, Syntax, last_name, names_in, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C340",
    name="batches-left-out",
    title="Batches of the loop never train",
    severity=Severity.HIGH,
    sees="break or return as the last statement of a loop that trains; backward behind the loop over batches, on the "
    "loss of its last iteration.",
    matters="One update for each pass over the data, with one batch: training is as slow as the data set has batches.",
    alike=("a learning rate that is too small", "gradient accumulation over the whole loop", "a run that stops early"),
    confirm=("count the calls of optimizer.step() in one epoch and compare with len(loader)",),
)

_TRAINS = ("backward", "manual_backward", "apply_gradients", "apply_updates")
_ON_PURPOSE = re.compile(r"smoke|sanity|overfit|debug|dry_?run|profil|warm_?up|one_(batch|step|iter)|single|first|bench"
                         r"|probe|calibrat|trace|inspect|peek|sample|check", re.IGNORECASE)  # fmt: skip
_BATCHES = re.compile(r"loader|batche?s|\bdl\b|_dl\b|dataset|train_?(data|set|iter)|minibatch", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every loop that runs over batches."""
    look = lookup(project)
    for code in look.codes:
        if "backward" not in code.file.text and "apply_" not in code.file.text:
            continue
        for loop in code.of(ast.For):
            found = _left(look, code, loop) or _behind(code, loop)
            if found is not None:
                yield found


def _left(look: Lookup, code: Syntax, loop: ast.For) -> Finding | None:
    """A loop that trains and is left at the end of its first iteration."""
    last = loop.body[-1]
    epochs = _over_epochs(code, loop)
    if not isinstance(last, (ast.Break, ast.Return)) or not (epochs or _over_batches(code, loop)):
        return None
    function = code.function(loop)
    if function is not None and (_ON_PURPOSE.search(function.name) or _yields(code, function)):
        return None
    if any(isinstance(n, ast.Continue) and _in_loop(code, n) is loop for n in below(loop)):
        return None
    block = code.block(loop)
    if any(isinstance(s, Loops) for s in block[block.index(loop) + 1 :]):
        return None  # a first batch, looked at before the real loop
    if not any(last_name(c.func) in _TRAINS for _, c in reached_calls(look, code, loop)):
        return None
    alone = isinstance(last, ast.Return) and not epochs and not code.loops(loop)
    if alone and function is not None and look.callers(function, code):
        return None  # one batch a call, which may be what its caller wants
    word = "break" if isinstance(last, ast.Break) else "return"
    unit = "pass over the data" if epochs else "batch"
    patch = Change(code.file, f"go on to the next {unit}").delete(last).patches() if word == "break" else ()
    statement = (f"{word} at {code.at(last)} ends the loop over {written(loop.iter)} (line {loop.lineno}) "
                 f"in its first iteration, under no condition: only the first {unit} trains")
    return _finding(code, last, statement, word, loop, patch)


def _behind(code: Syntax, loop: ast.For) -> Finding | None:
    """backward() behind a loop over batches, on the loss of its last iteration."""
    block = code.block(loop)
    called = {last_name(c.func) for c in code.inside(loop, ast.Call)}
    if not _over_batches(code, loop) or called.intersection((*_TRAINS, "step")):
        return None
    for statement in block[block.index(loop) + 1 :]:
        call = _backward(statement)
        if call is None:
            if isinstance(statement, (*Loops, ast.FunctionDef, ast.Return)):
                return None
            continue
        loss = call.func.value if isinstance(call.func, ast.Attribute) and not call.args else None
        loss = call.args[0] if call.args else loss
        if not isinstance(loss, ast.Name) or not _of_last_batch(code, loop, loss, statement):
            return None
        text = (f"{written(call)} at {code.at(call)} stands behind the loop over {written(loop.iter)} (line "
                f"{loop.lineno}), which binds {loss.id} anew for every batch: only the last batch of a pass trains")
        return _finding(code, call, text, "behind", loop, ())
    return None


def _backward(statement: ast.stmt) -> ast.Call | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return call if isinstance(call, ast.Call) and last_name(call.func) in ("backward", "manual_backward") else None


def _of_last_batch(code: Syntax, loop: ast.For, loss: ast.Name, until: ast.stmt) -> bool:
    """Whether a name holds what the last iteration alone computed from its batch."""
    scope = code.scope(loop)
    stores = [n for n in code.inside(scope, ast.Name) if n.id == loss.id and isinstance(n.ctx, ast.Store)]
    inside = [n for n in stores if loop.lineno <= n.lineno <= (loop.end_lineno or loop.lineno)]
    if not inside or any((loop.end_lineno or 0) < n.lineno < until.lineno for n in stores):
        return False
    made: list[ast.expr] = []
    for name in inside:
        statement = code.parent(name)
        if not isinstance(statement, ast.Assign) or code.parent(statement) is not loop:
            return False
        if loss.id in names_in(statement.value):
            return False
        made.append(statement.value)
    return not _carried(code, loop) and any(isinstance(value, ast.Call) for value in made)


def _carried(code: Syntax, loop: ast.For) -> bool:
    """Whether something goes from one iteration to the next: a state, a sum."""
    bound: set[str] = {n.id for n in below(loop.target) if isinstance(n, ast.Name)}
    stored = {n.id for n in code.inside(loop, ast.Name) if isinstance(n.ctx, ast.Store)}
    for statement in loop.body:
        read = {n.id for n in below(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if isinstance(statement, ast.AugAssign):
            read |= names_in(statement.target)
        if (read & stored) - bound:
            return True
        bound |= {n.id for n in below(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    kept = {last_name(c.func) for c in code.inside(loop, ast.Call)}
    return bool(kept & {"append", "extend", "add", "update"})


def _over_batches(code: Syntax, loop: ast.For) -> bool:
    text = written(loop.iter)
    if _BATCHES.search(text):
        return True
    origins = [code.origin(n) for n in below(loop.iter) if isinstance(n, (ast.Name, ast.Attribute))]
    return any(isinstance(o, ast.Call) and "DataLoader" in written(o.func) for o in origins)


def _over_epochs(code: Syntax, loop: ast.For) -> bool:
    """Whether a loop counts passes: over a range, with a loop over batches inside."""
    counts = isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) in ("range", "trange")
    return counts and any(n is not loop and _over_batches(code, n) for n in code.inside(loop, ast.For))


def _yields(code: Syntax, function: ast.AST) -> bool:
    return bool(code.inside(function, ast.Yield) or code.inside(function, ast.YieldFrom))


def _in_loop(code: Syntax, node: ast.AST) -> ast.AST | None:
    """The loop that `continue` goes on with: of a loop's `else` it is the one around."""
    for loop in code.loops(node):
        if not any(node is n for s in getattr(loop, "orelse", ()) for n in below(s)):
            return loop
    return None


def _finding(code: Syntax, node: ast.AST, said: str, kind: str, loop: ast.For, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(said, code.place(node), code.file.path, bearing=Bearing.CAUSE,
                        measured={"kind": kind, "loop": loop.lineno}, patch=patch)  # fmt: skip
