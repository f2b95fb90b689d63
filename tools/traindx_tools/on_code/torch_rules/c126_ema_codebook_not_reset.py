"""A codebook kept by moving averages is written without its averages.

In a vector quantizer with exponential moving averages the codes are recomputed from a running sum and a running count
in every step. Code that revives dead codes by writing the codebook alone is undone by the next recomputation: sum and
count of the revived code have to be written with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.definitions import ClassInfo
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import codes
from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Event
from traindx_tools.rules import Rule

RULE = Rule(
    id="C126",
    name="ema-codebook-not-reset",
    title="Revived codes are overwritten by their moving averages",
    severity=Severity.HIGH,
    sees="A class that recomputes one buffer from another one's average, and writes entries of the first alone.",
    matters="Dead codes come back dead in the same step: the codebook stays collapsed.",
    alike=("a commitment weight that is too large", "an encoder that has collapsed"),
    confirm=("compare the revived codes before and after the next forward pass",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at classes with buffers."""
    for klass in project.classes:
        info = klass.info
        if not info.is_module or "register_buffer" not in info.file.text:
            continue
        for book, average in _recomputed(info).items():
            if not _is_average(info, average):
                continue
            for node, method in _entry_writes(info, book):
                if not any(True for _ in _entry_writes(info, average, method)):
                    yield _finding(info, node, method, book, average)


def _methods(info: ClassInfo) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in info.node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _own(node: ast.AST) -> str | None:
    """The name in `self.name`, through `.data` and `.weight`."""
    while isinstance(node, ast.Attribute) and node.attr in ("data", "weight"):
        node = node.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def _recomputed(info: ClassInfo) -> dict[str, str]:
    """Buffers that are set from a quotient with another buffer above the line: {codebook: average}."""
    found: dict[str, str] = {}
    for method in _methods(info):
        local = {
            t.id: n.value
            for n in below(method)
            if isinstance(n, ast.Assign)
            for t in n.targets
            if isinstance(t, ast.Name)
        }
        for node in below(method):
            target, value = _whole_write(node)
            value = local.get(value.id) if isinstance(value, ast.Name) else value
            if target is None or value is None:
                continue
            for inner in below(value):
                if (
                    isinstance(inner, ast.BinOp)
                    and isinstance(inner.op, ast.Div)
                    and (over := _own(inner.left))
                    and over != target
                ):
                    found[target] = over
    return found


def _whole_write(node: ast.AST) -> tuple[str | None, ast.expr | None]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy_" and node.args:
        return _own(node.func.value), node.args[0]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        return _own(node.targets[0]), node.value
    return None, None


def _is_average(info: ClassInfo, name: str) -> bool:
    """Whether a buffer is updated as a moving average: multiplied in place, lerped, or set from itself."""
    for method in _methods(info):
        for node in below(method):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("mul_", "lerp_")
                and (_own(node.func.value) == name)
            ):
                return True
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if _own(target) == name and (
                    isinstance(node, ast.AugAssign) or any(_own(n) == name for n in below(node.value))
                ):
                    return True
    return False


def _entry_writes(info: ClassInfo, name: str, only: ast.AST | None = None) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Assignments to entries of a buffer: `self.name[index] = ...`."""
    for method in _methods(info):
        if only is not None and method is not only:
            continue
        for node in below(method):
            target = node.targets[0] if isinstance(node, ast.Assign) else _changed_in_place(node)
            entry = isinstance(target, ast.Subscript) and _own(target.value) == name
            if entry or (
                target is not None
                and not isinstance(node, ast.Assign)
                and _own(target) == name
                and (only is not None or not _is_copy(node))
            ):
                yield node, method


def _changed_in_place(node: ast.AST) -> ast.expr | None:
    """What a method such as `index_copy_` writes into."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _IN_PLACE:
        return node.func.value
    return None


def _is_copy(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy_"


_IN_PLACE = frozenset({"index_copy_", "masked_scatter_", "index_put_", "copy_", "scatter_"})


def _finding(info: ClassInfo, node: ast.AST, method: ast.AST, book: str, average: str) -> Finding:
    event = Event("store", "item", "item", node, info.file, None)
    name = getattr(method, "name", "?")
    return RULE.finding(
        f"{info.name}.{name} writes entries of self.{book} at {info.file.path}:{event.line} without "
        f"self.{average}, from which "
        f"self.{book} is recomputed: what it writes is overwritten by the old average",
        location(event),
        info.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "codebook", "codebook": book, "average": average, "method": name},
        patch=codes.averages_too(info.file, node, average, _counts(info, book, average)),
    )


def _counts(info: ClassInfo, book: str, average: str) -> tuple[str, ...]:
    """The other buffers that are moving averages: how many inputs each code got."""
    buffers = [
        str(n.args[0].value)
        for n in below(info.node)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "register_buffer"
        and n.args
        and isinstance(n.args[0], ast.Constant)
    ]
    return tuple(b for b in buffers if b not in (book, average) and _is_average(info, b))
