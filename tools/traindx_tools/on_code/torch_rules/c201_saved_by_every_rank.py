"""Every process writes the same checkpoint file.

In a distributed run `torch.save(..., path)` runs on each rank. Written to one path, the files overwrite each other and
a crash in between leaves half a file. One rank saves, or each rank has a file of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, syntax, written
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
_DEEP = 8
_SHARDED = re.compile(r"FullyShardedDataParallel|fully_shard|deepspeed|distributed\.checkpoint")


def check(project: Project) -> Iterator[Finding]:
    """Look at every save of a distributed script."""
    if not any("backward(" in f.text for f in project.files):
        return
    for file in project.files:
        if "torch.save" not in file.text or "init_process_group" not in file.text or file.mentions(_SHARDED):
            continue
        code = syntax(file)
        for call in code.calls("save"):
            path = argument(call, 1, "f")
            if code.qualified(call.func) != "torch.save" or path is None or _says_rank(code, path):
                continue
            if not _guarded(code, call):
                yield RULE.finding(
                    f"{file.segment(call)} at {code.at(call)} runs on every rank and writes one path: the processes "
                    "overwrite each other's file",
                    code.place(call),
                    file.path,
                    bearing=Bearing.SIGN,
                    measured={"kind": "save"},
                )


def _guarded(code: Syntax, call: ast.Call) -> bool:
    """Whether a condition on the rank stands around the call, before it, or around the calls of its function."""
    for up in code.above(call):
        if isinstance(up, (ast.If, ast.IfExp)) and _asks(code, up.test):
            return True
    function = code.function(call)
    if function is None:
        return False
    if any(_asks(code, n.test) for n in code.inside(function, ast.If)):
        return True
    callers = [c for c in code.calls(function.name) if written(c.func) in (function.name, f"self.{function.name}")]
    if not callers:
        return "backward(" not in written(function)  # who calls it is not seen here
    return all(any(isinstance(up, ast.If) and _asks(code, up.test) for up in code.above(c)) for c in callers)


def _asks(code: Syntax, test: ast.expr) -> bool:
    """Whether a condition asks for the rank, or may: `me == 0` of a parameter that anything may be passed for."""
    if _says_rank(code, test):
        return True
    if isinstance(test, ast.BoolOp):
        return any(_asks(code, part) for part in test.values)
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
    zero = not isinstance(test, ast.Compare) or any(isinstance(s, ast.Constant) and s.value in (0, 1) for s in sides)
    function = code.function(test)
    given = set(parameters(function)) if function is not None else set()
    inner = [s.operand if isinstance(s, ast.UnaryOp) else s for s in sides]
    return zero and any((isinstance(s, ast.Name) and s.id in given) or _handed_in(code, s) for s in inner)


def _handed_in(code: Syntax, node: ast.expr) -> bool:
    """Whether an attribute is what its object was made with: `self.device_id = device_id` in `__init__`."""
    bound = code.bindings(node) if isinstance(node, ast.Attribute) else []
    return bool(bound) and all(
        isinstance(value, ast.Name) and (function := code.function(statement)) is not None
        and value.id in parameters(function) for statement, value in bound)  # fmt: skip


def _says_rank(code: Syntax, node: ast.expr) -> bool:
    """Whether a rank stands in an expression, by its name or by what a name in it was made of."""
    return _RANK.search(written(node)) is not None or any(
        _is_rank(code, n, _DEEP) for n in below(node) if isinstance(n, (ast.Name, ast.Attribute)))  # fmt: skip


def _is_rank(code: Syntax, node: ast.expr, left: int) -> bool:
    """Whether a value is a rank or a question about it: `dist.get_rank()`, `not int(os.environ["RANK"])`."""
    if left <= 0:
        return False
    if isinstance(node, (ast.Name, ast.Attribute)):
        made = [v for _, v in code.bindings(node)]
        return _RANK.search(last_name(node)) is not None or any(_is_rank(code, v, left - 1) for v in made)
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        inside = name in ("int", "bool", "str", "get", "getenv")
        return _RANK.search(name) is not None or (inside and any(_is_rank(code, a, left - 1) for a in node.args[:1]))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _RANK.search(node.value) is not None
    if isinstance(node, ast.Subscript):
        return _is_rank(code, node.slice, left - 1)
    if isinstance(node, (ast.Compare, ast.UnaryOp, ast.BoolOp, ast.BinOp)):
        return any(_is_rank(code, c, left - 1) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
    return False
