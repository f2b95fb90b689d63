"""The decoder gets a latent that is cut off from its encoder.

`decoder(z.detach())` reconstructs from z, and the error of the reconstruction stops there: the encoder is moved by the
divergence or commitment term alone, which asks nothing of the input. It collapses onto the prior, the decoder learns
the mean of the data, and the loss of both terms falls as if all were well. The gradient has to pass through the sample
(z = m + s * e) or around the quantizer (z + (q - z).detach()).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, syntax, written
from traindx_tools.on_code.trained_sum import Body, behind
from traindx_tools.rules import Rule

RULE = Rule(
    id="C333",
    name="latent-cut",
    title="The decoder's input is cut off from the encoder",
    severity=Severity.HIGH,
    sees="decoder(z.detach()), where z was computed by an encoder of the same function and reaches nothing else uncut.",
    matters="The encoder learns nothing from the reconstruction.",
    alike=("a decoder that is trained on a fixed encoder, or only to look at its features",
           "a straight-through sum, in which a difference alone is detached", "a discriminator's step"),
    confirm=("reconstruction.backward(); print(encoder_weight.grad): it is None",),
)
_DECODER = re.compile(r"dec(oder?)?\d*$|^dec(ode)?_|decode|reconstruct|generator|^gen$|^(un|up)_?(embed|net)$", re.I)
_ENCODER = re.compile(r"enc(oder?)?\d*$|^enc|encode|infer|posterior|recognition|^q_?net|bottom|features?$", re.I)
_CUTS = frozenset({"detach", "stop_gradient"})
_TERM = re.compile(r"kl_divergence|log_?var|logv\b|commit|codebook|quantiz|log_?std|log_?sigma", re.I)
_ON_PURPOSE = re.compile(r"probe|frozen|freeze|no_grad|requires_grad|stage|visuali[sz]|discriminat|phase", re.I)


def check(project: Project) -> Iterator[Finding]:
    """Look at every call of a decoder whose input was detached."""
    for file in project.files:
        if not ("detach" in file.text or "stop_gradient" in file.text) or not file.mentions(_TERM):
            continue
        code = syntax(file)
        for call in code.of(ast.Call):
            if not call.args or not _DECODER.search(last_name(call.func)) or code.qualified(call.func):
                continue
            cut = _cut(code, call.args[0])
            body = code.function(call) if cut is not None else None
            if cut is not None and isinstance(body, FunctionNode) and _only_way(code, body, call, cut):
                yield _finding(code, call, cut)


def _cut(code: Syntax, node: ast.expr) -> ast.Call | None:
    """`z.detach()`, `stop_gradient(z)`, itself or under a name."""
    made = code.origin(node)
    if not isinstance(made, ast.Call) or last_name(made.func) not in _CUTS:
        return None
    return made if isinstance(_inner(code, made), ast.Name) else None


def _inner(code: Syntax, cut: ast.Call) -> ast.expr | None:
    if cut.args:
        return cut.args[0]
    return cut.func.value if isinstance(cut.func, ast.Attribute) and not code.qualified(cut.func) else None


def _only_way(code: Syntax, body: Body, call: ast.Call, cut: ast.Call) -> bool:
    """Whether the latent comes from an encoder called here, and no decoder and no head reads it uncut."""
    latent = _inner(code, cut)
    owner = code.owner(body)
    if latent is None or _ON_PURPOSE.search(written(owner if owner is not None else body)):
        return False
    name, around = last_name(latent), behind(body, [latent])
    encoded = False
    for node in (n for n in below(body) if isinstance(n, ast.Call) and n is not call):
        called = last_name(node.func)
        statement = code.statement(node)
        bound = {last_name(t) for a in (statement.targets if isinstance(statement, ast.Assign) else [])
                 for t in below(a) if isinstance(t, ast.Name)}  # fmt: skip
        encoded |= bool(_ENCODER.search(called)) and bool(bound & around) and not code.qualified(node.func)
        if _DECODER.search(called) and _cut(code, node.args[0] if node.args else node.func) is None:
            return False
    return encoded and not _read_uncut(code, body, name, cut)


def _read_uncut(code: Syntax, body: Body, name: str, cut: ast.Call) -> bool:
    """Whether the latent also goes into a call of the function's own modules as it is."""
    for use in (n for n in below(body) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)):
        up = code.parent(use)
        inside = any(a is cut for a in code.above(use))
        if isinstance(up, ast.Call) and use in up.args and not inside and not code.qualified(up.func):
            return True
    return False


def _finding(code: Syntax, call: ast.Call, cut: ast.Call) -> Finding:
    latent = _inner(code, cut)
    return RULE.finding(
        f"{written(call.func)} at {code.at(call)} gets {written(cut)}: the reconstruction's gradient ends before "
        f"{written(latent)}, and the encoder learns nothing from it",
        code.place(cut),
        code.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "cut", "latent": written(latent), "decoder": written(call.func)},
        patch=_patch(code, cut, latent),
    )


def _patch(code: Syntax, cut: ast.Call, latent: ast.expr | None) -> tuple[Patch, ...]:
    if latent is None or re.search(r"argmin|embedding|quantiz|one_hot", written(code.scope(cut))):
        return ()
    return Change(code.file, "let the gradient reach the encoder").replace(cut, written(latent)).patches()
