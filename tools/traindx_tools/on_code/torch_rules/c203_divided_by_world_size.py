"""The loss is divided by the number of processes once more.

DistributedDataParallel averages gradients over the processes. A loss divided by the world size before `backward` makes
them smaller by that factor once more: SGD's steps shrink, a clip never bites, and the run depends on the number of
GPUs. (Dividing a reduced copy for the log is right.)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C203",
    name="divided-by-world-size",
    title="The loss is divided by the number of processes once more",
    severity=Severity.MEDIUM,
    sees="loss / world_size that is sent backward in a script with DistributedDataParallel.",
    matters="Gradients are too small by the number of processes; SGD learns that much more slowly.",
    alike=("a loss that is a sum over a gathered batch", "a division of the logged value"),
    confirm=("compare the gradient norm on 1 and on 4 processes",),
)
_SIZE = re.compile(r"world_?size|get_world_size\(|num_processes|n_?gpus?\b", re.IGNORECASE)
_GATHERED = ("all_gather", "GatherLayer", "all_reduce(loss", "no_sync", "SUM")


def check(project: Project) -> Iterator[Finding]:
    """Look at every division by the world size."""
    for file in project.files:
        if "DistributedDataParallel" not in file.text or any(g in file.text for g in _GATHERED):
            continue
        code = syntax(file)
        divisions: list[ast.BinOp | ast.AugAssign] = [*code.of(ast.BinOp), *code.of(ast.AugAssign)]
        for node in divisions:
            if not isinstance(node.op, ast.Div):
                continue
            by = node.right if isinstance(node, ast.BinOp) else node.value
            if _SIZE.search(written(by)) and _sent_backward(code, node):
                yield RULE.finding(
                    f"{file.segment(node)} at {code.at(node)} divides the loss by the number of processes; "
                    "DistributedDataParallel averages the gradients over them already",
                    code.place(node),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "world size"},
                    patch=graph.undivided(file, node),
                )


def _sent_backward(code: Syntax, node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether the quotient is what backward is called on."""
    if isinstance(node, ast.BinOp):
        up = code.parent(node)
        if isinstance(up, ast.Attribute) and up.attr == "backward":
            return True
        statement = code.statement(node)
        target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is node else None
    else:
        target = node.target
    if not isinstance(target, ast.Name) or "loss" not in target.id.lower():
        return False
    for call in code.calls("backward"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        scaled = (
            owner.args[0] if isinstance(owner, ast.Call) and last_name(owner.func) == "scale" and owner.args else owner
        )
        same = isinstance(scaled, ast.Name) and scaled.id == target.id
        if same and code.scope(call) is code.scope(node) and call.lineno > node.lineno:
            return True
    return False
