"""Returns run on over the end of an episode.

A discounted return R = r + gamma * R has to start anew where an episode ended. A loop over collected rewards that never
looks at the end flags which were collected with them adds the next episode's rewards to this one's. The same for a
target r + gamma * V(next) without the factor (1 - done).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.bootstrapping import DISCOUNT, REWARD, discounted, rewarded
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, parameters, syntax
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
_END = re.compile(r"(next_)?(dones?|terminals?|terminated|finished|end_of_episode|not_dones?|nonterminals?|d)", re.I)


def check(project: Project) -> Iterator[Finding]:
    """Look at every discounted sum in a function that is given end flags."""
    for file in project.files:
        if "gamma" not in file.text.lower() and "discount" not in file.text:
            continue
        code = syntax(file)
        for function in code.of(ast.FunctionDef):
            ends = _given(code, function)
            if ends and not ends & _read(function):
                yield from _sums(code, function, sorted(ends)[0])


def _given(code: Syntax, function: ast.FunctionDef) -> set[str]:
    """Names of end flags that are parameters of the function or unpacked in it, beside rewards."""
    names = set(parameters(function))
    for node in below(function):
        if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Store):
            names |= {n.id for n in node.elts if isinstance(n, ast.Name)}
    if not any(REWARD.fullmatch(n) for n in names):
        return set()
    return {n for n in names if _END.fullmatch(n) and (n != "d" or {"s", "a", "r"} <= names)}


def _read(function: ast.AST) -> set[str]:
    return {n.id for n in below(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _sums(code: Syntax, function: ast.AST, end: str) -> Iterator[Finding]:
    for node in below(function):
        if not isinstance(node, ast.Assign) or not discounted(node.value):
            continue
        target = node.targets[0]
        again = isinstance(target, ast.Name) and target.id in names_in(node.value) and bool(code.loops(node))
        if not rewarded(node.value) or not any(DISCOUNT.fullmatch(last_name(n)) for n in below(node.value)):
            continue
        yield RULE.finding(
            f"{code.file.segment(node)} at {code.at(node)} "
            + ("adds up rewards backwards" if again else "bootstraps from the next state")
            + f" and never looks at {end}, which the function is given: values run on over the end of an episode",
            code.place(node),
            code.file.path,
            strength=Strength.DIRECT,
            measured={"kind": "return" if again else "target", "flag": end},
        )
        return
