"""The forward process of a diffusion model mixes without the square roots.

With abar the cumulative product of 1 - beta, x_t = sqrt(abar_t) x_0 + sqrt(1 - abar_t) noise keeps the variance of the
input at every step. `abar * x + (1 - abar) * noise` is another process: its variance dips to a half in the middle, the
signal fades far earlier than the schedule says, and a sampler derived for the first one meets inputs that were never
trained. A straight line (1 - t) x_0 + t noise is right for flow matching, where t is a time and no product of a
schedule.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.noise_schedules import Coefficient, Schedules, sides
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C305",
    name="mixture-without-roots",
    title="The forward process mixes without square roots",
    severity=Severity.HIGH,
    sees="A sum of data and noise whose factors are a cumulative product and what it leaves of 1, of which one or both "
         "lack the square root, or stand at the other's place.",
    matters="The loss falls and samples are blurred or noise: the sampler assumes another process.",
    alike=("flow matching, which mixes along a straight line in t", "discrete diffusion, which mixes probabilities"),
    confirm=("for x of variance 1 the variance of x_t is 1 at every t",),
)  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every sum of two products where a project cumulates a schedule."""
    if not any("cumprod" in f.text or "accumulate" in f.text for f in project.files):
        return
    schedules = Schedules(lookup(project))
    for code in schedules.look.codes:
        for node in code.of(ast.BinOp):
            if isinstance(node.op, ast.Add):
                yield from _judged(schedules, code, node)


def _judged(schedules: Schedules, code: Syntax, node: ast.BinOp) -> Iterator[Finding]:
    products = list(sides(code, node))
    if len(products) != 4 or not any(schedules.is_noise(code, other) for _, other in products):
        return
    terms = [(c, factor, other) for factor, other in products
             if (c := schedules.coefficient(code, factor)) is not None]  # fmt: skip
    if len(terms) != 2 or terms[0][0].schedule is not terms[1][0].schedule:
        return
    noisy = [schedules.is_noise(code, other) for _, _, other in terms]
    if noisy.count(True) != 1:
        return
    noise, data = terms[noisy.index(True)], terms[noisy.index(False)]
    why = _fault(noise[0], data[0], schedules.is_drawn(code, noise[2]))
    if why is None:
        return
    kind, said = why
    yield RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} {said}, where {written(data[1])} comes from a cumulative "
        "product of 1 - beta: the forward process is sqrt(abar) * x + sqrt(1 - abar) * noise",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=_patch(code, [t for t in (noise, data) if not t[0].root]) if kind == "no roots" else (),
    )


def _fault(noise: Coefficient, data: Coefficient, drawn: bool) -> tuple[str, str] | None:
    if noise.rest and not data.rest:
        if not noise.root or not data.root:
            both = not noise.root and not data.root
            return "no roots", ("mixes without square roots" if both else "takes the square root of one factor only")
        return None
    if data.rest and not noise.rest and noise.root and data.root and drawn:
        return "swapped", "weights the noise with what is left of the signal and the signal with the noise's share"
    return None


def _patch(code: Syntax, terms: list[tuple[Coefficient, ast.expr, ast.expr]]) -> tuple[Patch, ...]:
    change = Change(code.file, "square roots of the shares of the variance")
    if any(not code.file.segment(t[1]) for t in terms):
        return ()
    for _, factor, _ in terms:
        text = code.file.segment(factor)
        change.replace(factor, f"({text}) ** 0.5" if isinstance(factor, ast.BinOp) else f"{text} ** 0.5")
    return change.patches()
