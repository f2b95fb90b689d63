"""A policy's objective points the wrong way.

Four mistakes of hand-written PPO and its kin. The ratio as exp(old - new), which rises where the policy moves away
from what was good. The clipped surrogate min(ratio * A, clip(ratio) * A) as a loss without a minus. The larger instead
of the smaller of the two, which removes the bound. The entropy added to the loss, which minimises it, so that
exploration ends at once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.policy_entropy import is_entropy
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.terms import addends
from traindx_tools.rules import Rule

RULE = Rule(
    id="C182",
    name="policy-objective-sign",
    title="A policy's objective points the wrong way",
    severity=Severity.HIGH,
    sees="exp(old - new) as a ratio; min of ratio * advantage without a minus, or max with one; a loss plus entropy.",
    matters="The policy gets worse with every update, or its entropy collapses.",
    alike=("rewards of the wrong sign", "an objective that is maximised by maximize=True"),
    confirm=("one update on a batch with one positive advantage: that action's probability has to rise",),
)
_OLD = re.compile(r"old|behav|rollout|sampling|prev|\bmu\b", re.IGNORECASE)
_LOG = re.compile(r"log_?p|logprob|lp\b|logps|log_pi|logpi", re.IGNORECASE)
_RATIO = re.compile(r"ratio|rho|importance|\biw\b|is_weight", re.IGNORECASE)
_LOSS = re.compile(r"loss|objective_to_minimi[sz]e|^cost$", re.IGNORECASE)
_NEAR = re.compile(r"\.entropy\(|\bactions?\b|critic|\bpg_|ent_?coef|value_loss|vf_|\breturns\b", re.IGNORECASE)
_POLICY = re.compile(r"log_?prob|logp|adv|reward|policy|actor", re.IGNORECASE)
"""Elsewhere a small entropy may be wanted: unlabelled samples are pushed to one class."""
_ADVANTAGE = re.compile(r"adv|\bA\b|gae|\bdelta", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at ratios, surrogates and entropies."""
    for file in project.files:
        if not ("ratio" in file.text or "entropy" in file.text or "logp" in file.text or "log_prob" in file.text):
            continue
        if "maximize=True" in file.text:
            continue
        code = syntax(file)
        yield from _ratios(code)
        yield from _surrogates(code)
        yield from _entropies(lookup(project), code)


def _ratios(code: Syntax) -> Iterator[Finding]:
    for node in code.of(ast.Assign):
        call, name = node.value, last_name(node.targets[0])
        if not (isinstance(call, ast.Call) and last_name(call.func) == "exp" and _RATIO.search(name)):
            continue
        inner: ast.expr = (
            call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else call
        )
        inner = code.origin(inner) if isinstance(inner, ast.Name) else inner
        if not (isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub)):
            continue
        left, right = written(inner.left), written(inner.right)
        logs = _LOG.search(left) and _LOG.search(right)
        if logs and _OLD.search(left) and not _OLD.search(right):
            yield _finding(code, node, f"{name} is exp(old - new): it has to be exp(new - old)", "ratio",
                           forms.sides_swapped(code.file, inner))


def _surrogates(code: Syntax) -> Iterator[Finding]:
    for call in code.calls("min", "max", "minimum", "maximum"):
        if len(call.args) != 2 or code.qualified(call.func).partition(".")[0] not in ("torch", "jax"):
            continue
        sides = [code.origin(a) for a in call.args]
        if not all(_is_surrogate(code, s) for s in sides) or not any(_clipped(code, s) for s in sides):
            continue
        negative = any(isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub) for s in sides for n in _outer(s))
        sign, top = _sign_outside(code, call)
        larger = last_name(call.func) in ("max", "maximum")
        flips = (sign < 0) != negative
        if larger == negative and not flips and _is_loss(code, top):
            yield _finding(code, call, "the clipped surrogate is used as a loss without a minus", "surrogate",
                           forms.negated(code.file, top))
        elif larger and not negative and flips:
            yield _finding(code, call, "the larger of the two surrogates is maximised: clipping bounds nothing", "max",
                           forms.smaller_of_both(code.file, call))


def _outer(node: ast.expr) -> Iterator[ast.AST]:
    """The factors of a product."""
    yield node
    if isinstance(node, ast.BinOp):
        yield from _outer(node.left)
        yield from _outer(node.right)


def _is_surrogate(code: Syntax, node: ast.expr) -> bool:
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    text = written(node)
    return product and _ADVANTAGE.search(text) is not None and (_RATIO.search(text) is not None or "cl" in text)


def _clipped(code: Syntax, node: ast.expr) -> bool:
    parts = [n for n in below(node) if isinstance(n, (ast.Call, ast.Name))]
    names = [
        last_name(p.func) if isinstance(p, ast.Call) else last_name(getattr(code.origin(p), "func", None))
        for p in parts
    ]
    return any(n in ("clamp", "clip") for n in names)


def _sign_outside(code: Syntax, call: ast.expr, left: int = 8) -> tuple[int, ast.AST]:
    sign = 1
    top: ast.AST = call
    below: ast.AST = call
    for up in code.above(call):
        if (isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.USub)) or (
            isinstance(up, ast.BinOp) and isinstance(up.op, ast.Sub) and up.right is below
        ):
            sign = -sign
        elif isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Mult, ast.Div)):
            number = code.number(up.right if up.left is below else up.left)
            sign = -sign if number is not None and number < 0 else sign
        if isinstance(up, ast.stmt):
            use = _only_use(code, up) if left > 0 else None
            if use is None:
                return sign, up
            further, end = _sign_outside(code, use, left - 1)
            return sign * further, end
        below = up
    return sign, top


def _only_use(code: Syntax, statement: ast.AST) -> ast.Name | None:
    """The one place at which the name that a value is bound to is read, where that is another term of a loss."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Name) or "loss" in target.id.lower() or len(code.bindings(target)) != 1:
        return None
    scope = code.scope(statement)
    uses = [n for n in below(scope) if isinstance(n, ast.Name) and n.id == target.id and n is not target]
    later = [u for u in uses if u.lineno > (getattr(statement, "end_lineno", 0) or 0)]  # so that it comes to an end
    return uses[0] if len(uses) == 1 and later else None


def _is_loss(code: Syntax, statement: ast.AST) -> bool:
    """Whether the value is bound to a loss that nobody negates later."""
    if not isinstance(statement, ast.Assign):
        return False
    name = last_name(statement.targets[0])
    if not _LOSS.search(name):
        return False
    for use in (n for n in below(code.scope(statement)) if isinstance(n, ast.Name) and n.id == name):
        up = code.parent(use)
        negated = isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.USub)
        subtracted = isinstance(up, ast.BinOp) and isinstance(up.op, ast.Sub) and up.right is use
        if negated or subtracted:
            return False
    return True


def _entropies(find: Lookup, code: Syntax) -> Iterator[Finding]:
    """`loss = policy_loss + c * entropy`, also added later, sent backward or returned as it stands."""
    if not code.file.mentions(_POLICY):
        return
    for node, name, terms in _sums(code):
        body = code.function(node)
        near = written(body) if body is not None else code.file.text
        if not (_POLICY.search(near) or _NEAR.search(near)):
            continue  # single samples made certain, in a file that speaks of a policy elsewhere
        for sign, term in terms:
            factors = list(_factors(term))
            known = [number for f in factors if (number := code.number(f)) is not None]
            if sign > 0 and all(number > 0 for number in known) and any(is_entropy(find, code, f) for f in factors):
                why = f"{name} adds {written(term)}: the entropy is minimised instead of rewarded"
                yield _finding(code, node, why, "entropy", forms.subtracted(code.file, node, term))
                break


def _sums(code: Syntax) -> Iterator[tuple[ast.AST, str, list[tuple[int, ast.expr]]]]:
    """The losses that are added up: where, what they are called, their terms with their signs."""
    for node in code.of(ast.Assign):
        name, terms = last_name(node.targets[0]), list(addends(node.value))
        if _LOSS.search(name) and len(terms) > 1 and _is_loss(code, node):
            yield node, name, terms
    for more in code.of(ast.AugAssign):
        name = last_name(more.target)
        if _LOSS.search(name) and isinstance(more.op, (ast.Add, ast.Sub)):
            yield more, name, list(addends(more.value, 1 if isinstance(more.op, ast.Add) else -1))
    for call in code.calls("backward"):
        whole = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(whole, ast.BinOp):
            yield call, "the loss", list(addends(whole))
    for last in code.of(ast.Return):
        function = code.function(last)
        terms = list(addends(last.value)) if isinstance(last.value, ast.BinOp) else []
        if function is not None and _LOSS.search(function.name) and len(terms) > 1:
            yield last, function.name, terms


def _factors(term: ast.expr) -> Iterator[ast.expr]:
    """The factors of a product; a minus is the factor -1."""
    if isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
        yield from _factors(term.left)
        yield from _factors(term.right)
    elif isinstance(term, ast.UnaryOp) and isinstance(term.op, ast.USub):
        yield ast.UnaryOp(ast.USub(), ast.Constant(1.0))
        yield from _factors(term.operand)
    else:
        yield term


def _finding(code: Syntax, node: ast.AST, why: str, kind: str, patch: tuple[Patch, ...] = ()) -> Finding:
    return RULE.finding(
        f"At {code.at(node)} {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=patch,
    )
