"""A view or reshape is used where two axes should change places.

`view` and `reshape` keep the elements in their order in memory and only lay new borders between them. To ask for the
same sizes in another order, (batch, channels, time) of a (batch, time, channels) tensor, raises no error: each row of
the result holds pieces of several time steps. The same happens to attention heads that are cut with
`q.view(batch, heads, time, width)`: each head sees slices of other positions. The model trains, worse than it could.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.axis_shapes import OPEN, Axes, Sizes, asked, axes, product, reshaped, times
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C247",
    name="axes-mixed-by-view",
    title="A view or reshape stands where a transpose is meant",
    severity=Severity.HIGH,
    sees="view or reshape to sizes in which an axis of the tensor stands at another place than in its memory.",
    matters="Every row holds pieces of several others: positions, channels or heads are mixed up without an error.",
    alike=("permute or transpose before the reshape", "one axis split into two, or neighbours merged into one",
           "the shift of relative positions, which pads and reshapes on purpose"),
    confirm=("x = torch.arange(x.numel()).view(x.shape): compare the reshape of it with the transpose of it",),
)
_ON_PURPOSE = re.compile(r"(^|_)rel(ative)?(_|$)|skew|shift|shuffle|scramble|toeplitz|strided|to_abs", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every view and reshape of a tensor whose axes are named in the same function."""
    for file in project.files:
        if "shape" not in file.text and ".size(" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("view", "reshape"):
            if len(asked(code, call)) < 3 or _on_purpose(code, call):
                continue
            tensor = call.args[0] if code.qualified(call.func) else getattr(call.func, "value", None)
            before = axes(code, tensor) if isinstance(tensor, ast.expr) else None
            after = reshaped(code, call, before) if before is not None else None
            if before is not None and after is not None and isinstance(tensor, ast.expr):
                before = _settled(before, after)
                place = _moved(before, after)
                if place is not None:
                    yield _finding(code, call, tensor, before, after, place)


def _on_purpose(code: Syntax, call: ast.Call) -> bool:
    function = code.function(call)
    return function is not None and bool(_ON_PURPOSE.search(function.name))


def _settled(before: Axes, after: Axes) -> Axes:
    """The one size that a view left open (-1), from the number of elements, which a reshape keeps."""
    places = [i for i, size in enumerate(before.sizes) if any(name.startswith(OPEN) for name in size)]
    known = not any(name.startswith(OPEN) for size in after.sizes for name in size)
    if not before.complete or len(places) != 1 or not known or len(before.sizes[places[0]]) != 1:
        return before
    rest = [size for i, size in enumerate(before.sizes) if i != places[0]]
    found = times(product(after.sizes), product(rest), -1)
    return Axes((*before.sizes[: places[0]], found, *before.sizes[places[0] + 1 :]))


def _moved(before: Axes, after: Axes) -> tuple[int, int] | None:
    """Where an axis stood and where it stands, if no split or merge of its neighbours explains it."""
    for i, size in enumerate(before.sizes):
        if not _is_axis(size) or before.sizes.count(size) != 1 or after.sizes.count(size) != 1:
            continue
        j = after.sizes.index(size)
        ahead = times(product(after.sizes[:j]), product(before.sizes[:i]), -1)
        if not before.complete:
            if j > i and _only_more({k: v for k, v in ahead.items() if not k.startswith(OPEN)}):
                return i, j
            continue
        behind = times(product(after.sizes[j + 1 :]), product(before.sizes[i + 1 :]), -1)
        if _one_sided(ahead) and behind and (times(ahead, behind) == {} or _unsettled(ahead, behind)):
            return i, j
    return None


def _is_axis(size: Sizes) -> bool:
    return len(size) == 1 and all(p == 1 and not name.startswith("#") for name, p in size.items())


def _only_more(ratio: Sizes) -> bool:
    return bool(ratio) and all(p > 0 for p in ratio.values())


def _one_sided(ratio: Sizes) -> bool:
    return bool(ratio) and (_only_more(ratio) or all(p < 0 for p in ratio.values()))


def _unsettled(ahead: Sizes, behind: Sizes) -> bool:
    """Whether what stands behind may make up for what stands before: it has names on both sides."""
    return any(p > 0 for p in behind.values()) and any(p < 0 for p in behind.values()) and _only_more(ahead)


def _finding(code: Syntax, call: ast.Call, tensor: ast.expr, before: Axes, after: Axes, place: tuple[int, int]
             ) -> Finding:  # fmt: skip
    name = written(asked(code, call)[place[1]])
    kind = "reordered" if _order(before, after) is not None else "split"
    return RULE.finding(
        f"{written(call)} at {code.at(call)} puts {name} at axis {place[1]}, where it is axis {place[0]} of "
        f"{written(tensor)} in memory: a reshape moves no element, so positions are mixed instead of transposed",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "axis": name, "from": place[0], "to": place[1]},
        patch=_patch(code, call, tensor, before, after),
    )


def _order(before: Axes, after: Axes) -> list[int] | None:
    """The permutation that was meant, where the sizes are the same ones in another order."""
    left = list(before.sizes)
    if not before.complete or len(left) != len(after.sizes) or any(left.count(s) != 1 for s in left):
        return None
    return [left.index(s) for s in after.sizes] if all(s in left for s in after.sizes) else None


def _patch(code: Syntax, call: ast.Call, tensor: ast.expr, before: Axes, after: Axes) -> tuple[Patch, ...]:
    change = Change(code.file, "move the axes instead of laying new borders")
    text, sizes = source_of(code.file, tensor), asked(code, call)
    if isinstance(tensor, (ast.BinOp, ast.UnaryOp)):
        text = f"({text})"
    order = _order(before, after)
    is_torch = "import torch" in code.file.text or "from torch" in code.file.text
    other = "numpy" in code.file.text or "jax" in code.file.text
    if is_torch and other and not (isinstance(call.func, ast.Attribute) and call.func.attr == "view"):
        return ()
    if order is not None:
        numbers = ", ".join(map(str, order))
        moved = f"{text}.permute({numbers}).contiguous()" if is_torch else f"{text}.transpose({numbers})"
        return change.replace(call, moved).patches()
    heads = len(before.sizes) == 3 and len(after.sizes) == 4 and after.sizes[2] == before.sizes[1] and \
        after.sizes[0] == before.sizes[0]  # fmt: skip
    if not heads or code.qualified(call.func) or not isinstance(call.func, ast.Attribute):
        return ()
    a, b, c, d = (source_of(code.file, s) for s in sizes)
    cut = f"{text}.{call.func.attr}({a}, {c}, {b}, {d})"
    return change.replace(call, f"{cut}.transpose(1, 2)" if is_torch else f"{cut}.transpose(0, 2, 1, 3)").patches()
