"""The names under which a program logs its metrics, as patterns where a part of a name is not known."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written

_ANY = ".*"
_MOST = 24
_DEEP = 8
_LATE = re.compile(r"^(on_)?(test|predict)_")
_SUFFIX = re.compile(r"(_step|_epoch)?(/dataloader_idx_\d+)?$")


@dataclass(frozen=True)
class Logged:
    """One name that is logged: a pattern of a whole name, and where."""

    pattern: str
    code: Syntax
    call: ast.AST
    late: bool = False
    """Whether it is logged in a test or a prediction, after training."""

    @property
    def plain(self) -> str | None:
        """The name, where it is known in full."""
        return re.sub(r"\\(.)", r"\1", self.pattern) if _ANY not in self.pattern else None

    def fits(self, name: str) -> bool:
        """Whether it can be the name, up to the suffixes that Lightning appends."""
        bare = _SUFFIX.sub("", name)
        return any(re.fullmatch(self.pattern, n) for n in {name, bare, re.sub(r"/dataloader_idx_\d+$", "", name)})


def texts(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> set[str]:
    """Patterns of the texts that an expression may be; `.*` where it is not known."""
    if left <= 0:
        return {_ANY}
    if isinstance(node, ast.Constant):
        return {re.escape(node.value)} if isinstance(node.value, str) else {_ANY}
    if isinstance(node, ast.JoinedStr):
        parts: set[str] = {""}
        for piece in node.values:
            inner = piece.value if isinstance(piece, ast.FormattedValue) else piece
            parts = _joined(parts, texts(look, code, inner, left - 1))
        return parts
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined(texts(look, code, node.left, left - 1), texts(look, code, node.right, left - 1))
    if isinstance(node, ast.IfExp):
        return texts(look, code, node.body, left - 1) | texts(look, code, node.orelse, left - 1)
    if isinstance(node, ast.Name) and not code.bindings(node):
        passed = _passed(look, code, node, left)
        if passed is not None:
            return passed
    step = look.one_step(code, node)
    return texts(look, *step, left - 1) if step is not None and step[1] is not node else {_ANY}


def _joined(one: set[str], other: set[str]) -> set[str]:
    made = {a + b for a in one for b in other}
    return made if len(made) <= _MOST else {_ANY}


def _passed(look: Lookup, code: Syntax, name: ast.Name, left: int) -> set[str] | None:
    """What all the callers of a function pass for a parameter; None where it is none."""
    body = next((a for a in code.above(name) if isinstance(a, FunctionNode) and name.id in parameters(a)), None)
    if body is None or any(_rebinds(n, name.id) for n in code.above(name)):
        return None
    spec = [n for n in parameters(body) if n not in ("self", "cls")]
    calls = look.callers(body, code)
    if not calls or any(k.arg is None for _, c in calls for k in c.keywords) or name.id not in spec:
        return {_ANY}
    found: set[str] = set()
    for where, call in calls:
        value = argument(call, spec.index(name.id), name.id)
        value, where = (value, where) if value is not None else (parameters(body)[name.id], code)
        found |= {_ANY} if value is None else texts(look, where, value, left - 1)
    return found


def _rebinds(node: ast.AST, name: str) -> bool:
    """Whether a loop or comprehension gives the name a meaning of its own."""
    targets = [g.target for g in node.generators] if isinstance(
        node, (ast.ListComp, ast.GeneratorExp, ast.DictComp)) else [node.target] if isinstance(
        node, ast.For) else []  # fmt: skip
    return any(isinstance(n, ast.Name) and n.id == name for t in targets for n in below(t))


def keys(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> set[str]:
    """Patterns of the keys of a dict; `.*` where it is not known."""
    if left <= 0:
        return {_ANY}
    if isinstance(node, ast.Dict):
        found: set[str] = set()
        for key, value in zip(node.keys, node.values, strict=True):
            found |= keys(look, code, value, left - 1) if key is None else texts(look, code, key)
        return found
    if isinstance(node, ast.DictComp):
        return texts(look, code, node.key)
    if isinstance(node, ast.Call) and last_name(node.func) == "dict" and not node.args:
        return {re.escape(k.arg) if k.arg else _ANY for k in node.keywords}
    if isinstance(node, ast.Call):
        body = look.function(code, node.func)
        return {k for v in returned(body[1]) for k in keys(look, body[0], v, left - 1)} if body else {_ANY}
    if isinstance(node, ast.Name):
        made = [v for _, v in code.bindings(node)]
        if not made or any(c for c in code.calls("update", "setdefault") if _holds(c, node.id)):
            return {_ANY}
        stored = [s.targets[0] for s in code.item_stores.get(node.id, ()) if code.scope(s) is code.scope(node)]
        put = {t for s in stored if isinstance(s, ast.Subscript) for t in texts(look, code, s.slice)}
        return put.union(*(keys(look, code, v, left - 1) for v in made))
    return {_ANY}


def _holds(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Attribute) and written(call.func.value) == name


def logged(look: Lookup) -> Iterator[Logged]:
    """Every name that a module or callback of Lightning logs."""
    for code in look.codes:
        for call in code.calls("log", "log_dict"):
            if not isinstance(call.func, ast.Attribute) or code.qualified(call.func):
                continue
            whole = last_name(call.func) == "log_dict"
            given = argument(call, 0, "dictionary" if whole else "name")
            if given is None or _of_logger(call.func.value) or (not whole and len(call.args) + len(call.keywords) < 2):
                continue
            function = code.function(call)
            late = function is not None and bool(_LATE.match(function.name))
            for pattern in keys(look, code, given) if whole else texts(look, code, given):
                yield Logged(pattern, code, call, late)
        for text, stores in code.item_stores.items():
            if text.endswith("callback_metrics"):
                for store in stores:
                    yield from (Logged(p, code, store) for p in texts(look, code, store.targets[0].slice))  # type: ignore[attr-defined]
        if "callback_metrics.update" in code.file.text:
            yield Logged(_ANY, code, code.file.tree)


def _of_logger(receiver: ast.expr) -> bool:
    """Whether it is a logger's own method, which no callback reads: self.logger.experiment.log, wandb.log."""
    return bool(re.search(r"logger|experiment|wandb|writer|run$|tracker", written(receiver), re.IGNORECASE))


def names_in_steps(look: Lookup) -> set[str]:
    """Texts that stand as keys in what the hooks of old versions gave back, which then was logged."""
    found: set[str] = set()
    for code in look.codes:
        for body in code.of(ast.FunctionDef):
            if body.name.endswith("_epoch_end") and not body.name.startswith("on_"):
                found |= {n.value for n in below(body) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return found
