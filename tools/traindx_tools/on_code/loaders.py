"""Data loaders as they are written."""

from __future__ import annotations

import ast
import re

from traindx_tools.on_code.project import Project
from traindx_tools.on_code.splits import named
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax

_ENDS = re.compile(r"(_?(data)?_?(loaders?|dl|iter(ator)?|batches|dataset|ds|set|gen(erator)?))+$", re.IGNORECASE)


def has_workers(project: Project) -> bool:
    """Whether any loader of the project is made with worker processes."""
    for file in project.files:
        if "num_workers" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("DataLoader"):
            workers = argument(call, 99, "num_workers")
            if workers is not None and (code.number(workers) or 0) > 0:
                return True
    return False


def loader_part(name: str) -> str | None:
    """What the name of a loader says: HELD of `val_loader`, `testloader`, `valDL`; None where nothing does."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    spaced = re.sub(r"^(self\.)?_*(data)?_?(loader|dl)s?_", "", spaced)
    rest = _ENDS.sub("", spaced)
    return named(rest) if rest else None


def made_for(code: Syntax, call: ast.Call) -> tuple[str, str | None]:
    """The name that a call's result is bound to, returned as or filed under, and the part that it says."""
    node: ast.AST = call
    up = code.parent(call)
    while isinstance(up, ast.IfExp):
        node, up = up, code.parent(up)
    name = ""
    if isinstance(up, ast.Assign):
        target = up.targets[0]
        index = target.slice if isinstance(target, ast.Subscript) else None
        name = str(index.value) if isinstance(index, ast.Constant) else last_name(target)
    elif isinstance(up, ast.AnnAssign):
        name = last_name(up.target)
    elif isinstance(up, ast.Tuple):
        statement = code.parent(up)
        several = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(several, ast.Tuple) and len(several.elts) == len(up.elts):
            name = next((last_name(t) for t, v in zip(several.elts, up.elts, strict=True) if v is node), "")
    elif isinstance(up, ast.Dict):
        name = next((str(k.value) for k, v in zip(up.keys, up.values, strict=True)
                     if v is node and isinstance(k, ast.Constant)), "")  # fmt: skip
    elif isinstance(up, ast.Return):
        body = code.function(call)
        name = body.name if body is not None else ""
    return name, loader_part(re.sub(r"^(get|make|build|create|load)_", "", name)) if name else None
