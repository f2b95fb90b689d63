"""A method is named and not called.

`model.eval` without brackets is an expression without effect: the model stays in training mode, `optimizer.step` moves
nothing, `loss.backward` fills no gradient, `optimizer.zero_grad` clears none. Python says nothing, since the method
exists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import syntax

(RULE,) = pages("settings", ("C159",))
_EFFECT = {
    "eval": "the model stays in training mode",
    "train": "the model stays in eval mode",
    "step": "nothing is updated",
    "backward": "no gradient is computed",
    "zero_grad": "no gradient is cleared",
    "update": "the scale or the average is never updated",
    "cuda": "nothing is moved",
}
_BARE = re.compile(rf"^[^#\n()=]*\.({'|'.join(_EFFECT)})\s*(;|#|$)", re.MULTILINE)
"""A line that ends in one of the names."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every statement that is only an attribute."""
    for file in project.files:
        if "torch" not in file.text and "jax" not in file.text:
            continue
        code = syntax(file)
        named = [n for n in code.of(ast.Expr) if isinstance(n.value, ast.Attribute)]
        for node in named if named and file.mentions(_BARE) else ():
            name = node.value
            if not isinstance(name, ast.Attribute) or name.attr not in _EFFECT:
                continue
            yield RULE.finding(
                f"{ast.unparse(name)} at {code.at(node)} is named and not called (no brackets): {_EFFECT[name.attr]}",
                code.place(node),
                file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": name.attr},
            )
