"""The divergence from the reference policy is rewarded, or the entropy of a soft critic is punished.

Training with rewards keeps a policy near its reference by a penalty: `reward - beta * (logp - ref_logp)`, or
`loss + beta * kl`. With the other sign the policy is paid for leaving the reference: the total reward rises, the texts
or actions fall apart. A soft actor-critic has the same pair of signs in two places: the value and `alpha * log_prob`
enter the target and the actor's loss with opposite signs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.terms import addends
from traindx_tools.rules import Rule

RULE = Rule(
    id="C261",
    name="divergence-reward-sign",
    title="The divergence from the reference policy is rewarded",
    severity=Severity.CRITICAL,
    sees="A reward plus, or a loss minus, the divergence of a policy from its reference; a value and alpha * log_prob "
         "of one sign in a soft actor-critic.",
    matters="The policy is paid for leaving its reference (or for becoming certain): it runs away or collapses.",
    alike=("a coefficient that is too small", "a divergence that is estimated as ref_logp - logp", "reward hacking"),
    confirm=("train with a ten times larger coefficient: the divergence grows faster instead of falling",),
)  # fmt: skip
_LOG = re.compile(r"log_?p|logprob|logps|log_pi|logpi|^lp$|(^|_)lp(s)?(_|$)", re.IGNORECASE)
_REFERENCE = re.compile(r"(^|_|\.)(ref|reference|sft|anchor|frozen|pretrained|initial|init_model|base)(_|\b|\.|\d)"
                        r"|ref_?log|logp\w*_ref", re.IGNORECASE)  # fmt: skip
_DIVERGENCE = re.compile(r"^(\w+_)?kl(s|_?div\w*|_?est\w*|_?mean|_?term|_?tokens?|_?penalty|_ref|_?loss)?$|^kld$",
                         re.IGNORECASE)  # fmt: skip
_REWARD = re.compile(r"reward|(^|_)score|(^|_)rew(s)?($|_)|(^|_)returns?$|(^|_)rs?$", re.IGNORECASE)
_ONLY_PENALTY = re.compile(r"non_?score_?rewards?|kl_?rewards?", re.IGNORECASE)
_LOSS = re.compile(r"loss", re.IGNORECASE)
_VALUE = re.compile(r"(^|_)q\d?(_|$|s$|f)|(^|_)(min|target|next)_?q|qf\d?|critic", re.IGNORECASE)
_TEMPERATURE = re.compile(r"alpha|ent(ropy)?_?coef|temperature|(^|_)temp$", re.IGNORECASE)
_KEEPS = frozenset({"mean", "sum", "clamp", "clip", "float", "detach", "masked_mean", "unsqueeze", "squeeze", "to",
                    "view", "clone", "cpu", "numpy", "stop_gradient"})  # fmt: skip
_FINE_TUNED = re.compile(r"\bref_|reference|ref_model|sft")


def check(project: Project) -> Iterator[Finding]:
    """Look at sums that hold a reward, a loss or a value."""
    for file in project.files:
        text = file.text
        if not (("kl" in text.lower() or "ref" in text) or "alpha" in text or "ent_coef" in text) or "log" not in text:
            continue
        if "maximize=True" in text:
            continue
        code = syntax(file)
        done: set[int] = set()
        for name, whole, at in _sums(code):
            found = _reward(code, name, whole) or _loss(code, name, whole, at) or _soft(code, whole)
            if found is not None and found.where is not None and (found.where.line or 0) not in done:
                done.add(found.where.line or 0)
                yield found


def _sums(code: Syntax) -> Iterator[tuple[str, ast.expr, ast.AST]]:
    """(what it is called, the sum, the statement): assignments, additions in place, results of functions."""
    for made in code.of(ast.Assign):
        target = made.targets[0]
        yield last_name(target.value if isinstance(target, ast.Subscript) else target), made.value, made
    for added in code.of(ast.AugAssign):
        if isinstance(added.op, (ast.Add, ast.Sub)):
            name = last_name(added.target.value if isinstance(added.target, ast.Subscript) else added.target)
            left: ast.expr = ast.copy_location(ast.Name(name, ast.Load()), added)
            yield name, ast.copy_location(ast.BinOp(left, added.op, added.value), added), added
    for back in code.of(ast.Return):
        body = code.function(back)
        if back.value is not None and body is not None:
            yield body.name, back.value, back


def _rises(code: Syntax, node: ast.expr, left: int = 8) -> tuple[int, bool] | None:
    """(1 or -1, certain): whether a value rises or falls with the divergence from the reference."""
    if left <= 0:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        number = code.number(node.left), code.number(node.right)
        sides = _rises(code, node.left, left - 1), _rises(code, node.right, left - 1)
        one = sides[0] or sides[1]
        if one is None or (sides[0] is not None and sides[1] is not None):
            return None
        minus = isinstance(node.left, ast.UnaryOp) and _minus(node.left)
        turned = minus or any(n is not None and n < 0 for n in number)
        return (-one[0], one[1]) if turned and sides[0] is None else one
    if isinstance(node, ast.UnaryOp) and _minus(node):
        inner = _rises(code, node.operand, left - 1)
        return None if inner is None else (-inner[0], inner[1])
    subtracts = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    if isinstance(node, ast.BinOp) and subtracts and _is_log(node.left) and _is_log(node.right):
        a, b = _of_reference(code, node.left), _of_reference(code, node.right)
        return None if a == b else (1, True) if b else (-1, True)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        inner = _rises(code, node.left, left - 1)
        return None if inner is None else (1, inner[1])
    if isinstance(node, ast.BinOp) and _is_k3(code, node):
        return 1, True
    if isinstance(node, ast.Call):
        return _called(code, node, left)
    if isinstance(node, (ast.Name, ast.Attribute)):
        made = code.assigned(node)
        found = _rises(code, made, left - 1) if made is not None and made is not node else None
        if found is not None:
            return found
        if made is None and _DIVERGENCE.match(last_name(node)):
            return 1, False
    return None


def _minus(node: ast.UnaryOp) -> bool:
    return isinstance(node.op, ast.USub)


def _called(code: Syntax, node: ast.Call, left: int) -> tuple[int, bool] | None:
    name = last_name(node.func)
    if name in ("kl_divergence", "kl_div"):
        return 1, False
    plain = bool(code.qualified(node.func)) or isinstance(node.func, ast.Name)
    inner = (node.args[0] if node.args else None) if plain else getattr(node.func, "value", None)
    if not isinstance(inner, ast.expr):
        return None
    if name in ("pow", "square", "abs"):
        found = _rises(code, inner, left - 1)
        return None if found is None else (1, found[1])
    return _rises(code, inner, left - 1) if name in _KEEPS else None


def _is_log(node: ast.expr) -> bool:
    return _LOG.search(written(node)) is not None


def _of_reference(code: Syntax, node: ast.expr) -> bool:
    if _REFERENCE.search(written(node)):
        return True
    made = code.assigned(node) if isinstance(node, ast.Name) else None
    return made is not None and _REFERENCE.search(written(made)) is not None


def _is_k3(code: Syntax, node: ast.BinOp) -> bool:
    """exp(x) - x - 1, never negative."""
    parts: list[tuple[int, ast.expr]] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp) and isinstance(left.op, (ast.Add, ast.Sub)):
        parts.append((1 if isinstance(left.op, ast.Add) else -1, left.right))
        left = left.left
    parts.append((1, left))
    raised = [t for s, t in parts if s > 0]
    grown = [t for t in raised if last_name(getattr(t, "func", None)) == "exp" or "ratio" in written(t)]
    one = [t for s, t in parts if s < 0 and code.number(t) == 1]
    rest = [t for s, t in parts if s < 0 and code.number(t) != 1]
    return len(parts) == 3 and len(grown) == 1 and len(one) == 1 and len(rest) == 1


def _reward(code: Syntax, name: str, whole: ast.expr) -> Finding | None:
    parts = list(addends(whole))
    alone = len(parts) == 1 and (_ONLY_PENALTY.search(name) is not None or _scored_later(code, name))
    if not _REWARD.search(name) or (len(parts) < 2 and not alone) or _LOSS.search(name):
        return None
    if not alone and not any(_REWARD.search(n) for s, t in parts if s > 0 for n in _words(t)):
        return None
    for sign, term in parts:
        found = _rises(code, term)
        if found is not None and sign * found[0] > 0:
            why = f"{name} rises with the divergence from the reference ({written(term)[:60]}): leaving it is rewarded"
            return _finding(code, term, whole, why, "reward", found[1])
    return None


def _scored_later(code: Syntax, name: str) -> bool:
    """Whether a score is added to it in place: `rewards[:, -1] += scores`."""
    return any(
        isinstance(a.target, ast.Subscript) and last_name(a.target.value) == name and isinstance(a.op, ast.Add)
        and any(_REWARD.search(w) for w in _words(a.value)) for a in code.of(ast.AugAssign)
    )  # fmt: skip


def _words(node: ast.expr) -> list[str]:
    return [last_name(n) for n in below(node) if isinstance(n, (ast.Name, ast.Attribute))] + [
        str(n.value) for n in below(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]  # fmt: skip


def _loss(code: Syntax, name: str, whole: ast.expr, at: ast.AST) -> Finding | None:
    parts = list(addends(whole))
    if not _LOSS.search(name) or len(parts) < 2 or _turned_later(code, name, at):
        return None
    for sign, term in parts:
        found = _rises(code, term)
        if found is not None and sign * found[0] < 0 and _has_reference(code):
            why = f"{name} falls with the divergence from the reference ({written(term)[:60]}): leaving it is rewarded"
            return _finding(code, term, whole, why, "loss", found[1])
    return None


def _has_reference(code: Syntax) -> bool:
    return code.file.mentions(_FINE_TUNED)


def _turned_later(code: Syntax, name: str, at: ast.AST) -> bool:
    """Whether the value is negated where it is used: an objective that is called a loss."""
    for use in below(code.scope(at)):
        if not isinstance(use, (ast.Name, ast.Attribute)) or last_name(use) != name or isinstance(use.ctx, ast.Store):
            continue
        for up in code.above(use):
            if isinstance(up, ast.stmt):
                break
            if isinstance(up, ast.UnaryOp) and _minus(up):
                return True
            if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Sub) and any(n is use for n in below(up.right)):
                return True
    return isinstance(at, ast.Return)


def _soft(code: Syntax, whole: ast.expr) -> Finding | None:
    """q and alpha * log_prob of one sign."""
    for node in below(whole):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
            continue
        up = code.parent(node)
        if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Add, ast.Sub)):
            continue
        parts = list(addends(node))
        values = [s for s, t in parts if isinstance(t, (ast.Name, ast.Call, ast.Subscript)) and _is_value(t)]
        for sign, term in parts:
            if values and len(set(values)) == 1 and sign == values[0] and _is_temperature(code, term):
                why = (f"the value and {written(term)[:60]} have one sign in {written(node)[:80]}: certainty is "
                       "rewarded instead of entropy")  # fmt: skip
                return _finding(code, term, node, why, "soft", True)
    return None


def _is_value(node: ast.expr) -> bool:
    name = last_name(node.func) if isinstance(node, ast.Call) else last_name(node)
    if isinstance(node, ast.Call) and name in ("min", "minimum"):
        return any(_is_value(a) for a in node.args)
    return _VALUE.search(name) is not None and not _LOG.search(name)


def _is_temperature(code: Syntax, node: ast.expr) -> bool:
    """alpha * log_prob, without a minus of its own."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    sides = [node.left, node.right]
    if any(isinstance(n, (ast.UnaryOp, ast.Sub)) for s in sides for n in ast.walk(s)):
        return False
    return any(_TEMPERATURE.search(written(a)) and isinstance(b, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
               and _LOG.search(written(b)) and not _TEMPERATURE.search(written(b)) and "entropy" not in written(b)
               for a, b in (sides, sides[::-1]))  # fmt: skip


def _finding(code: Syntax, term: ast.expr, whole: ast.expr, why: str, kind: str, certain: bool) -> Finding:
    return RULE.finding(
        f"At {code.at(term)} {why}; the sign is wrong",
        code.place(term),
        code.file.path,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN,
        severity=None if certain else Severity.HIGH,
        measured={"kind": kind, "term": written(term)[:60]},
        patch=_patch(code, term, whole) if certain else (),
    )


def _patch(code: Syntax, term: ast.expr, whole: ast.expr) -> tuple[Patch, ...]:
    """The other sign, where the term is the last of its sum."""
    if not isinstance(whole, ast.BinOp) or whole.right is not term or not isinstance(code.parent(whole), ast.AST):
        return ()
    sign = "-" if isinstance(whole.op, ast.Add) else "+"
    text = f"{source_of(code.file, whole.left)} {sign} {source_of(code.file, term)}"
    return Change(code.file, "turn the sign").replace(whole, text).patches()
