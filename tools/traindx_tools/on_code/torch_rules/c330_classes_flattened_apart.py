"""Scores are flattened to rows of classes while the classes lie on another axis.

`scores.reshape(-1, classes)` cuts memory into rows of that many numbers. They are the scores of one position only where
the classes are the last axis. After `transpose(1, 2)` of (batch, time, classes), or for the (batch, classes, height,
width) that a convolution gives, a row holds the score of one class at many positions: the sizes fit, no error is
raised, and the loss compares numbers that do not belong together. It stays near the logarithm of the number of classes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, whole
from traindx_tools.rules import Rule

RULE = Rule(
    id="C330",
    name="classes-flattened-apart",
    title="Scores are flattened while the classes are not the last axis",
    severity=Severity.HIGH,
    sees="reshape(-1, classes) before a cross entropy, of scores whose class axis was moved away or never moved last.",
    matters="Each row mixes positions: the loss stays near ln(classes) and nothing is learned.",
    alike=("permute(0, 2, 3, 1) before the reshape", "(batch, classes, time) handed to the loss as it is",
           "targets that are transposed in the same way"),
    confirm=("x = torch.arange(scores.numel()).view(scores.shape): print the first row of the flattened x",),
)
_MOVES = frozenset({"transpose", "permute", "swapaxes", "swapdims"})
_KEEPS = frozenset({"contiguous", "float", "double", "clone", "to"})
_FLAT = frozenset({"view", "reshape"})


@dataclass(frozen=True)
class _Flattened:
    """`base.<move>.reshape(-1, size)`: `moved` is the expression that is reshaped."""

    call: ast.Call
    moved: ast.expr
    base: ast.expr
    size: ast.expr
    move: ast.Call | None


def check(project: Project) -> Iterator[Finding]:
    """Look at every cross entropy of flattened scores."""
    made: dict[int, Event] | None = None
    for event in project.calls("cross_entropy", "nll_loss"):
        node = event.node
        scores = argument(node, 0, "input") if isinstance(node, ast.Call) else None
        target = argument(node, 1, "target") if isinstance(node, ast.Call) else None
        code = syntax(event.file)
        flat = _flattened(code, scores) if scores is not None else None
        if flat is None or target is None or _moved_too(code, target):
            continue
        place = _axis_of(code, flat)
        sure = place is not None
        if place is None:
            made = {id(e.node): e for e in project.calls("__call__")} if made is None else made
            place = _by_layer(code, flat, made)
            if place == 1 and not _flat_target(code, target):
                continue
        after = None if place is None else _after(flat.move, place)
        if place is not None and after is not None:
            yield _finding(code, flat, place, sure and after[1])


def _flattened(code: Syntax, scores: ast.expr) -> _Flattened | None:
    call = _kept(code, scores)
    if not isinstance(call, ast.Call) or last_name(call.func) not in _FLAT or not isinstance(call.func, ast.Attribute):
        return None
    plain = bool(code.qualified(call.func))
    sizes = call.args[1:] if plain else call.args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    moved = call.args[0] if plain and call.args else call.func.value
    if len(sizes) != 2 or written(sizes[0]) != "-1" or written(sizes[1]) == "-1":
        return None
    inner = _kept(code, moved)
    if isinstance(inner, ast.Call) and last_name(inner.func) in _MOVES and isinstance(inner.func, ast.Attribute):
        own = not code.qualified(inner.func)
        base = inner.func.value if own else inner.args[0] if inner.args else None
        return None if base is None else _Flattened(call, moved, base, sizes[1], inner)
    return _Flattened(call, moved, inner, sizes[1], None)


def _kept(code: Syntax, node: ast.expr) -> ast.expr:
    """Through names and casts to the reshape or the move itself."""
    for _ in range(6):
        if isinstance(node, ast.Name):
            made = code.assigned(node)
            if not isinstance(made, ast.Call) or last_name(made.func) not in (_FLAT | _MOVES | _KEEPS):
                return node
            node = made
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
            node = node.func.value
        else:
            break
    return node


def _moved_too(code: Syntax, target: ast.expr) -> bool:
    """Whether the targets' axes were moved as well."""
    return any(word in f"{written(target)} {written(code.origin(target))}" for word in
               (*_MOVES, "movedim", "rearrange", "einsum", ".T", ".mT", "one_hot"))  # fmt: skip


def _flat_target(code: Syntax, target: ast.expr) -> bool:
    made = code.origin(target)
    flat = isinstance(made, ast.Call) and last_name(made.func) in ("view", "reshape", "flatten", "ravel")
    return flat and "softmax" not in written(made)


def _axis_of(code: Syntax, flat: _Flattened) -> int | None:
    """The class axis of the base, where the size is read from the base itself."""
    size, text = flat.size, written(flat.base)
    made = code.assigned(size) if isinstance(size, ast.Name) else size
    tensor: ast.expr | None = None
    place: ast.expr | None = None
    if isinstance(made, ast.Subscript):
        shape = made.value
        tensor = shape.value if isinstance(shape, ast.Attribute) and shape.attr == "shape" else (
            shape.func.value if isinstance(shape, ast.Call) and isinstance(shape.func, ast.Attribute)
            and shape.func.attr == "size" and not shape.args else None)  # fmt: skip
        place = made.slice
    elif isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "size":
        tensor, place = made.func.value, argument(made, 0, "dim")
    number = whole(code.number(place))
    if tensor is None or number is None or written(tensor) != text or not _one_value(code, tensor, flat.base):
        return None
    if flat.move is None:
        unpacked = isinstance(size, ast.Name) and _unpacked_to(code, size) > 2
        return number if unpacked and 0 < number < _unpacked_to(code, size) - 1 else None
    return number


def _one_value(code: Syntax, one: ast.expr, other: ast.expr) -> bool:
    """Whether two equal names stand for the same value: nothing was assigned between them."""
    if not isinstance(one, (ast.Name, ast.Attribute)):
        return False
    first, second = code.assigned(one), code.assigned(other)
    return first is second and (first is not None or not code.bindings(one))


def _unpacked_to(code: Syntax, size: ast.expr) -> int:
    """How many sizes the line names that this one comes from: 4 of `n, c, h, w = scores.shape`."""
    for statement, _ in code.bindings(size):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in target.elts):
            return len(target.elts)
    return 0


def _by_layer(code: Syntax, flat: _Flattened, made: dict[int, Event]) -> int | None:
    """The class axis by the layer that gave the scores: -1 of a linear one, 1 of a convolution."""
    origin = code.origin(flat.base)
    event = made.get(id(origin))
    scores = event.result if event is not None else None
    if not isinstance(scores, Tensor) or scores.kind != "linear" or "layer" not in scores.tags:
        return None
    if scores.shape is not None and scores.shape.dims:
        rank = scores.shape.rank
        number = whole(code.number(flat.size))
        fits = number is None or scores.shape.dims[-1] in (None, number)
        return -1 if flat.move is not None and fits and (rank is None or rank > 2) else None
    return 1


def _after(move: ast.Call | None, place: int) -> tuple[int | None, bool] | None:
    """(where the class axis stands after a move, whether that is certain) if it is not the last; None if it may be."""
    if move is None:
        return (place, True) if place == 1 else None
    given = move.args if not (len(move.args) == 1 and isinstance(move.args[0], (ast.Tuple, ast.List))) \
        else move.args[0].elts  # fmt: skip
    if isinstance(move.func, ast.Attribute) and isinstance(move.func.value, ast.Name) and move.func.value.id == "torch":
        given = given[1:]
    order = [_whole(a) for a in given]
    if move.keywords or any(n is None for n in order):
        return None
    axes = [n for n in order if n is not None]
    if last_name(move.func) == "permute":
        rank = len(axes)
        at = [n % rank for n in axes].index(place % rank) if rank and sorted(n % rank for n in axes) == [
            *range(rank)] else rank - 1  # fmt: skip
        return (at, True) if at != rank - 1 else None
    if len(axes) != 2 or axes[0] == axes[1]:
        return None
    if place in axes:
        other = axes[0] if axes[1] == place else axes[1]
        if place == -1:
            return other, True
        return (other, True) if 0 <= other < place else None
    if place == -1 and 2 in axes and min(axes) >= 0:
        return min(axes), False  # of three axes, which scores of a sequence have
    return None


def _whole(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _whole(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _finding(code: Syntax, flat: _Flattened, place: int, sure: bool) -> Finding:
    what = f"{written(flat.move)} moves the classes away from the last axis" if flat.move is not None and place in (
        -1,) else f"the classes are axis {place} of {written(flat.base)}" + (
        " and are not moved to the last" if flat.move is None else f", and {written(flat.move)} does not put them last")
    return RULE.finding(
        f"{written(flat.call)} at {code.at(flat.call)} cuts rows of {written(flat.size)} numbers, but {what}: each row "
        "holds scores of several positions",
        code.place(flat.call),
        code.file.path,
        bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        measured={"kind": "moved away" if place == -1 else "not last", "axis": place},
        patch=_patch(code, flat, place),
    )


def _patch(code: Syntax, flat: _Flattened, place: int) -> tuple[Patch, ...]:
    """The classes last, then the reshape."""
    change = Change(code.file, "flatten with the classes on the last axis")
    base, size = source_of(code.file, flat.base), source_of(code.file, flat.size)
    if not isinstance(flat.base, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) or "\n" in base:
        return ()
    last = base if place == -1 else f"{base}.movedim({place}, -1)"
    return change.replace(flat.call, f"{last}.reshape(-1, {size})").patches()
