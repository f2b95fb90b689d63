"""Returns run on over the end of an episode.

A discounted return R = r + gamma * R has to start anew where an episode ended. A loop over collected rewards that never
looks at the end flags which were collected with them adds the next episode's rewards to this one's. The same for a
target r + gamma * V(next) without the factor (1 - done).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.bootstrapping import DISCOUNT, REWARD, discounted, rewarded
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C184",
    name="returns-not-cut",
    title="Returns run on over the end of an episode",
    severity=Severity.HIGH,
    sees="A backward sum r + gamma * R, or a target r + gamma * V, that ignores the end flags its function was given.",
    matters="Values and advantages of the last steps of an episode contain rewards of the next one.",
    alike=("a task without ends", "episodes that are processed one at a time"),
    confirm=("returns of [1, 1, 1] with done = [0, 1, 0] and gamma 1 have to be [2, 1, 1]",),
)
_END = re.compile(r"(next_|batch_|b_)?(dones?|terminals?|terminated|finished|end_of_episode|not_dones?|nonterminals?"
                  r"|ended|d)(_batch|_b|_t|_flags?)?", re.I)  # fmt: skip
_SPARED = re.compile(r"mask|non_?final|not_?done|continu|non_?terminal|bootstrap|alive|ended|truncat|final|discounts?\b"
                     r"|is_last|last", re.I)  # fmt: skip
_FIELD = re.compile(r"""['"](done|terminal|terminated)s?['"]|^\s+(done|terminal|terminated)s?\s*:""", re.M)
_KEPT = re.compile(r"(append|push|add|store|put|remember|insert|save)\([^\n]*\b(dones?|terminals?|terminated)\b")
_WEIGHT = re.compile(r"\.[89]\d*\s*\*")
_DISCARDED = re.compile(r"_\w*")


def check(project: Project) -> Iterator[Finding]:
    """Look at every discounted sum in a function that is given end flags."""
    for file in project.files:
        text = file.text
        if "gamma" not in text.lower() and "discount" not in text and not _WEIGHT.search(text):
            continue
        code = syntax(file)
        own: dict[int, list[ast.Assign]] = {}
        for assign in code.of(ast.Assign):
            own.setdefault(id(code.scope(assign)), []).append(assign)
        bodies: list[ast.FunctionDef | ast.Module] = [*code.of(ast.FunctionDef), file.tree]
        for body in bodies:
            target = next((a for a in own.get(id(body), ()) if _discounted(a.value) and rewarded(a.value)), None)
            if target is None:
                continue
            ends = _given(code, body, own[id(body)])
            if ends and not ends & _read(body):
                yield _finding(code, target, f"{sorted(ends)[0]}, which it has", Bearing.CAUSE)
                continue
            left = _left_behind(project, body)
            if left:
                yield _finding(code, target, left, Bearing.SIGN)


def _given(code: Syntax, body: ast.FunctionDef | ast.Module, own: list[ast.Assign]) -> set[str]:
    """Names of end flags that are parameters, unpacked beside rewards or made of a batch, but not by a step."""
    names = set(parameters(body)) if isinstance(body, ast.FunctionDef) else set()
    stepped: set[str] = set()
    for node in own:
        bound = {n.id for t in node.targets for n in below(t) if isinstance(n, ast.Name)}
        by_step = any(isinstance(n, ast.Call) and last_name(n.func) in ("step", "act") for n in below(node.value))
        stepped |= bound if by_step or isinstance(node.value, ast.Constant) else set()
        names |= bound
    for loop in code.of(ast.For):
        if code.scope(loop) is body:
            names |= {n.id for n in below(loop.target) if isinstance(n, ast.Name)}
    if not any(REWARD.fullmatch(n) for n in names):
        return set()
    lower = {n.lower() for n in names}
    beside = {n for a in own for t in a.targets if isinstance(t, ast.Tuple) and len(t.elts) > 3
              for n in _flag_in(t)}  # fmt: skip
    ends = {n for n in names if _END.fullmatch(n) and (n.lower() != "d" or {"s", "a", "r"} <= lower or n in beside)}
    return (ends - stepped) or ends


def _flag_in(unpacked: ast.Tuple) -> set[str]:
    """`d` beside a reward in a transition: `obs, act, rew, nxt, d = ...`."""
    names = {n.id for n in unpacked.elts if isinstance(n, ast.Name)}
    return {n for n in names if n.lower() == "d"} if any(REWARD.fullmatch(n) for n in names) else set()


def _read(body: ast.AST) -> set[str]:
    return {n.id for n in below(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _left_behind(project: Project, body: ast.FunctionDef | ast.Module) -> str:
    """Where a batch's flag is dropped: `s, a, r, s2, _ = ...`, a field `done` beside `batch.reward`; "" else."""
    if isinstance(body, ast.Module) or not any(DISCOUNT.search(n) for n in _words(body)):
        return ""
    words = _words(body)
    if any(_SPARED.search(w) or (_END.fullmatch(w) and w.lower() != "d") for w in words):
        return ""
    kept = any(f.mentions(_KEPT) for f in project.files)
    for node in below(body):
        if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Store) and len(node.elts) > 3:
            named = [n.id for n in node.elts if isinstance(n, ast.Name)]
            if kept and any(REWARD.fullmatch(n) for n in named) and any(_DISCARDED.fullmatch(n) for n in named):
                return "the flag that is stored with each transition and thrown away here"
    base = next((written(n.value) for n in below(body) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)
                 and REWARD.fullmatch(n.attr) and len(n.attr) > 2 and written(n.value) != "self"), "")  # fmt: skip
    base = base or next((written(n.value) for n in below(body) if isinstance(n, ast.Subscript) and isinstance(
        n.slice, ast.Constant) and isinstance(n.slice.value, str) and REWARD.fullmatch(n.slice.value)), "")  # fmt: skip
    if base and kept and any(f.mentions(_FIELD) for f in project.files):
        return f"the field for it that {base} has"
    return ""


def _words(body: ast.AST) -> set[str]:
    """Names, attributes and texts of a function."""
    found: set[str] = set()
    for node in below(body):
        if isinstance(node, (ast.Name, ast.Attribute)):
            found.add(last_name(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def _discounted(node: ast.expr) -> bool:
    """A reward plus a discount, by name or as a number a little below 1, times something."""
    if discounted(node):
        return any(DISCOUNT.fullmatch(last_name(n)) for n in below(node))
    numbers = [n for n in below(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) and isinstance(
        n.left, ast.Constant) and isinstance(n.left.value, float) and 0.8 <= n.left.value < 1]  # fmt: skip
    called = any(isinstance(n, ast.Call) and last_name(n.func) in ("max", "gather", "amax") for n in below(node))
    return called and bool(numbers) and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _finding(code: Syntax, node: ast.Assign, end: str, bearing: Bearing) -> Finding:
    target = node.targets[0]
    again = isinstance(target, ast.Name) and target.id in names_in(node.value) and bool(code.loops(node))
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} "
        + ("adds up rewards backwards" if again else "bootstraps from the next state")
        + f" and never looks at {end}: values run on over the end of an episode",
        code.place(node),
        code.file.path,
        bearing=bearing,
        measured={"kind": "return" if again else "target", "flag": end.partition(",")[0]},
    )
