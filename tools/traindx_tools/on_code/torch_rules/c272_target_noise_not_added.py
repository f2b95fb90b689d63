"""The noise that a loss asks for is not the noise that was added by the function that makes the input.

A denoiser predicts the noise in its input. A function that adds noise often draws it itself where none is passed
(`q_sample(x, t, noise=None)`). Called without it, the input holds one draw, and the loss asks for another: the two are
independent, the best prediction is 0, and the loss stays at the variance of the noise from the first step to the last.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Body, Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C272",
    name="target-noise-not-added",
    title="The target noise is not the noise that was added",
    severity=Severity.HIGH,
    sees="A draw of noise that only enters the loss, while a function of the project adds a draw of its own to the "
         "input of the prediction.",
    matters="The target is independent of the input: the loss stays at the variance of the noise, about 1.",
    alike=("a function that adds the noise that it is passed, or returns the noise that it drew",
           "noise that is added to regularise, with a target that is data"),
    confirm=("the best constant prediction (0) has the same loss as the model",),
)  # fmt: skip
_NORMAL = frozenset({"randn_like", "randn", "normal", "standard_normal"})
_DRAWS = _NORMAL | {"rand_like", "rand", "uniform"}
_SPREAD = re.compile(r"mmd|sinkhorn|wasserstein|swd|kernel|moment|(^|_)ot(_|$)|adv|gan|nce|kl|divergence",
                     re.IGNORECASE)  # fmt: skip
"""Losses that compare two distributions, not two values."""
_MIXER = re.compile(r"nois(y|e)|q_sample|diffus|corrupt|perturb|forward_process", re.IGNORECASE)
_LOSS = re.compile(r"mse|(^|_)l[12](_|$|loss)|huber|squared_error|criterion|loss", re.IGNORECASE)
_SAME = frozenset({"to", "float", "half", "type_as", "cuda", "cpu", "view", "reshape", "flatten", "squeeze",
                   "unsqueeze", "astype", "clone", "contiguous", "detach", "stop_gradient"})  # fmt: skip
_SQUARES = frozenset({"square", "abs", "pow", "norm"})
_DEEP = 60
_DRAWS_NOISE = re.compile(r"randn|random\.(normal|uniform)|rand_like|standard_normal")


@dataclass(frozen=True)
class _End:
    """Where a draw goes: into a loss, against a prediction, or anywhere else. `direct`: under its own name."""

    loss: bool
    node: ast.AST
    against: tuple[ast.expr, ...] = ()
    direct: bool = True


def check(project: Project) -> Iterator[Finding]:
    """Look at every draw that ends in losses alone."""
    files = project.files
    if not any(f.mentions(_DRAWS_NOISE) for f in files):
        return
    look = lookup(project)
    for code in look.codes:
        told: set[int] = set()
        for draw in code.calls(*_DRAWS):
            function = code.function(draw)
            if function is None or id(function) in told or not _is_draw(code, draw):
                continue
            for finding in _judged(look, code, draw):
                told.add(id(function))
                yield finding
                break


def _is_draw(code: Syntax, call: ast.Call) -> bool:
    """Whether a call draws by a library: torch.randn_like, np.random.normal, rng.normal, jax.random.normal."""
    name = code.qualified(call.func)
    if not name and isinstance(call.func, ast.Attribute):
        return last_name(call.func.value) in ("rng", "random", "generator", "gen")
    return name.startswith(("torch.", "numpy.random", "jax.random"))


def _judged(look: Lookup, code: Syntax, draw: ast.Call) -> Iterator[Finding]:
    ends = list(_ends(look, code, draw))
    if not ends or not all(e.loss for e in ends):
        return
    for end in ends:
        for prediction in end.against:
            for call, other, body in _noisers(look, code, prediction):
                own = _own_draw(look, other, body, call)
                if own is None or _same_key(code, draw, call) or (last_name(draw.func) in _NORMAL) != (
                        last_name(own.func) in _NORMAL):  # fmt: skip
                    continue
                name = written(_target(code, draw) or draw)[:60]
                yield RULE.finding(
                    f"{name} at {code.at(draw)} only enters the loss (line {getattr(end.node, 'lineno', 0)}): "
                    f"{written(call)[:80]} at {code.at(call)} makes the input with another draw, at {other.at(own)}",
                    code.place(call),
                    code.file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "helper", "target_line": draw.lineno},
                    patch=_passed(code, draw, call, other, body, own),
                )
                return
            beside = [] if end.direct and _target(code, draw) else list(_beside(look, code, draw, end, prediction))
            yield from beside or _beside_by_name(look, code, draw, end, prediction)
            if beside:
                return


def _beside(look: Lookup, code: Syntax, draw: ast.Call, end: _End, prediction: ast.expr) -> Iterator[Finding]:
    """Another draw that is mixed into the input in the same function."""
    for node in _behind(look, code, prediction):
        for other in below(node):
            mixed = any(isinstance(u, ast.BinOp) and isinstance(u.op, (ast.Add, ast.Mult)) for u in code.above(other))
            if isinstance(other, ast.Call) and mixed and _is_other(code, draw, other):
                yield _with_another(code, draw, end, f"{written(other)[:60]} at line {other.lineno}", ())
                return


def _beside_by_name(look: Lookup, code: Syntax, draw: ast.Call, end: _End, prediction: ast.expr) -> Iterator[Finding]:
    """A draw under a name that is mixed into the input of a network in the same function."""
    made = code.assigned(prediction) if isinstance(prediction, ast.Name) else prediction
    jitter = any(isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add) for up in code.above(draw))
    if not isinstance(made, ast.Call) or not made.args or jitter:
        return
    for node in _behind(look, code, made):
        for name in below(node):
            other = code.assigned(name) if isinstance(name, ast.Name) else None
            if isinstance(other, ast.Call) and _is_other(code, draw, other) and _mixed(code, name):
                noise = f"{written(name)} of line {other.lineno}"
                yield _with_another(code, draw, end, noise, _reused(code, draw, name))
                return


def _is_other(code: Syntax, draw: ast.Call, other: ast.Call) -> bool:
    """Whether a call is a draw of its own, of the same function."""
    return (other is not draw and last_name(other.func) in _NORMAL and not _same_key(code, draw, other)
            and _is_draw(code, other) and code.function(other) is code.function(draw))  # fmt: skip


def _with_another(code: Syntax, draw: ast.Call, end: _End, other: str, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(
        f"{written(draw)[:60]} at {code.at(draw)} only enters the loss (line {getattr(end.node, 'lineno', 0)}): "
        f"the input is made with another draw, {other}",
        code.place(draw),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "beside", "target_line": draw.lineno},
        patch=patch,
    )


def _mixed(code: Syntax, name: ast.AST) -> bool:
    """Whether a value is added to another, or handed to a function that noises."""
    for up in code.above(name):
        if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Add, ast.Sub)):
            return True
        if isinstance(up, ast.Call):
            return len(up.args) + len(up.keywords) >= 2 and bool(_MIXER.search(last_name(up.func)))
        if isinstance(up, ast.stmt):
            return False
    return False


def _reused(code: Syntax, draw: ast.Call, name: ast.AST) -> tuple[Patch, ...]:
    """The loss asks for the noise that was added."""
    if not isinstance(name, ast.Name) or len(code.bindings(name)) != 1 or draw.lineno <= name.lineno:
        return ()
    return Change(code.file, "ask for the noise that was added").replace(draw, name.id).patches()


def _ends(look: Lookup, code: Syntax, draw: ast.expr) -> Iterator[_End]:
    """Every place that a draw reaches within its function."""
    queue: list[tuple[ast.AST, int]] = [(draw, 0)]
    seen: set[int] = set()
    for node, renamed in queue:
        if id(node) in seen or len(seen) > _DEEP:
            continue
        seen.add(id(node))
        up = code.parent(node)
        if isinstance(up, ast.keyword):
            node, up = up, code.parent(up)
        if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Sub) and _squared(code, up):
            yield _End(True, up, (up.right if up.left is node else up.left,), renamed < 2)
        elif isinstance(up, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Attribute)) or (
                isinstance(up, ast.Subscript) and up.value is node):  # fmt: skip
            queue.append((up, renamed + isinstance(up, ast.BinOp)))
        elif isinstance(up, ast.Call) and up.func is node:
            if last_name(node) in _SAME:
                queue.append((up, renamed))
            else:
                yield _End(False, up)
        elif isinstance(up, ast.Call):
            if last_name(up.func) in _SAME:
                queue.append((up, renamed))
            elif _is_loss(look, code, up):
                others = [a for a in (*up.args, *(k.value for k in up.keywords)) if a is not node and a is not getattr(
                    node, "value", None)]  # fmt: skip
                yield _End(True, up, tuple(others), renamed < 2)
            else:
                yield _End(False, up)
        elif isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
            reads = _reads(code, up)
            if not reads:
                continue
            queue += [(r, renamed + 1) for r in reads]
        else:
            yield _End(False, up or node)


def _reads(code: Syntax, statement: ast.Assign) -> list[ast.Name]:
    """Every later read of a name in the function."""
    target = statement.targets[0]
    reads = code.reads(code.scope(statement), target.id) if isinstance(target, ast.Name) else []
    return [n for n in reads if n.lineno >= statement.lineno]


def _squared(code: Syntax, node: ast.AST) -> bool:
    up = code.parent(node)
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Pow):
        return up.left is node
    if isinstance(up, ast.Attribute):
        return up.attr in _SQUARES
    return isinstance(up, ast.Call) and last_name(up.func) in _SQUARES


def _is_loss(look: Lookup, code: Syntax, call: ast.Call) -> bool:
    """A loss by its name; of the project's own functions only those that call nothing that is passed or of self."""
    if isinstance(call.func, ast.Call):
        return bool(_LOSS.search(last_name(call.func.func)))
    if _SPREAD.search(last_name(call.func)):
        return False
    made = code.assigned(call.func)
    kind = last_name(made.func) if isinstance(made, ast.Call) else ""
    if not _LOSS.search(last_name(call.func)) and not _LOSS.search(kind):
        return False
    found = look.function(code, call.func)
    if found is None:
        return len(call.args) + len(call.keywords) >= 2
    body = found[1]
    inner = [n for n in below(body) if isinstance(n, ast.Call)]
    return not any(written(n.func).startswith("self.") or last_name(n.func) in parameters(body) for n in inner)


def _behind(look: Lookup, code: Syntax, node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that a prediction is computed from, by names of its function."""
    queue, seen = [node], 0
    around = {id(a) for a in code.above(node) if isinstance(a, FunctionNode)}
    while queue and seen < _DEEP:
        one = queue.pop(0)
        seen += 1
        yield one
        for name in below(one):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
                bound = code.bindings(name)
                made = code.assigned(name)
                here = [made] if made is not None else [v for _, v in bound[:4]]
                whole = [v.value if isinstance(v, ast.Subscript) and code.parent(v) is None else v for v in here]
                queue += [v for v in whole if id(code.function(v)) in around and v is not one]


def _noisers(look: Lookup, code: Syntax, prediction: ast.expr) -> Iterator[tuple[ast.Call, Syntax, Body]]:
    """The calls of the project's own functions that make what a prediction is computed from."""
    told: set[int] = set()
    for expression in _behind(look, code, prediction):
        for call in below(expression):
            if isinstance(call, ast.Call) and id(call) not in told and code.parent(call) is not None:
                told.add(id(call))
                found = look.function(code, call.func)
                if found is not None and found[1] is not code.function(prediction):
                    yield call, *found


def _own_draw(look: Lookup, code: Syntax, body: Body, call: ast.Call) -> ast.Call | None:
    """The draw that a function adds to what it is passed, where the call does not pass one."""
    given = [n for n in parameters(body) if n not in ("self", "cls")]
    for draw in code.calls(*_DRAWS):
        if not _is_draw(code, draw) or body not in list(code.above(draw)):
            continue
        target = _target(code, draw)
        if isinstance(target, ast.Name) and target.id in given:
            passed = argument(call, given.index(target.id), target.id)
            if passed is not None and not (isinstance(passed, ast.Constant) and passed.value is None):
                continue
            if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
                continue
        if _added(code, body, draw, target, set(given)):
            return draw
    return None


def _added(code: Syntax, body: Body, draw: ast.Call, target: ast.expr | None, given: set[str]) -> bool:
    """Whether a draw is added to something that the function is passed."""
    for sum_ in below(body):
        if not isinstance(sum_, ast.BinOp) or not isinstance(sum_.op, (ast.Add, ast.Sub)):
            continue
        for one, other in ((sum_.left, sum_.right), (sum_.right, sum_.left)):
            holds = any(n is draw for n in below(one)) or (
                isinstance(target, ast.Name) and target.id in names_in(one))  # fmt: skip
            noise = target.id if isinstance(target, ast.Name) else ""
            if holds and noise not in names_in(other) and names_in(other) & (given - {noise}):
                return True
    return False


def _target(code: Syntax, draw: ast.expr) -> ast.expr | None:
    """The name that a draw is given: of `n = randn_like(x) if n is None else n`, of `n = default(n, lambda: ...)`."""
    for up in code.above(draw):
        if isinstance(up, ast.Assign):
            first = up.targets[0]
            return first if len(up.targets) == 1 and isinstance(first, ast.Name) else None
        if isinstance(up, (ast.BinOp, *FunctionNode)):
            return None
    return None


def _same_key(code: Syntax, draw: ast.Call, call: ast.Call) -> bool:
    """Whether both draw with one key of jax: the same noise."""
    if not code.qualified(draw.func).startswith("jax.random") or not draw.args:
        return False
    return written(draw.args[0]) in {written(a) for a in (*call.args, *(k.value for k in call.keywords))}


def _passed(
    code: Syntax, draw: ast.Call, call: ast.Call, other: Syntax, body: Body, own: ast.Call
) -> tuple[Patch, ...]:
    """The noise passed to the function that adds it, where that has a parameter for it."""
    name, theirs = _target(code, draw), _target(other, own)
    statement = code.statement(draw)
    if not isinstance(name, ast.Name) or not isinstance(theirs, ast.Name) or theirs.id not in parameters(body):
        return ()
    if not isinstance(statement, ast.Assign) or statement.value is not draw or draw.lineno >= call.lineno:
        return ()
    spec = [n for n in parameters(body) if n not in ("self", "cls")]
    if theirs.id not in spec or argument(call, spec.index(theirs.id), theirs.id) is not None:
        return ()
    return Change(code.file, "add the noise that the loss asks for").pass_argument(call, theirs.id, name.id).patches()
