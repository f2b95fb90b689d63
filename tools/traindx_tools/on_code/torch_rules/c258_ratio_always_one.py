"""The importance ratio of several epochs is taken between the policy and itself.

PPO goes several times over what an older policy did, and exp(new - old) says how far the policy has moved since. Where
old is `logp.detach()`, or the same call under `no_grad` right before, it is computed by the policy of this very step:
the ratio is exactly 1 in every epoch, the clip never acts, and later epochs follow a gradient that assumes fresh
samples. With one update a rollout that is right, and nothing is said; so it is where samples are drawn in the loop.
That a stored value was meant is certain only where the function is given one and does not read it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.bootstrapping import suspended
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Loops, Syntax, last_name, names_in, parameters, syntax, written
from traindx_tools.on_code.terms import exponent

(RULE,) = pages("recipes", ("C258",))
_LOG = re.compile(r"log|(^|_)lps?(_|$)", re.IGNORECASE)
_EPOCHS = re.compile(r"epoch|n_updates|num_updates|update_iter|inner|ppo_iter|K_", re.IGNORECASE)
_STORED = re.compile(r"log_?p(i|rob|robs|s)?(_|$|\d)|logprob|(^|_)lps?(_|$)", re.IGNORECASE)
_DRAWS = re.compile(r"\.step\(.*act|env\.|envs\.|\.generate\(|\.rollout|collect|\.sample\(\)|\.rsample\(")


def check(project: Project) -> Iterator[Finding]:
    """Look at every exponential of a difference of log-probabilities."""
    for file in project.files:
        if "exp" not in file.text or not ("detach" in file.text or "no_grad" in file.text) or "clamp" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("exp"):
            inside = exponent(call)
            inside = code.origin(inside) if inside is not None else None
            if not isinstance(inside, ast.BinOp) or not isinstance(inside.op, ast.Sub):
                continue
            why = _itself(code, inside.left, inside.right)
            loop = _epochs(code, call) if why is not None else None
            if why is not None and loop is not None and _clipped(code, call):
                yield _finding(code, call, why, *loop)


def _itself(code: Syntax, new: ast.expr, old: ast.expr) -> str | None:
    """How old is computed by the policy of this step."""
    if not (_LOG.search(written(new)) or _LOG.search(written(code.origin(new)))):
        return None
    cut = code.origin(old)
    if isinstance(cut, ast.Call) and last_name(cut.func) == "detach" and isinstance(cut.func, ast.Attribute):
        if written(cut.func.value) == written(new) or code.origin(cut.func.value) is code.origin(new):
            return f"{written(cut)} is the same value"
        cut = code.origin(cut.func.value)
    made = code.origin(new)
    both = isinstance(made, ast.Call) and isinstance(cut, ast.Call) and cut is not made
    if not both or not _alike(code, made, cut):
        return None
    aside = suspended(code, cut) or "detach" in written(code.origin(old)) or "detach" in written(old)
    return f"{written(cut)[:70]} at line {cut.lineno} asks the same policy in the same step" if aside else None


def _alike(code: Syntax, new: ast.expr, old: ast.expr) -> bool:
    """Whether two expressions are the same call of the same values, in one pass of the innermost loop."""
    if code.scope(new) is not code.scope(old) or code.loops(new)[:1] != code.loops(old)[:1]:
        return False
    return _expanded(code, new, 4) == _expanded(code, old, 4)


def _expanded(code: Syntax, node: ast.expr, left: int) -> str:
    """An expression with the local names of networks' outputs and distributions put in."""
    text = written(node)
    for name in [n for n in below(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]:
        made = code.assigned(name) if left else None
        if not isinstance(made, (ast.Call, ast.Subscript)) or made is node:
            continue
        if code.loops(made)[:1] == code.loops(node)[:1]:
            inner = _expanded(code, made, left - 1).replace("\\", "\\\\")
            text = re.sub(rf"(?<![\w.]){re.escape(name.id)}\b", inner, text)
    return text


def _epochs(code: Syntax, node: ast.expr) -> tuple[ast.AST, float | None] | None:
    """The loop of several epochs around a step, and their number; None where samples may be drawn inside."""
    for loop in code.loops(node):
        if not isinstance(loop, Loops) or not _steps(code, loop):
            continue
        if any(_DRAWS.search(written(c)) for c in below(loop) if isinstance(c, ast.Call)):
            return None
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or last_name(loop.iter.func) != "range":
            continue
        if len(loop.iter.args) != 1:
            continue
        count = code.number(loop.iter.args[0])
        named = bool(_EPOCHS.search(written(loop.iter) + " " + written(loop.target)))
        if names_in(loop.target) & names_in(node):
            return None
        if named and (count is None or count >= 2):
            return loop, count
        if count is not None and count < 2:
            return None
    return None


def _steps(code: Syntax, loop: ast.AST) -> bool:
    return any(loop in code.loops(c) for c in code.calls("step") if not c.args or "opt" in written(c))


def _clipped(code: Syntax, ratio: ast.Call) -> bool:
    """Whether the ratio is clamped in the same function."""
    statement = code.statement(ratio)
    names = {t.id for t in getattr(statement, "targets", ()) if isinstance(t, ast.Name)}
    scope = code.scope(ratio)
    return any(code.scope(c) is scope and names & names_in(c) for c in code.calls("clamp", "clip"))


def _unread(code: Syntax, node: ast.expr) -> str | None:
    """Log-probabilities that the function is given, or unpacks from a batch, and never reads."""
    function = code.function(node)
    if function is None:
        return None
    names = [n for n in below(function) if isinstance(n, ast.Name)]
    read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
    unpacked = {n.id for part in below(function) if isinstance(part, ast.Tuple) for n in part.elts
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # fmt: skip
    given = [n for n in (*parameters(function), *sorted(unpacked)) if _STORED.search(n)]
    return next((n for n in given if n not in read), None)


def _finding(code: Syntax, call: ast.Call, why: str, loop: ast.AST, count: float | None) -> Finding:
    stored = _unread(code, call)
    sure = stored is not None and count is not None
    unused = f", and {stored} is never read" if stored is not None else ""
    line = getattr(loop, "lineno", 0)
    times = f"{count:g} times" if count is not None else "several times"
    return RULE.finding(
        f"{written(call)[:90]} at {code.at(call)} is exactly 1 in each of the epochs of line {line} ({times}): {why}"
        + unused,
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        severity=Severity.HIGH if sure else Severity.MEDIUM,
        measured={"kind": "itself", "loop_line": line, "stored": stored is not None},
    )
