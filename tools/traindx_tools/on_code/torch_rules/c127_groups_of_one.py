"""Group ids are given after the batch was repeated.

Group-relative policy gradients (GRPO, RLOO) compare the rollouts of one prompt with each other: the rollouts of a
prompt must share an id. An id for each row that is given after `repeat` makes every rollout a group of its own:
reward minus mean is 0, every advantage is exactly 0, and nothing is learned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.definitions import own_nodes
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event

(RULE,) = pages("recipes", ("C127",))
_REPEATS = frozenset({"repeat", "repeat_interleave", "tile", "repeat_batch", "repeat_kv"})
_UNIQUE = frozenset({"uuid4", "uuid1", "token_hex"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that repeats a batch."""
    for file in project.files:
        if ("repeat" not in file.text and "tile" not in file.text) or not syntax(file).calls(*_REPEATS):
            continue
        bodies = [n.body for n in below(file.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        for body in [*bodies, file.tree.body]:
            yield from _in_body(file, body)


def _in_body(file: SourceFile, body: list[ast.stmt]) -> Iterator[Finding]:
    repeated: dict[str, int] = {}
    for node in sorted((n for n in own_nodes(body) if isinstance(n, ast.Assign)), key=lambda n: n.lineno):
        target = node.targets[0]
        if isinstance(target, ast.Name) and _repeats(node.value):
            repeated[target.id] = node.lineno
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            owner = _root(target.value)
            if owner in repeated and _one_for_each_row(node.value, owner):
                yield _finding(file, node, owner, repeated[owner])


def _repeats(value: ast.expr) -> bool:
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _REPEATS
        for n in below(value)
    )


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _one_for_each_row(value: ast.expr, owner: str) -> bool:
    """A comprehension over the rows with different items: an id made from the row's number, or a random one."""
    for node in below(value):
        if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) != 1:
            continue
        generator = node.generators[0]
        over_rows = any(isinstance(n, ast.Name) and n.id == owner for n in below(generator.iter))
        target = generator.target
        index = (
            target.elts[0] if isinstance(target, ast.Tuple) and "enumerate" in ast.unparse(generator.iter) else target
        )
        if over_rows and (_made_of(node.elt, index, generator.iter) or _random(node.elt)):
            return True
    return False


def _made_of(element: ast.expr, index: ast.expr, iterable: ast.expr) -> bool:
    counts = isinstance(iterable, ast.Call) and ast.unparse(iterable.func) in ("range", "enumerate")
    if not counts or not isinstance(index, ast.Name):
        return False
    if any(isinstance(n, ast.BinOp) and isinstance(n.op, (ast.FloorDiv, ast.Mod)) for n in below(element)):
        return False  # i // rollouts is the right way to do it afterwards
    plain = isinstance(element, (ast.JoinedStr, ast.Name)) or (
        isinstance(element, ast.Call) and ast.unparse(element.func) in ("str", "hash")
    )
    return plain and any(isinstance(n, ast.Name) and n.id == index.id for n in below(element))


def _random(element: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and ast.unparse(n.func).rpartition(".")[2] in _UNIQUE for n in below(element))


def _finding(file: SourceFile, node: ast.Assign, owner: str, line: int) -> Finding:
    event = Event("store", "item", "item", node, file, None)
    return RULE.finding(
        f"{file.segment(node)} at {file.path}:{node.lineno} gives every row its own id after {owner} was "
        f"repeated at line {line}: "
        "each rollout is a group of one, and its advantage within the group is 0",
        location(event),
        file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "groups", "repeat_line": line},
    )
