"""Validation data is shuffled.

A metric over the whole validation set does not depend on the order, so this is a remark: but whatever looks at the
first batches only (logged images, early batches of a limited validation), at rows in order (predictions written to a
file beside the inputs) or at sequences gets another order in every epoch. Lightning warns of it as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.syntax import argument, last_name, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C222",
    name="shuffled-validation",
    title="Validation data is shuffled",
    severity=Severity.INFO,
    sees="A DataLoader for validation or test (by its name or the method that returns it) with shuffle=True.",
    matters="What is read off the first batches, or row by row, changes from epoch to epoch.",
    alike=("a random subset of a large validation set, drawn on purpose",),
    confirm=("print the first labels of two validations",),
)
_HELD = re.compile(r"(^|_)(val|valid|validation|dev|test|eval)(_|$|loader|dl|_dataloader)", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every loader that is bound to a name, or returned by a method."""
    for file in project.files:
        if "DataLoader" not in file.text or "shuffle" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("DataLoader"):
            shuffle, function = argument(call, 2, "shuffle"), code.function(call)
            up = code.parent(call)
            name = last_name(up.targets[0]) if isinstance(up, ast.Assign) else ""
            if isinstance(up, ast.Return) and function is not None:
                name = function.name
            on = isinstance(shuffle, ast.Constant) and shuffle.value is True
            if on and _HELD.search(name) and "train" not in name:
                yield RULE.finding(
                    f"{name} at {code.at(call)} is shuffled: its first batches are others in every epoch",
                    code.place(call),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "shuffled", "name": name},
                    patch=forms.keyword_given(file, call, "shuffle", "False", "keep the order"),
                )
