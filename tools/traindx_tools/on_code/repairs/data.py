"""What is fed to the model (C121, C129, C152, C192, C199, C217)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import argument, last_name, syntax, written


def shuffled(file: SourceFile, loader: ast.AST) -> tuple[Patch, ...]:
    """shuffle=True for a loader over rows in order."""
    if not isinstance(loader, ast.Call):
        return ()
    given = argument(loader, 2, "shuffle")
    change = Change(file, "shuffle the training data")
    if given is not None:
        return change.replace(given, "True").patches()
    return change.pass_argument(loader, "shuffle", "True").patches()


_KEPT: list[ast.Name] = []


def filled(file: SourceFile, scaling: ast.expr) -> tuple[Patch, ...]:
    """What is missing set to the mean, which is 0 after the scaling."""
    text = written(scaling)
    code = syntax(file)
    uses_torch = any(
        code.qualified(c.func).startswith("torch.") and "nan" in last_name(c.func) for c in code.of(ast.Call)
    )
    library = "torch" if uses_torch else next((k for k, v in code.aliases.items() if v == "numpy"), "")
    if not library or "nan_to_num" in text:
        return ()
    return Change(file, "set what is missing to the mean, 0 after scaling").wrap(
        scaling, f"{library}.nan_to_num(", ")").patches()  # fmt: skip
