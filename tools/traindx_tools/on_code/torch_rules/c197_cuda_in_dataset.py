"""A data set moves samples to the GPU in a worker process.

Workers are forked; CUDA cannot be used in a forked process ("Cannot re-initialize CUDA in forked subprocess"). Samples
stay on the CPU, and the training loop moves the batch (with pin_memory and non_blocking, at no cost).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.loaders import has_workers
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C197",
    name="cuda-in-dataset",
    title="A data set moves samples to the GPU in a worker process",
    severity=Severity.HIGH,
    sees=".cuda() or .to('cuda') in __getitem__ or a collate function, and a loader with workers.",
    matters="The workers die with a CUDA initialisation error, or each of them holds its own CUDA context.",
    alike=("num_workers=0, where it works and is slow",),
    confirm=("run with num_workers=0: the error is gone",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every place that runs in a worker."""
    if not has_workers(project):
        return
    for file in project.files:
        if "cuda" not in file.text:
            continue
        code = syntax(file)
        collates = {last_name(k.value) for k in code.of(ast.keyword) if k.arg == "collate_fn"}
        for function in code.of(ast.FunctionDef):
            if function.name != "__getitem__" and function.name not in collates:
                continue
            for call in (n for n in below(function) if isinstance(n, ast.Call)):
                if _moves(code, call):
                    yield RULE.finding(
                        f"{file.segment(call)} at {code.at(call)} uses CUDA in {function.name}, which runs in a forked "
                        "worker process",
                        code.place(call),
                        file.path,
                        bearing=Bearing.CAUSE,
                        measured={"kind": "cuda"},
                    )
                    break


def _moves(code: Syntax, call: ast.Call) -> bool:
    if last_name(call.func) == "cuda" and isinstance(call.func, ast.Attribute) and not code.qualified(call.func):
        return True
    if last_name(call.func) != "to" or not call.args:
        return False
    device = code.origin(call.args[0])
    return isinstance(device, ast.Constant) and str(device.value).startswith("cuda")
