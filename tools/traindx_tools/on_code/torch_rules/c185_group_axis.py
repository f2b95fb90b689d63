"""Rewards are compared over the wrong axis.

Group-relative advantages compare the rollouts of one prompt. `rewards.view(-1, group_size)` has one prompt in each row;
mean and standard deviation run over the columns, `dim=1`. Over `dim=0` the k-th rollouts of different prompts are
compared: a prompt that is easy gets positive advantages for everything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C185",
    name="group-axis",
    title="Rewards are compared over the wrong axis",
    severity=Severity.HIGH,
    sees="mean or std over axis 0 of rewards in rows of one group each (view(-1, group_size)).",
    matters="Advantages compare different prompts: easy prompts are rewarded whatever the answer.",
    alike=("a layout with one prompt in each column, which view(group_size, -1) makes",),
    confirm=("advantages of a group have to sum to 0: print(advantages.view(-1, k).sum(1))",),
)
_REWARDS = re.compile(r"reward|score|\bret(urn)?s?\b|\brew", re.IGNORECASE)
_GROUP = re.compile(
    r"group|num_gen|n_gen|num_samples|n_samples|num_return|rollouts?|\bk\b|\bG\b|per_prompt", re.IGNORECASE
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every mean and std over axis 0."""
    for file in project.files:
        if "view(" not in file.text and "reshape(" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("mean", "std", "var"):
            own = isinstance(call.func, ast.Attribute) and not code.qualified(call.func)
            x = call.func.value if own and isinstance(call.func, ast.Attribute) else argument(call, 0, "input", "a")
            axis = argument(call, 0 if own else 1, "dim", "axis")
            if x is None or axis is None or code.number(axis) != 0:
                continue
            group = _grouped(code, x)
            if group is not None:
                patch = patching.replace_text(file, axis, "1", "over the rollouts of one prompt")
                patches: tuple[Patch, ...] = () if patch is None else (patch,)
                yield RULE.finding(
                    f"{file.segment(call)} at {code.at(call)} runs over axis 0 of rewards that hold one group in each "
                    f"row (view(-1, {group})): it compares rollouts of different prompts",
                    code.place(call),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "axis", "group": group},
                    patch=patches,
                )


def _grouped(code: Syntax, node: ast.expr) -> str | None:
    """The group size of `rewards.view(-1, size)`."""
    made = code.origin(node)
    if not (isinstance(made, ast.Call) and last_name(made.func) in ("view", "reshape")):
        return None
    own = isinstance(made.func, ast.Attribute) and not code.qualified(made.func)
    what = made.func.value if own and isinstance(made.func, ast.Attribute) else made.args[0] if made.args else None
    sizes = made.args if own else made.args[1:]
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    if what is None or len(sizes) != 2 or code.number(sizes[0]) != -1:
        return None
    group = written(sizes[1])
    return group if _REWARDS.search(written(what) + " " + written(node)) and _GROUP.search(group) else None
