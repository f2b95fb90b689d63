"""What reinforcement learning computes of policies: ratios of probabilities, discounted values of next states."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.values import Tensor, Thing, number
from traindx_tools.program.uses import Bootstrap, OwnRatio

_NEW_SAMPLES = frozenset({"sample", "rsample", "generate", "rollout", "collect"})


def own_ratios(project: Project) -> Iterator[OwnRatio]:
    """Every one that a loop without new samples repeats."""
    told: set[str] = set()
    for loop in project.training_loops:
        asked = {(p.event.file.path, p.event.line): p for p in loop.of("log_prob")}
        ratios = {p.event.args[0] if p.event.args else p.event.receiver: p.event for p in loop.of("exp")}
        for place in loop.places if ratios else ():
            event, ratio = place.event, ratios.get(place.event.result)
            if event.kind != "operation" or event.name != "-" or ratio is None or str(ratio.site) in told:
                continue
            new, old = event.args[:2]
            if not isinstance(new, Tensor) or not isinstance(old, Tensor) or new.grad is False or old.grad is not False:
                continue
            first, second = (asked.get((v.site.path, v.site.line)) if v.site else None for v in (new, old))
            around = next((b for b in reversed(place.loops) if _repeats(loop, b)), None)
            if around is not None and first is not None and second is not None and _same(first, second, place):
                told.add(str(ratio.site))
                yield OwnRatio(ratio.text, ratio.spot, str(old.site), around.line, number(around.count))


def _same(first: Place, second: Place, at: Place) -> bool:
    """Whether two distributions of one kind are asked for the same, in the turn of the loop in which they meet."""
    one, other = first.event.receiver, second.event.receiver
    kinds = [v.type if isinstance(v, Thing) else v for v in (one, other)]
    given = [[ast.unparse(a) for a in e.node.args] if isinstance(e.node, ast.Call) else []
             for e in (first.event, second.event)]
    return kinds[0] == kinds[1] and given[0] == given[1] and first.loops == second.loops == at.loops


def _repeats(loop: TrainingLoop, block: Block) -> bool:
    """Whether a loop over a range goes several times over samples that are made outside of it."""
    if not (isinstance(block.subject, Thing) and block.subject.type == "range") or _NEW_SAMPLES & block.methods:
        return False
    times = number(block.count)
    acts = any(p.event.args and block in p.path for p in loop.of("step"))
    return not acts and (times is None or times >= 2) and "step" in block.methods


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
                    yield Bootstrap(code.spot(node), written(node), written(factor), flag)
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
