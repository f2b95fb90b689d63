"""A denoiser is compared with another draw of the noise.

A diffusion model predicts the noise that was mixed into its input. Where the input is made with one draw and the loss
compares with another, the target is independent of the input: the best prediction is 0 and the loss stays at 1.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C189",
    name="noise-of-another-draw",
    title="The target noise is not the noise in the input",
    severity=Severity.HIGH,
    sees="A noise that is only compared with a prediction, while the input is made with another draw.",
    matters="The loss stays at the variance of the noise, 1: nothing can be learned.",
    alike=("a model that is too small to denoise",),
    confirm=("the loss stays near 1.0 for every timestep",),
)
_DRAWS = ("randn_like", "randn", "normal", "standard_normal")
_MIXERS = frozenset({"q_sample", "add_noise", "forward_diffusion", "diffuse", "noise_images"})
_MIXER = re.compile(r"nois(y|e)|q_sample|diffus|corrupt|perturb", re.IGNORECASE)
_LOSSES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "squared_error", "l2_loss", "criterion",
                     "loss_fn"})  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that draws noise at least twice and compares with one of the draws."""
    for file in project.files:
        if not any(d in file.text for d in _DRAWS[:2]) and "random.normal" not in file.text:
            continue
        code = syntax(file)
        draws = [c for c in code.calls(*_DRAWS) if code.function(c) is not None]
        for function in {id(f): f for c in draws if (f := code.function(c)) is not None}.values():
            own = [c for c in draws if code.function(c) is function]
            if len(own) >= 2 and _denoises(function):
                yield from _judged(code, function, own)


def _denoises(function: ast.AST) -> bool:
    """Whether a timestep is drawn, or square roots of a schedule mix the input."""
    text = ast.unparse(function)
    return any(w in text for w in ("randint", "sqrt", "add_noise", "q_sample", "sigma", "alpha"))


def _judged(code: Syntax, function: ast.AST, draws: list[ast.Call]) -> Iterator[Finding]:
    for call in draws:
        statement = code.statement(call)
        if not (isinstance(statement, ast.Assign) and statement.value is call):
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or len(code.bindings(target)) != 1:
            continue
        uses = [n for n in below(function) if isinstance(n, ast.Name) and n.id == target.id and n is not target]
        compared = [u for u in uses if _in_loss(code, u)]
        keyed = code.qualified(call.func).startswith("jax.random")  # one key is one draw
        others = [c for c in draws if c is not call and not (keyed and _key(c) == _key(call))]
        mixed = [c for c in others if _mixes(code, c)]
        if uses and len(compared) == len(uses) and mixed:
            yield RULE.finding(
                f"{target.id}, drawn at {code.at(call)}, is only the target of the loss (line {compared[0].lineno}), "
                f"and the input is made with another draw at line {mixed[0].lineno}: the two are independent",
                code.place(mixed[0]),
                code.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "noise", "target_line": call.lineno},
                patch=forms.same_noise(code.file, call, mixed[0]),
            )
            return


def _key(call: ast.Call) -> str:
    return written(argument(call, 0, "key"))


def _in_loss(code: Syntax, use: ast.AST) -> bool:
    """Whether it is compared: an argument of a loss, or one side of a squared difference."""
    for up in code.above(use):
        if isinstance(up, ast.Call) and last_name(up.func) in _LOSSES:
            return True
        if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Sub):
            squared = code.parent(up)
            if isinstance(squared, ast.BinOp) and isinstance(squared.op, ast.Pow):
                return True
            return isinstance(squared, ast.Attribute) and squared.attr in ("pow", "square", "abs")
        if isinstance(up, (ast.stmt, ast.Call)):
            return False
    return False


def _mixes(code: Syntax, call: ast.Call) -> bool:
    """Whether a draw is multiplied and added to something, or handed to a function that makes the input."""
    for up in code.above(call):
        if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Mult, ast.Add)):
            return True
        if isinstance(up, ast.Call) and (last_name(up.func) in _MIXERS or _MIXER.search(last_name(up.func))):
            return True
        if isinstance(up, ast.stmt):
            return False
    return False
