"""The exponential of a log-variance is taken for the standard deviation.

A variational encoder that gives log v samples z = m + exp(0.5 * log v) * e. Without the 0.5 the noise has the variance
as its standard deviation: too small where v < 1 and far too large where v > 1, while the divergence term goes on
pricing v itself. Sampling and divergence then belong to two different posteriors, and the bound is none.
Where the encoder gives the logarithm of the standard deviation, exp of it is right; the divergence term, in which
log v stands beside exp(log v), shows which of the two it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.terms import addends, exponent
from traindx_tools.rules import Rule

RULE = Rule(
    id="C245",
    name="deviation-from-log-variance",
    title="The exponential of a log-variance is used as a standard deviation",
    severity=Severity.HIGH,
    sees="Noise times exp(x), or a Normal with scale exp(x), where the divergence term has x beside exp(x).",
    matters="Samples come from another posterior than the one that the divergence term prices.",
    alike=("an encoder that gives the logarithm of the standard deviation, whose term has 2 * x beside exp(2 * x)",
           "exp(0.5 * x) under a name of its own"),
    confirm=("draw 10000 samples for log v = 2 and compare their variance with exp(2)",),
)
_NOISE = re.compile(
    r"(^|\.)(randn|randn_like|normal|normal_|standard_normal|rsample|sample|gauss)(\(|$)"
)
_LOG_VARIANCE = re.compile(r"log_?(var|v$|sigma_?(2|sq)|s2)", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every sample of a Gaussian in a file, or a project, that holds a divergence term."""
    known = {name for file in project.files if "exp" in file.text for name in _log_variances(syntax(file))}
    if not known:
        return
    for file in project.files:
        if "exp" not in file.text:
            continue
        code = syntax(file)
        own = set(_log_variances(code)) or known
        for used in _deviations(code):
            power = _exponential(code, used)
            if power is None:
                continue
            x = _exponent(power)
            if x is None or not _is_log_variance(last_name(x), own) or _scaled_before(code, x):
                continue
            yield _finding(code, used, power, x)


def _log_variances(code: Syntax) -> Iterator[str]:
    """Names that stand beside their exponential, with the opposite sign, in a sum with a square or a 1."""
    for node in code.of(ast.BinOp):
        up = code.parent(node)
        if not isinstance(node.op, (ast.Add, ast.Sub)) or (
            isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Add, ast.Sub))
        ):
            continue
        found = list(addends(node))
        if len(found) < 3 or not any(isinstance(n, ast.Constant) and n.value in (1, 1.0) for _, n in found):
            continue
        plain = {(s, last_name(n)) for s, n in found if last_name(n)}
        for sign, addend in found:
            power = _exponential(code, addend)
            x = _exponent(power)
            if x is not None and (-sign, last_name(x)) in plain:
                yield last_name(x)


def _exponential(code: Syntax, node: ast.expr) -> ast.Call | None:
    """exp(x) or x.exp(), itself or under a name."""
    made = code.origin(node)
    return made if isinstance(made, ast.Call) and _exponent(made) is not None else None


def _exponent(node: ast.AST | None) -> ast.expr | None:
    """The name in an exponential."""
    x = exponent(node)
    return x if isinstance(x, (ast.Name, ast.Attribute)) else None


def _is_log_variance(name: str, known: set[str]) -> bool:
    return name in known or bool(_LOG_VARIANCE.search(name) and any(_LOG_VARIANCE.search(k) for k in known))


def _scaled_before(code: Syntax, x: ast.expr) -> bool:
    """Whether the name holds a half of it at this point."""
    value = code.assigned(x)
    return isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div))


def _deviations(code: Syntax) -> Iterator[ast.expr]:
    """What stands in the place of a standard deviation: beside noise, or as the scale of a Normal."""
    for node in code.of(ast.BinOp):
        if isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if _is_noise(code, one):
                    yield other
    for call in code.calls("mul", "multiply"):
        if isinstance(call.func, ast.Attribute) and call.args:
            pair = [call.func.value, call.args[0]] if not code.qualified(call.func) else call.args[:2]
            for one, other in (pair, pair[::-1]) if len(pair) == 2 else ():
                if _is_noise(code, one):
                    yield other
    for call in code.calls("Normal"):
        scale = argument(call, 1, "scale")
        if scale is not None and argument(call, 0, "loc") is not None:
            yield scale


def _is_noise(code: Syntax, node: ast.expr) -> bool:
    made = code.origin(node)
    return isinstance(made, ast.Call) and bool(_NOISE.search(written(made.func))) and not _is_shifted(made)


def _is_shifted(made: ast.Call) -> bool:
    """normal(m, s) of torch, which has a mean of its own."""
    return last_name(made.func) == "normal" and len(made.args) == 2 and isinstance(made.args[0], ast.Name) and \
        not re.search(r"key|rng", written(made.args[0]))  # fmt: skip


def _finding(code: Syntax, used: ast.expr, power: ast.Call, x: ast.expr) -> Finding:
    return RULE.finding(
        f"{written(used)} at {code.at(used)} is used as a standard deviation and is {written(power)}, the variance: "
        f"the divergence term takes {written(x)} as a log-variance",
        code.place(power),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "deviation", "log_variance": written(x)},
        patch=_patch(code, used, power, x),
    )


def _for_its_shape(code: Syntax, name: ast.Name) -> bool:
    """Whether only the shape is taken: `randn_like(std)`, `std.shape`, `std.size()`."""
    up = code.parent(name)
    if isinstance(up, ast.Call) and name in up.args:
        return last_name(up.func).endswith("_like")
    return isinstance(up, ast.Attribute) and up.attr in ("shape", "size", "device", "dtype")


def _patch(code: Syntax, used: ast.expr, power: ast.Call, x: ast.expr) -> tuple[Patch, ...]:
    """Half of the exponent; a root at the place of use where the variance itself is used elsewhere."""
    change = Change(code.file, "take the standard deviation")
    others = [n for n in below(code.scope(used)) if isinstance(n, ast.Name) and isinstance(used, ast.Name)
              and n.id == used.id and n is not used and isinstance(n.ctx, ast.Load)
              and not _for_its_shape(code, n)]  # fmt: skip
    if others or isinstance(used, ast.Attribute):
        return change.replace(used, f"{written(used)} ** 0.5").patches()
    half = f"0.5 * {written(x)}"
    if x in power.args:
        return change.replace(x, half).patches()
    return change.replace(x, f"({half})").patches()
