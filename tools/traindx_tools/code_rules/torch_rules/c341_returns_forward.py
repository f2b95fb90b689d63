"""Returns are added up from the beginning of the episode to its end.

The return of a step is the sum of the rewards that come after it, R(t) = r(t) + gamma * R(t+1), so the sum runs from
the last step back to the first. A loop that goes forwards gives every step the rewards that came before it: what an
action brings about is credited to the actions that follow. The same for advantages (GAE). A running return that scales
rewards, a moving average, and a list that is turned round before or after, are something else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.breach import pages
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, written

(RULE,) = pages("recipes", ("C341",))

_DISCOUNT = re.compile(r"(gamma|discount)\w*", re.IGNORECASE)
_REWARD = re.compile(r"r|rs|r_t|\w*rews?|\w*rewards?(_\w+)?", re.IGNORECASE)
_TURNED = re.compile(r"reversed\(|\[::-1\]|\bflip|reverse|insert\(\s*0|appendleft|-\s*1\s*,\s*-\s*1|::\s*-1")
_DELTA = re.compile(r"(td_?)?(deltas?|errors?|residuals?)(_t)?", re.IGNORECASE)
_WEIGHT = re.compile(r"\.9\d*\s*\*")
_SCALING = re.compile(r"normali|scal(e|ing)|running|vec_?env|wrapper|track|monitor|trace|eligib|log", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every discounted sum that is carried through a loop over rewards."""
    look = lookup(project)
    for code in look.codes:
        text = code.file.text
        if "gamma" not in text.lower() and "discount" not in text and not _WEIGHT.search(text):
            continue
        for assign in code.of(ast.Assign):
            found = _looped(code, assign)
            if found is not None:
                yield found


def _looped(code: Syntax, assign: ast.Assign) -> Finding | None:
    target = assign.targets[0]
    loop = next((n for n in code.loops(assign) if isinstance(n, ast.For)), None)
    if loop is None or not isinstance(target, ast.Name) or not _carries(assign.value, target.id):
        return None
    around = code.function(assign)
    owner = code.owner(assign)
    names = " ".join(n.name for n in (around, owner) if n is not None)
    if _SCALING.search(names) or _TURNED.search(_text(code, around or code.statement(loop) or loop)):
        return None
    item = _item(code, loop, assign.value, target.id)
    if item is None or not _kept(code, loop, target.id) or not _from_the_start(code, loop.iter):
        return None
    over = f"{written(loop.iter)} (line {loop.lineno})"
    said = (f"{written(assign)} at {code.at(assign)} runs over {over} forwards: each "
            "step gets the rewards before it and none of those that follow")
    return _finding(code, assign, said, "loop")


def _carries(value: ast.expr, name: str) -> bool:
    """Whether an expression is a sum with a discounted product of the name in it."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    for product in (value.left, value.right):
        if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult) and name in names_in(product):
            factors = [n for n in below(product) if isinstance(n, (ast.Name, ast.Attribute)) and _DISCOUNT.fullmatch(
                last_name(n))]  # fmt: skip
            numbers = [n for n in below(product) if isinstance(n, ast.Constant) and isinstance(n.value, float)
                       and 0.8 <= n.value < 1]  # fmt: skip
            other = value.right if product is value.left else value.left
            averaged = isinstance(other, ast.BinOp) and isinstance(other.op, ast.Mult)
            return bool(factors or (numbers and not averaged)) and name not in names_in(other)
    return False


def _item(code: Syntax, loop: ast.For, value: ast.expr, carried: str) -> str | None:
    """The reward (or temporal difference) of the step that a loop over rewards is at."""
    targets = {n.id for n in below(loop.target) if isinstance(n, ast.Name)}
    for node in below(value):
        if isinstance(node, ast.Name) and node.id in targets and node.id != carried:
            source = written(loop.iter)
            if _REWARD.fullmatch(node.id) and re.search(r"rew|\brs?\b", source, re.IGNORECASE):
                return node.id
        if isinstance(node, ast.Subscript) and targets & names_in(node.slice):
            base = last_name(node.value)
            if _REWARD.fullmatch(base) or _DELTA.fullmatch(base):
                return written(node)
        if isinstance(node, ast.Name) and _DELTA.fullmatch(node.id):
            made = [v for s, v in code.bindings(node) if loop.lineno <= s.lineno <= (loop.end_lineno or 0)]
            if made and all(_indexed(value, targets) for value in made):
                return node.id
    return None


def _indexed(value: ast.expr, by: set[str]) -> bool:
    return any(isinstance(n, ast.Subscript) and by & names_in(n.slice) for n in below(value))


def _kept(code: Syntax, loop: ast.For, name: str) -> bool:
    """Whether the sum of every step is kept: appended, or written into a place."""
    for call in code.inside(loop, ast.Call):
        if last_name(call.func) == "append" and call.args and name in names_in(call.args[0]):
            return True
    stores = [a for a in code.inside(loop, ast.Assign) if isinstance(a.targets[0], ast.Subscript)]
    return any(name in names_in(a.value) for a in stores)


def _from_the_start(code: Syntax, over: ast.expr) -> bool:
    """Whether a loop certainly runs forwards: over the rewards themselves, or a range that counts up from 0."""
    if isinstance(over, ast.Call):
        name = last_name(over.func)
        if name == "range":
            return len(over.args) < 3
        if name in ("enumerate", "zip", "tqdm", "list", "tuple"):
            return all(_from_the_start(code, a) for a in over.args)
        return name in ("tolist", "numpy", "cpu", "unbind", "items")
    if isinstance(over, ast.Name):
        return not any(_TURNED.search(written(v)) for _, v in code.bindings(over))
    return isinstance(over, (ast.Attribute, ast.Subscript)) and not _TURNED.search(written(over))


def _text(code: Syntax, node: ast.AST) -> str:
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", None) or 1
    return "\n".join(code.file.lines[first - 1 : last])


def _finding(code: Syntax, node: ast.AST, said: str, kind: str) -> Finding:
    return RULE.finding(said, code.place(node), code.file.path, bearing=Bearing.CAUSE, measured={"kind": kind})
