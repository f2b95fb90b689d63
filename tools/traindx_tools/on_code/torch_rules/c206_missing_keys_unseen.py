"""load_state_dict(strict=False) and nobody looks at what was missing.

With `strict=False` keys that do not fit are skipped without a word: a prefix too many, and not a single weight is
loaded. The call returns the missing and the unexpected keys; somebody has to look at them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import argument, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C206",
    name="missing-keys-unseen",
    title="Keys that do not fit are skipped and nobody looks",
    severity=Severity.LOW,
    sees="load_state_dict(..., strict=False) as a statement of its own.",
    matters="Layers keep their random initialisation although a checkpoint was loaded.",
    alike=("a head that is left out on purpose",),
    confirm=("print(model.load_state_dict(state, strict=False))",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every statement that loads and drops the answer."""
    for file in project.files:
        if "strict=False" not in file.text.replace(" ", ""):
            continue
        code = syntax(file)
        for call in code.calls("load_state_dict"):
            strict = argument(call, 1, "strict")
            off = isinstance(strict, ast.Constant) and strict.value is False
            if off and isinstance(code.parent(call), ast.Expr):
                yield RULE.finding(
                    f"{file.segment(call)} at {code.at(call)} skips keys that do not fit and drops the list of them: "
                    "weights may stay at their initialisation unseen",
                    code.place(call),
                    file.path,
                    strength=Strength.CIRCUMSTANTIAL,
                    measured={"kind": "strict"},
                )
