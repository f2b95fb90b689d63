"""Discounted values of next states, and whether what they are multiplied by is the flag of an episode's end itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.filling.spots import spot_in
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.program.uses import Bootstrap

_WORDS = table("quantities.toml")["words"]
_DONE = re.compile(_WORDS["end_of_episode"], re.IGNORECASE)
_DISCOUNT = re.compile(_WORDS["discount"], re.IGNORECASE)
_MENTIONED = re.compile(_WORDS["discount"].removeprefix("(.*_)?"), re.IGNORECASE)
"""The same without what may stand before it, for which a search would go on from every character of a text."""
_PASSES = frozenset(_WORDS["same_flag"])
_MOST_STEPS = 8


def bootstraps(project: Project) -> Iterator[Bootstrap]:
    """Every product of a discount, a flag of an episode's end and something else."""
    for code in (syntax(f) for f in project.files if f.mentions(_MENTIONED)):
        for node in code.of(ast.BinOp):
            up = code.parent(node)
            if not isinstance(node.op, ast.Mult) or (isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult)):
                continue
            factors = list(_factors(node))
            others = [f for f in factors if not _DISCOUNT.fullmatch(last_name(f))]
            if len(factors) < 3 or len(others) == len(factors):
                continue
            for factor in others:
                flag = _flag(project, code, factor)
                if flag is not None:
                    yield Bootstrap(spot_in(code, node), written(node), written(factor), flag)
                    break


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _inner(code: Syntax, node: ast.expr) -> ast.expr | None:
    """What a call only gives another form; None of any other call."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _PASSES:
        return None
    plain = isinstance(node.func, ast.Name) or bool(code.qualified(node.func))
    return node.args[0] if plain and node.args else getattr(node.func, "value", None)


def _flag(project: Project, code: Syntax, node: ast.expr) -> str | None:
    """Where a factor is the plain flag of an episode's end: where it became so, or "" where it is called so."""
    for _ in range(_MOST_STEPS):
        if isinstance(node, ast.Call):
            inner = _inner(code, node)
        elif isinstance(node, ast.Subscript):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(key, str):
                return "" if _DONE.fullmatch(key) else None
            inner = node.value
        elif isinstance(node, (ast.Name, ast.Attribute)):
            inner = code.assigned(node)
            if inner is None and code.bindings(node):
                return None  # assigned more than once
            if inner is None or (isinstance(inner, ast.Subscript) and isinstance(inner.value, ast.Call)):
                return _stored_as(project, last_name(node)) or ("" if _DONE.fullmatch(last_name(node)) else None)
        else:
            return None
        if inner is None:
            return None
        node = inner
    return None


def _stored_as(project: Project, name: str) -> str | None:
    """Where flags, and nothing else, are stored under a name: `self.mask[i] = float(done)`, `Step(mask=done)`."""
    found = [(code, value) for code in (syntax(f) for f in project.files if name in f.text)
             for value in _values(code, name)]
    flags = [f"{written(v)} at {code.at(v)}" for code, v in found if _is_flag(code, v)]
    return flags[0] if flags and len(flags) == len(found) else None


def _values(code: Syntax, name: str) -> Iterator[ast.expr]:
    for assign in code.of(ast.Assign):
        for target in assign.targets:
            pairs = [(target, assign.value)]
            if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
                pairs = list(zip(target.elts, assign.value.elts, strict=False))
            yield from (v for t, v in pairs if isinstance(t, ast.Subscript) and isinstance(t.value, ast.Attribute)
                        and t.value.attr == name)
    yield from (k.value for call in code.of(ast.Call) for k in call.keywords if k.arg == name)


def _is_flag(code: Syntax, value: ast.expr) -> bool:
    while (inner := _inner(code, value)) is not None:
        value = inner
    return isinstance(value, (ast.Name, ast.Attribute)) and bool(_DONE.fullmatch(last_name(value)))
