"""Scaled values are cut to integers.

`image // 255` is 0 for every pixel but the white ones, and `(image / 255).astype(np.uint8)` or `.long()` cuts 0.7 to 0:
the network sees black images. The division has to stay a floating one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C209",
    name="scaling-truncated",
    title="Scaled values are cut to integers",
    severity=Severity.HIGH,
    sees="A floor division by 255, or a cast to an integer type right after a division by it.",
    matters="Inputs are 0 nearly everywhere: the model can learn the class frequencies only.",
    alike=("a division of sizes or indices", "a product with 255 before the cast, which goes back to pixels"),
    confirm=("print(x.unique())",),
)
_WHOLE = (255, 255.0, 256, 65535)
_CASTS = frozenset({"long", "int", "byte", "short", "uint8"})
_ARRAYS = frozenset({"x", "xs", "img", "image", "images", "imgs", "frame", "frames", "pixels", "obs", "x_train",
                     "x_test", "data", "batch", "inputs", "rgb", "gray"})  # fmt: skip
_INTEGER = ("uint8", "int8", "int16", "int32", "int64", "long", "int")


def check(project: Project) -> Iterator[Finding]:
    """Look at every division by the largest pixel value."""
    for file in project.files:
        if "255" not in file.text and "256" not in file.text and "65535" not in file.text:
            continue
        code = syntax(file)
        for node in code.of(ast.BinOp):
            whole = isinstance(node.right, ast.Constant) and node.right.value in _WHOLE
            if whole and isinstance(node.op, ast.FloorDiv) and _is_image(node.left) and node.right.value == 255:  # type: ignore[attr-defined]
                yield _finding(
                    code, node, "is a floor division: 0 for every value below 255", "floor", _patch(code, node)
                )
            elif whole and isinstance(node.op, ast.Div) and (cast := _cast(code, node)) is not None:
                yield _finding(code, cast, "casts values in [0, 1] to integers: nearly all become 0", "cast", ())


def _is_image(node: ast.expr) -> bool:
    """Whether the numerator is an array, by its name, and no count."""
    name = last_name(node.value if isinstance(node, ast.Subscript) else node).lower()
    return name in _ARRAYS


def _cast(code: Syntax, node: ast.BinOp) -> ast.Call | None:
    """The cast to an integer type that is applied to the quotient."""
    up = code.parent(node)
    if not isinstance(up, ast.Attribute):
        return None
    call = code.parent(up)
    if not isinstance(call, ast.Call) or call.func is not up:
        return None
    if up.attr in _CASTS and not call.args:
        return call
    if up.attr in ("astype", "to", "type") and call.args:
        return call if written(call.args[0]).rpartition(".")[2].strip("'\"") in _INTEGER else None
    return None


def _patch(code: Syntax, node: ast.BinOp) -> tuple[Patch, ...]:
    made = patching.replace_text(
        code.file, node, f"{written(node.left)} / {written(node.right)}", "a floating division"
    )
    return (made,) if made is not None else ()


def _finding(code: Syntax, node: ast.AST, why: str, kind: str, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=patch,
    )
