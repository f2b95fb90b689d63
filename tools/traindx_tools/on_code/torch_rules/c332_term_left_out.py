"""A term of the loss is computed and reported, and not part of what is trained.

The divergence of a variational model, an auxiliary loss times its weight, a penalty that a parameter `beta` is there to
weigh: the function computes it and logs it or hands it back beside the total, and the value that backward is called on
does not contain it. The log shows the term, which then does what it likes; changing its weight changes nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, names_in, parameters, syntax, written
from traindx_tools.on_code.terms import addends, exponent
from traindx_tools.on_code.trained_sum import Body, behind, callers, only_reported, trained, unread
from traindx_tools.rules import Rule

RULE = Rule(
    id="C332",
    name="term-left-out",
    title="A term of the loss is computed and not trained",
    severity=Severity.HIGH,
    sees="A divergence, or a weighted loss term, that the value backward is called on does not depend on.",
    matters="The term is reported and has no gradient: what it should enforce never happens.",
    alike=("a metric that is only reported", "an approximate divergence that is watched to stop early",
           "a term that is stored in a dict of losses and summed later"),
    confirm=("multiply the term by 1000: the gradients do not change",),
)
_WEIGHT = re.compile(
    r"^(kl_?)?beta$|^(kl|kld|aux|reg|rec|recon|commit\w*|div\w*|penalty|entropy|ent|vq|adv|perceptual|tv|l1|l2|gp|"
    r"distill|consistency|contrastive|balance)_?(w|weight|coef|coeff|scale|lambda|factor|beta|alpha)$"
    r"|^(lambda|lam|w|weight|coef)_\w+$|^\w+_loss_(weight|coef)$|^loss_weight_\w+$", re.IGNORECASE)  # fmt: skip
_TERM = re.compile(r"kl|kld|divergence|loss|penalty|reg|commit|recon|rec$|aux|nll|bce|term|tv|ce$|mse", re.IGNORECASE)
_LOSS_CALLS = re.compile(r"loss|cross_entropy|kl_div|mse|bce|nll|penalty|divergence|huber|criterion")
_VARIATIONAL = re.compile(r"decod|reparam|latent|recon", re.IGNORECASE)
_ADDS_TERMS = re.compile(r"exp\(|kl_divergence|loss|entropy")


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that computes a term, and at those that train what it gives back."""
    if not any("backward" in f.text or "training_step" in f.text or "value_and_grad" in f.text for f in project.files):
        return
    look = lookup(project)
    for file in project.files:
        if not file.mentions(_ADDS_TERMS):
            continue
        code = syntax(file)
        for name, statement, kind, weight in _terms(code):
            body = code.function(statement)
            if isinstance(body, FunctionNode) and _left_out(project, look, code, body, name, kind, weight):
                yield _finding(code, statement, name, kind, weight)


def _terms(code: Syntax) -> Iterator[tuple[str, ast.Assign, str, str]]:
    """(name, statement, kind, weight) of what is certainly meant to be part of a loss."""
    text = code.file.text
    divergent = "kl_divergence" in text or ("exp(" in text and ("log" in text or "lv" in text))
    variational = divergent and _VARIATIONAL.search(text) is not None
    spare: dict[int, set[str]] = {}
    for statement in code.of(ast.Assign):
        target = statement.targets[0]
        body = code.function(statement)
        if len(statement.targets) != 1 or not isinstance(target, ast.Name) or not isinstance(body, FunctionNode):
            continue
        if not isinstance(statement.value, (ast.BinOp, ast.Call, ast.UnaryOp)):
            continue
        if id(body) not in spare:
            weights = {n for n in parameters(body) if _WEIGHT.match(n)}
            spare[id(body)] = weights & unread(body) if weights else set()
        weight = next(iter(sorted(spare[id(body)])), "")
        factor = _weighted(code, statement.value)
        if variational and _is_divergence(code, statement.value) and not _cut(statement.value):
            yield target.id, statement, "divergence", weight or factor
        elif factor and not _cut(statement.value):
            yield target.id, statement, "weighted", factor
        elif weight and not _cut(statement.value) and _TERM.search(target.id) and _is_loss(statement.value):
            yield target.id, statement, "unweighted", weight


def _cut(value: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) in ("item", "detach", "no_grad", "stop_gradient", "numpy")
               for n in below(value))  # fmt: skip


def _is_divergence(code: Syntax, value: ast.expr) -> bool:
    """1 + log v - m^2 - v in any order of signs, summed or averaged; kl_divergence(posterior, prior)."""
    for node in below(value):
        if isinstance(node, ast.Call) and last_name(node.func) == "kl_divergence" and code.qualified(node.func):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            parts = [n for _, n in addends(node)]
            logs = {written(exponent(n)) for n in parts if exponent(n) is not None}
            ones = any(isinstance(n, ast.Constant) and n.value == 1 for n in parts)
            if len(parts) == 4 and ones and any(written(n) in logs for n in parts):
                return True
    return False


def _weighted(code: Syntax, value: ast.expr) -> str:
    """The weight of `self.aux_weight * cross_entropy(...)`; "" where it is nothing like that."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mult):
        return ""
    for factor, term in ((value.left, value.right), (value.right, value.left)):
        if _WEIGHT.match(last_name(factor)) and (_is_loss(code.origin(term)) or _TERM.search(last_name(term))):
            return written(factor)
    return ""


def _is_loss(value: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and (_LOSS_CALLS.search(last_name(n.func).lower())
                                            or last_name(n.func) in ("mean", "sum")) for n in below(value))  # fmt: skip


def _left_out(project: Project, look: Lookup, code: Syntax, body: Body, name: str, kind: str, weight: str) -> bool:
    """Whether the name is only reported, here and wherever it is handed back to, and something else is trained."""
    if not only_reported(code, body, name):
        return False
    totals = trained(code, body, look)
    if totals:
        return name not in behind(body, totals) and _is_trainable(totals)
    places = _places(body, name)
    if not places or (kind == "unweighted" and 0 in places):
        return False
    judged = [_unused_by(look, other, call, places) for other, call in callers(project, look, code, body)]
    known = [j for j in judged if j is not None]
    return bool(known) and all(known)


def _is_trainable(totals: list[ast.expr]) -> bool:
    return any(names_in(t) for t in totals)


def _places(body: Body, name: str) -> set[int]:
    """Where in the returned tuple the name stands by itself; empty where it is returned in another way too."""
    found: set[int] = set()
    for back in (n for n in below(body) if isinstance(n, ast.Return) and n.value is not None):
        if not isinstance(back.value, ast.Tuple):
            if name in names_in(back.value):  # type: ignore[arg-type]
                return set()
            continue
        for i, part in enumerate(back.value.elts):
            if isinstance(part, ast.Name) and part.id == name:
                found.add(i)
    return found


def _unused_by(look: Lookup, code: Syntax, call: ast.Call, places: set[int]) -> bool | None:
    """Whether a caller trains something of what it gets and not these; None for one that trains nothing (a test)."""
    body, up = code.function(call), code.parent(call)
    target = up.targets[0] if isinstance(up, ast.Assign) else None
    if not isinstance(body, FunctionNode):
        return None
    totals = trained(code, body, look)
    if not totals:
        return None
    if not isinstance(target, ast.Tuple) or not all(isinstance(e, ast.Name) for e in target.elts):
        return False
    names = [last_name(e) for e in target.elts]
    reached = behind_call(body, totals, names)
    mine = {names[i] for i in places if i < len(names)}
    if not reached or max(places) >= len(names):
        return False
    return not (mine & reached) and all(m == "_" or only_reported(code, body, m) for m in mine)


def behind_call(body: Body, totals: list[ast.expr], names: list[str]) -> set[str]:
    """Which of the names that a call was unpacked to the trained value depends on, not by the call itself."""
    return behind(body, totals) & set(names)


def _finding(code: Syntax, statement: ast.Assign, name: str, kind: str, weight: str) -> Finding:
    told = f" ({weight} is there for it and without effect)" if weight else ""
    what = "the divergence of the posterior from the prior" if kind == "divergence" else "a term of the loss"
    return RULE.finding(
        f"{name} at {code.at(statement)} is {what} and only reported: the value that is trained does not depend on "
        f"it{told}",
        code.place(statement),
        code.file.path,
        bearing=Bearing.CAUSE if kind == "divergence" else Bearing.SIGN,
        measured={"kind": kind, "term": name, "weight": weight},
    )
