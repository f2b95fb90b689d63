"""A generator and its discriminator push the same way.

The discriminator's loss pushes its output for generated samples one way and for real ones the other; the generator's
loss has to push that for generated samples back. `relu(1 + fake)` with `fake.mean()`, or `fake.mean() - real.mean()`
with `fake.mean()`, push the same way: the generator makes samples that are ever easier to tell, both losses fall, and
the samples get worse. A discriminator whose loss pushes both the same way has nothing to tell apart. Which way is up
is free: a critic may be low for real samples, if its generator then wants low values too.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.directions import Context, Push, pushes, resolved
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.value_sets import values_of
from traindx_tools.rules import Rule

RULE = Rule(
    id="C256",
    name="adversary-sign",
    title="Generator and discriminator push the same way",
    severity=Severity.CRITICAL,
    sees="The direction in which each loss pushes the discriminator's output for generated and for real samples.",
    matters="There is no adversary: the generator helps the discriminator, or the discriminator tells nothing apart.",
    alike=("a critic that is low for real samples, with a generator that asks for low values",
           "a gradient reversal or maximize=True, which turn the sign elsewhere"),
    confirm=("print(D(fake).mean()) before and after one generator step: it should move towards D(real).mean()",),
)
_FAKE = re.compile(r"fake|generated|synth|forged|(^|[_.])gen(_|$)|(^|_)g_?(z|out|x|sample)s?(_|$)|x_?gen|sampled",
                   re.IGNORECASE)  # fmt: skip
_REAL = re.compile(r"real|true|genuine|(^|_)(x|data|imgs?|images?|batch|inputs?|audio|wave|y)\d?$", re.IGNORECASE)
_MIXED = re.compile(r"inter|mix|hat|penalty|blend", re.IGNORECASE)
_GENERATOR = re.compile(r"^(self\.)?(\w*[_.])?(gen\w*|net_?G|model_?G|G|g|decoder|synthesi[sz]er)$")
_OF_G = re.compile(r"(^|[_.])(g|gen|generator)([_.]|\d|$)|(loss|err|opt|optim|optimizer|cost)_?G($|[_.])|G_?(loss|opt)"
                   r"|generator|adv_loss|loss_gen", re.IGNORECASE)  # fmt: skip
_OF_D = re.compile(r"(^|[_.])(d|dis|disc|discriminator|critic|c)([_.]|\d|$)|(loss|err|opt|optim|optimizer|cost)_?D"
                   r"($|[_.])|D_?(loss|opt)|discriminator|critic", re.IGNORECASE)  # fmt: skip
_ADVERSARIAL = ("fake", "discriminator", "critic", "netd", "gan")
_TURNED = re.compile(r"maximize=True|neg_\(|GradientReversal|GradReverse|grad_reverse|RevGrad|reverse_grad")


@dataclass(frozen=True)
class _Loss:
    """A loss of one side, with what it pushes."""

    side: str
    code: Syntax
    node: ast.expr
    pushed: list[Push]


def check(project: Project) -> Iterator[Finding]:
    """Look at the two losses of every discriminator."""
    lowered = ((f, f.text.lower()) for f in project.files)
    codes = [syntax(f) for f, text in lowered if any(word in text for word in _ADVERSARIAL)]
    for code in codes:
        if code.file.mentions(_TURNED):
            continue
        losses = [loss for node, side, sign in _sent(code) if (loss := _followed(codes, code, node, side, sign)).pushed]
        for judge in sorted({p.network for loss in losses for p in loss.pushed}):
            found = _judged(judge, losses)
            if found is not None:
                yield found


def _followed(codes: Sequence[Syntax], code: Syntax, node: ast.expr, side: str, sign: int) -> _Loss:
    found = [p for p in pushes(codes, Context(code, {}), node, sign) if _kind(p) is not None]
    return _Loss(side, code, node, found)


def _sent(code: Syntax) -> Iterator[tuple[ast.expr, str, int]]:
    """(loss, "G" or "D", sign) for each loss that is sent backward or returned, where it is known whose it is."""
    following = _steps_and_backwards(code)
    for call in code.calls("backward", "manual_backward"):
        loss, sign = _backward(code, call)
        side = _side(code, call, loss, following) if loss is not None else None
        if loss is not None and side is not None and sign:
            yield loss, side, sign
    for back in code.of(ast.Return):
        function = code.function(back)
        value = back.value
        if function is None or value is None or code.calls("backward", "manual_backward"):
            continue
        named = isinstance(value, ast.Name) and function.name in ("training_step", "compute_loss")
        own = bool(re.search(r"loss", function.name)) and not isinstance(value, (ast.Tuple, ast.Dict))
        text = written(value) if named else function.name if own else ""
        g, d = bool(_OF_G.search(text)), bool(_OF_D.search(text))
        if g != d:
            yield value, "G" if g else "D", 1


def _backward(code: Syntax, call: ast.Call) -> tuple[ast.expr | None, int]:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    first = call.args[0] if call.args else None
    if owner is None:
        return None, 0
    if isinstance(owner, ast.Call) and last_name(owner.func) == "scale" and owner.args:
        return owner.args[0], 1
    manager = re.search(r"accelerator|fabric|engine|^self$|amp", written(owner)) is not None
    if manager:
        return first, 1
    if first is None:
        return owner, 1
    values = values_of(code, first)
    return owner, {1.0: 1, -1.0: -1}.get(next(iter(values)), 0) if values is not None and len(values) == 1 else 0


_Following = dict[int, list[tuple[int, str, str]]]


def _steps_and_backwards(code: Syntax) -> _Following:
    """The line, name and text of every call of step and backward in order, by the function around it."""
    found: _Following = {}
    for call in code.calls("step", "backward", "manual_backward"):
        found.setdefault(id(code.scope(call)), []).append((call.lineno, last_name(call.func), written(call)))
    return {scope: sorted(calls) for scope, calls in found.items()}


def _side(code: Syntax, call: ast.Call, loss: ast.expr, following: _Following) -> str | None:
    """Whose loss it is: by its name, else by the optimizer that steps before anything else is sent backward."""
    here = following[id(code.scope(call))]
    after = bisect_left(here, (call.lineno + 1,))
    texts = [written(loss)]
    if after < len(here) and here[after][1] == "step":
        texts.append(here[after][2].removesuffix(".step()"))
    for text in texts:
        g, d = bool(_OF_G.search(text)), bool(_OF_D.search(text))
        if g != d:
            return "G" if g else "D"
    return None


def _kind(push: Push) -> str | None:
    """Whether a network was given a generated or a real sample."""
    if isinstance(push.node, ast.Name):
        return "real" if "real" in push.node.id.lower() else "fake"
    for given in push.node.args if isinstance(push.node, ast.Call) else ():
        text = written(given)
        if _MIXED.search(text):
            return None
        cut = re.sub(r"\.(detach|data|clone)(\(\))?", "", text)
        made, _ = resolved(push.at, _bare(given))
        made = _bare(made)
        if _FAKE.search(cut) or (isinstance(made, ast.Call) and _GENERATOR.match(written(made.func))):
            return "fake"
        if _REAL.search(cut):
            return "real"
    return None


def _bare(node: ast.expr) -> ast.expr:
    while isinstance(node, (ast.Call, ast.Attribute)):
        inner = node.func if isinstance(node, ast.Call) else node
        if not isinstance(inner, ast.Attribute) or inner.attr not in ("detach", "data", "clone", "to"):
            break
        node = inner.value
    return node


def _directions(judge: str, losses: list[_Loss], side: str, kind: str) -> tuple[set[int], list[tuple[_Loss, Push]]]:
    found = [(loss, p) for loss in losses if loss.side == side for p in loss.pushed
             if p.network == judge and _kind(p) == kind]  # fmt: skip
    return {p.sign for _, p in found}, found


def _judged(judge: str, losses: list[_Loss]) -> Finding | None:
    d_fake, fakes = _directions(judge, losses, "D", "fake")
    d_real, reals = _directions(judge, losses, "D", "real")
    g_fake, wanted = _directions(judge, losses, "G", "fake")
    if len(d_fake) != 1 or len(d_real) != 1 or 0 in d_fake | d_real:
        return None
    up = {1: "down", -1: "up"}
    judge = judge or "the discriminator's output"
    if d_fake == d_real:
        if all(p.by_label for _, p in (*fakes, *reals)):
            return None  # one label for both: C250
        loss, push = fakes[0]
        way = up[push.sign]
        return _finding(loss, f"the discriminator's loss pushes {judge} {way} for generated and for real samples", (),
                        "discriminator")  # fmt: skip
    if g_fake == d_fake and not any(_with_real(loss) for loss, _ in wanted):
        loss, push = wanted[0]
        way = up[push.sign]
        return _finding(loss, f"the generator's loss pushes {judge} {way} for generated samples, and so does the "
                        f"discriminator's (line {fakes[0][0].node.lineno})", _patch(loss), "generator")  # fmt: skip
    return None


def _with_real(loss: _Loss) -> bool:
    """Whether a generator's loss also holds real samples, as relativistic losses do."""
    return any(_kind(p) == "real" for p in loss.pushed)


def _patch(loss: _Loss) -> tuple[Patch, ...]:
    """A minus where the whole loss is the mean of the discriminator's output."""
    made = loss.code.assigned(loss.node) if isinstance(loss.node, ast.Name) else None
    mean = isinstance(made, ast.Call) and last_name(made.func) == "mean"
    statement = loss.code.statement(made) if made is not None else None
    if not mean or not isinstance(statement, ast.Assign) or statement.value is not made or len(loss.pushed) != 1:
        return ()
    return Change(loss.code.file, "ask for the other direction").wrap(made, "-", "").patches()


def _finding(loss: _Loss, why: str, patch: tuple[Patch, ...], kind: str) -> Finding:
    made, where = resolved(Context(loss.code, {}), loss.node)
    code = where.code
    return RULE.finding(
        f"{written(made)[:90]} at {code.at(made)}: {why}",
        code.place(made),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=patch,
    )
