"""Every process writes the same checkpoint file.

In a distributed run `torch.save(..., path)` runs on each rank. Written to one path, the files overwrite each other and
a crash in between leaves half a file. One rank saves, or each rank has a file of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C201",
    name="saved-by-every-rank",
    title="Every process writes the same checkpoint file",
    severity=Severity.MEDIUM,
    sees="torch.save in a distributed script without a condition on the rank around it or a rank in its path.",
    matters="Corrupt checkpoints now and then, and traffic of all ranks on one file.",
    alike=("sharded checkpoints, which every rank has to write",),
    confirm=("count the writes: strace, or a print beside the save",),
)
_RANK = re.compile(r"rank|is_main|master|primary|global_zero|is_leader|process_index|chief", re.IGNORECASE)
_SHARDED = re.compile(r"FullyShardedDataParallel|fully_shard|deepspeed|distributed\.checkpoint")


def check(project: Project) -> Iterator[Finding]:
    """Look at every save of a distributed script."""
    for file in project.files:
        if "torch.save" not in file.text or "init_process_group" not in file.text or file.mentions(_SHARDED):
            continue
        code = syntax(file)
        for call in code.calls("save"):
            path = argument(call, 1, "f")
            if code.qualified(call.func) != "torch.save" or path is None or _RANK.search(written(path)):
                continue
            if not _guarded(code, call):
                yield RULE.finding(
                    f"{file.segment(call)} at {code.at(call)} runs on every rank and writes one path: the processes "
                    "overwrite each other's file",
                    code.place(call),
                    file.path,
                    strength=Strength.CIRCUMSTANTIAL,
                    measured={"kind": "save"},
                )


def _guarded(code: Syntax, call: ast.Call) -> bool:
    """Whether a condition on the rank stands around the call, before it, or around the calls of its function."""
    for up in code.above(call):
        if isinstance(up, (ast.If, ast.IfExp)) and _RANK.search(written(up.test)):
            return True
    function = code.function(call)
    if function is None:
        return False
    if any(isinstance(n, ast.If) and _RANK.search(written(n.test)) for n in ast.walk(function)):
        return True
    callers = [c for c in code.calls(function.name) if written(c.func) in (function.name, f"self.{function.name}")]
    if not callers:
        return "backward(" not in written(function)  # who calls it is not seen here
    return all(any(isinstance(up, ast.If) and _RANK.search(written(up.test)) for up in code.above(c)) for c in callers)
