"""A term for diversity is minimised.

Quantizers, mixtures of experts and clusterings add a term that keeps all entries in use: the entropy of the average
probabilities, or its exponential, the perplexity. These are large where use is even, so a loss has to subtract them, or
to add what is missing: `(n - perplexity) / n`. Added as they are, training drives every sample to the same entry. The
entropy of each sample's own probabilities is another matter: to lower that is often wanted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.spread import Direction, direction
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.terms import addends
from traindx_tools.rules import Rule

RULE = Rule(
    id="C291",
    name="diversity-sign",
    title="A term for diversity is minimised",
    severity=Severity.HIGH,
    sees="An entropy of average probabilities, a perplexity or a distance between embeddings that a loss rises with.",
    matters="Training rewards collapse: all samples end on the same codes, experts or clusters.",
    alike=("a diversity weight that is too small", "dead codes", "the entropy of single samples, which may be lowered"),
    confirm=("raise the weight of the term: the perplexity falls further",),
)
_LOSS = re.compile(r"loss|objective|criterion|^total$|regulari[sz]|penalt", re.IGNORECASE)
_NO_LOSS = re.compile(r"log|metric|stat|info|history|print|record", re.IGNORECASE)
_SPREAD = re.compile(r"divers|entropy|perplex|uniform|usage|balance|spread|ppl", re.IGNORECASE)
_WORDS = ("entrop", "perplex", "ppl", "log(", "log()", "pdist", "entr(")


def check(project: Project) -> Iterator[Finding]:
    """Look at the terms of losses, and at the tables of losses."""
    files = [f for f in project.files if any(w in f.text for w in _WORDS) or f.mentions(_SPREAD)]
    if not files:
        return
    look = lookup(project)
    seen: set[int] = set()
    for file in files:
        if "maximize=True" in file.text:
            continue
        code = syntax(file)
        for sign, term, whole in (*_terms(code), *_tabled(look, code)):
            found = _direction(look, code, term)
            if found is None or sign * found.sign < 0 or id(term) in seen or _spoken_against(code, term):
                continue
            if not _moves(look, code, term, found):
                continue
            seen.add(id(term))
            yield _finding(code, term, whole, found)


def _terms(code: Syntax) -> Iterator[tuple[int, ast.expr, ast.expr | None]]:
    """(sign, term, the sum) of every loss that is written as a sum."""
    for statement in code.of(ast.Assign):
        name = last_name(statement.targets[0])
        if _LOSS.search(name) and not _NO_LOSS.search(name):
            parts = list(addends(statement.value))
            if len(parts) > 1:
                yield from ((s, t, statement.value) for s, t in parts)
    for added in code.of(ast.AugAssign):
        name = last_name(added.target)
        if isinstance(added.op, (ast.Add, ast.Sub)) and _LOSS.search(name) and not _NO_LOSS.search(name):
            turn = 1 if isinstance(added.op, ast.Add) else -1
            yield from ((s * turn, t, None) for s, t in addends(added.value))
    for back in code.of(ast.Return):
        body = code.function(back)
        if back.value is not None and body is not None and _LOSS.search(body.name):
            parts = list(addends(back.value))
            if len(parts) > 1:
                yield from ((s, t, back.value) for s, t in parts)


def _tabled(look: Lookup, code: Syntax) -> Iterator[tuple[int, ast.expr, ast.expr | None]]:
    """Entries of a table of losses: the dictionary that a function of losses returns, or that is called so."""
    for table in code.of(ast.Dict):
        body, up = code.function(table), code.parent(table)
        named = isinstance(up, ast.Assign) and _LOSS.search(last_name(up.targets[0])) is not None
        given = isinstance(up, ast.Return) and body is not None and _LOSS.search(body.name) is not None
        if not (named or given) or (isinstance(up, ast.Assign) and _NO_LOSS.search(last_name(up.targets[0]))):
            continue
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _SPREAD.search(key.value):
                if re.search(r"perplex|ppl|usage", key.value, re.IGNORECASE) and len(table.keys) > 1 and not given:
                    continue  # what is only logged beside the losses
                if not _negative_weight(look, key.value):
                    yield 1, value, None


def _negative_weight(look: Lookup, key: str) -> bool:
    """Whether some table of weights has a negative number for this key."""
    for code in look.codes:
        for table in code.of(ast.Dict):
            for k, v in zip(table.keys, table.values, strict=True):
                if isinstance(k, ast.Constant) and k.value == key and (code.number(v) or 0) < 0:
                    return True
    return False


def _direction(look: Lookup, code: Syntax, term: ast.expr) -> Direction | None:
    """Of a term with its factors: `weight * entropy`; a negative number turns it."""
    turn = 1
    while isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
        number = code.number(term.right)
        inner = direction(look, code, term)
        if inner is not None:
            return inner if turn > 0 else inner.turned()
        if number is not None and number < 0:
            turn = -turn
        term = term.left
    found = direction(look, code, term)
    return None if found is None else found if turn > 0 else found.turned()


def _moves(look: Lookup, code: Syntax, term: ast.expr, found: Direction) -> bool:
    """Whether a name is enough: the term has to be called for diversity, where only a name says what it is."""
    if found.by == "entropy":
        return True
    around = code.statement(term)
    text = written(term) if around is None else f"{written(term)} {written(around)[:300]}"
    return _SPREAD.search(text) is not None and (found.by == "distance" or
        re.search(r"divers|ppl|perplex|uniform|spread", text, re.IGNORECASE) is not None)


def _spoken_against(code: Syntax, term: ast.expr) -> bool:
    """Whether a weight in the term is called negative, or the whole loss is negated later."""
    if re.search(r"neg", written(term), re.IGNORECASE):
        return True
    around = code.statement(term)
    target = last_name(around.targets[0]) if isinstance(around, ast.Assign) else ""
    turned = rf"\(-{re.escape(target)}\)\.backward|= ?-{re.escape(target)}\b"
    return bool(target) and re.search(turned, code.file.text) is not None


def _finding(code: Syntax, term: ast.expr, whole: ast.expr | None, found: Direction) -> Finding:
    what = "a distance that grows with the spread" if found.by == "distance" else (
        "a measure of diversity (entropy, perplexity)")  # fmt: skip
    return RULE.finding(
        f"{written(term)[:80]} at {code.at(term)} is {what}, and the loss rises with it: the sign is inverted, so "
        "training minimises the diversity and rewards collapse",
        code.place(term),
        code.file.path,
        bearing=Bearing.SIGN if found.by == "name" else Bearing.CAUSE,
        measured={"kind": found.by, "term": written(term)[:60]},
        patch=_patch(code, term, whole),
    )


def _patch(code: Syntax, term: ast.expr, whole: ast.expr | None) -> tuple[Patch, ...]:
    """Subtract the term where it is added last, or take what is missing where it is a share."""
    change = Change(code.file, "reward diversity")
    if isinstance(whole, ast.BinOp) and whole.right is term and isinstance(whole.op, (ast.Add, ast.Sub)):
        sign = "-" if isinstance(whole.op, ast.Add) else "+"
        text = f"{source_of(code.file, whole.left)} {sign} {source_of(code.file, term)}"
        return change.replace(whole, text).patches()
    if whole is None and isinstance(term, ast.BinOp) and isinstance(term.op, ast.Div) and (
        isinstance(code.parent(term), ast.Dict)
    ):
        return change.wrap(term, "1 - ", "").patches()
    return ()
