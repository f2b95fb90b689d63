"""One of an image and its mask is flipped, rotated or cropped, and the other is not.

A geometric transform moves what is seen; a mask, box, depth or flow has to move with it. Where one branch of a joint
augmentation changes only one of the two, a share of the training samples has labels that lie on other pixels: the loss
keeps a high floor, and predictions blur along the axis of the transform.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written

(RULE,) = pages("data", ("C232",))
_LABEL = re.compile(
    r"mask|label|target|seg|annot|depth|flow|heatmap|(^|_)gt|lbl|box|contour|truth|(^|_)y($|_)|keypoint", re.IGNORECASE
)
_TASK = re.compile(r"segment|\biou\b|\bdice|mask|depth|heat_?map|pixel|landmark|keypoint|box(es)?\b", re.IGNORECASE)
"""A label by another name may be a class, which no flip moves: the file has to speak of places in the image."""
PLANE = re.compile(r"mask|seg|depth|flow|heatmap|box|contour|keypoint|annot", re.IGNORECASE)
"""Names of labels that have places, which move with the image."""
GEOMETRIC = {
    "flip": "flip", "fliplr": "flip", "flipud": "flip", "hflip": "flip", "vflip": "flip", "rot90": "rotation",
    "rotate": "rotation", "roll": "roll", "affine": "affine", "warp_affine": "affine", "warpAffine": "affine",
    "transpose": "transposition", "swapaxes": "transposition", "crop": "crop", "center_crop": "crop",
    "resized_crop": "crop", "elastic_transform": "elastic", "perspective": "perspective", "grid_sample": "warp",
}  # fmt: skip
"""Functions that move what is seen, and in which way."""
_ACROSS = frozenset({"transposition"})
"""Also what puts axes in order, once and for one array alone: counts only under a condition."""


@dataclass(frozen=True)
class _Move:
    """One geometric transform of one array in one block."""

    name: str
    kind: str
    statement: ast.stmt
    block: ast.AST
    call: ast.expr


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that moves a label-like array or an array beside one."""
    for file in project.files:
        if not any(k in file.text for k in GEOMETRIC) and "::-1" not in file.text:
            continue
        code = syntax(file)
        moves: dict[int, list[_Move]] = {}
        for node in code.of(ast.Assign):
            for move in _moves(code, node):
                moves.setdefault(id(code.scope(node)), []).append(move)
        for function in code.of(ast.FunctionDef):
            yield from _judged(code, function, moves.get(id(function), []))


def _judged(code: Syntax, function: ast.FunctionDef, moves: list[_Move]) -> Iterator[Finding]:
    if not moves:
        return
    labels = {m.name for m in moves if _LABEL.search(m.name)}
    given = set().union(*(_returned(n.value) for n in below(function)
                          if isinstance(n, ast.Return) and isinstance(n.value, (ast.Tuple, ast.Dict))))  # fmt: skip
    labels |= {n for n in given if _LABEL.search(n)}
    images = {m.name for m in moves} - labels
    if len(labels) != 1 or len(images) != 1 or not {*labels, *images} <= given:
        return
    (label,), (image,) = labels, images
    for one, other in ((image, label), (label, image)):
        for move in (m for m in moves if m.name == one):
            if move.kind in _ACROSS and not isinstance(move.block, ast.If):
                continue
            if any(m.name == other and m.kind == move.kind and _together(code, m, move) for m in moves):
                continue
            if _changed(move.block, other):
                continue
            if not any(m.name == other for m in moves) and not (_random(code, move) and _of_a_plane(code, label)):
                continue
            yield _finding(code, move, other)
            return


def _of_a_plane(code: Syntax, label: str) -> bool:
    """Whether a label has places, as a mask has and a class has not."""
    return PLANE.search(label) is not None or code.file.mentions(_TASK)


def _moves(code: Syntax, node: ast.Assign) -> Iterator[_Move]:
    block = code.parent(node) or code.file.tree
    for target in node.targets:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and \
                len(target.elts) == len(node.value.elts):  # fmt: skip
            pairs = list(zip(target.elts, node.value.elts, strict=True))
        for part, value in pairs:
            kind = _kind(value) if isinstance(part, (ast.Name, ast.Subscript)) else None
            if kind and _reads(value, written(part)) and not _mixed(value, written(part)):
                yield _Move(written(part), kind, node, block, value)


def _kind(value: ast.expr) -> str | None:
    for n in below(value):
        if isinstance(n, ast.Call) and last_name(n.func) in GEOMETRIC:
            return GEOMETRIC[last_name(n.func)]
        if isinstance(n, ast.Slice) and n.step is not None and written(n.step) == "-1":
            return "flip"
    return None


def _reads(value: ast.expr, name: str) -> bool:
    return any(written(n) == name for n in below(value) if isinstance(n, (ast.Name, ast.Subscript)))


def _mixed(value: ast.expr, name: str) -> bool:
    """A sum in which the array stands as it was, too: `x + 0.3 * x.flip(-1)` moves nothing away from its place."""
    if not isinstance(value, ast.BinOp):
        return False
    sides = (value.left, value.right)
    return any(_reads(side, name) and _kind(side) is None for side in sides)


def _returned(value: ast.Tuple | ast.Dict) -> set[str]:
    parts = value.elts if isinstance(value, ast.Tuple) else value.values
    return {written(n) for p in parts for n in below(p) if isinstance(n, (ast.Name, ast.Subscript))}


def _together(code: Syntax, a: _Move, b: _Move) -> bool:
    """In one block, in two blocks under the same stored condition, or one where the other exists at all."""
    if a.block is b.block or _where_given(code, a, b) or _where_given(code, b, a):
        return True
    if not isinstance(a.block, ast.If) or not isinstance(b.block, ast.If):
        return False
    drawn_anew = any(isinstance(n, ast.Call) for n in below(a.block.test))
    return written(a.block.test) == written(b.block.test) and not drawn_anew


def _where_given(code: Syntax, always: _Move, inner: _Move) -> bool:
    """`image = flip(image)`, and `if mask is not None: mask = flip(mask)` within the same block: no draw decides."""
    if not isinstance(inner.block, ast.If) or any(isinstance(n, ast.Call) for n in below(inner.block.test)):
        return False
    return code.parent(inner.block) is always.block and (
        inner.name in written(inner.block.test) or not isinstance(always.block, ast.If))  # fmt: skip


def _changed(block: ast.AST, name: str) -> bool:
    """Whether the block changes the other array in its own way, such as boxes by arithmetic on their corners."""
    if not isinstance(block, ast.If):
        return False
    inside = [n for s in block.body for n in below(s)]
    changed = [t for n in inside if isinstance(n, ast.Assign) for t in n.targets]
    changed += [n.target for n in inside if isinstance(n, ast.AugAssign)]
    parts = [p for t in changed for p in below(t) if isinstance(p, (ast.Name, ast.Subscript))]
    return any(written(part) == name or _is_label(part) for part in parts)


def _is_label(part: ast.AST) -> bool:
    """`labels[:, 1] = 1 - labels[:, 1]`: by another name than the one that is returned."""
    whole = part.value if isinstance(part, ast.Subscript) else part
    return isinstance(whole, ast.Name) and _LABEL.search(whole.id) is not None


def _random(code: Syntax, move: _Move) -> bool:
    """Whether the transform depends on a draw."""
    text = written(move.block.test) if isinstance(move.block, ast.If) else written(move.call)
    return "rand" in text or "choice" in text or "rng" in text


def _finding(code: Syntax, move: _Move, other: str) -> Finding:
    return RULE.finding(
        f"{written(move.statement)} at {code.at(move.statement)} is a {move.kind} of {move.name} alone: {other} stays "
        "as it was, and the two no longer lie on each other",
        code.place(move.statement),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": move.kind, "moved": move.name, "left": other},
    )
