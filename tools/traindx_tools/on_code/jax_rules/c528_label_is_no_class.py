"""Labels that reach the number of classes are made one-hot.

`jax.nn.one_hot(labels, C)` has places for 0 to C - 1. A label outside, such as the highest of labels that are counted
from 1, gives a row of zeros, without an error (in `tf.one_hot` as well): that class has no target, its samples no loss,
and output 0 is never asked for. The loss falls below what the data allow while the highest class is never recognised.
The labels have to be shifted, or the classes counted with the one that is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.id_ranges import Ranges
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.number_ranges import Number, Range, beyond
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C528",
    name="label-is-no-class",
    title="The highest label has no place in the one-hot target",
    severity=Severity.HIGH,
    sees="one_hot of labels whose highest number, where they are made, is at or above the number of classes.",
    matters="A target of zeros: the class has no loss and is never learned; no error is raised.",
    alike=("labels that are shifted first", "a number of classes that counts the unused 0",
           "a row of zeros that is meant, as for padding with -1"),
    confirm=("print(labels.min(), labels.max(), num_classes)",
             "print(jax.nn.one_hot(labels, num_classes).sum(-1).min())"),
)  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every one-hot encoding that raises nothing."""
    if not any("one_hot(" in f.text for f in project.files):
        return
    look = lookup(project)
    ranges = Ranges(look)
    for code in look.codes:
        for call in code.calls("one_hot"):
            if not code.qualified(call.func).startswith(("jax.", "tensorflow.", "keras.")):
                continue
            labels = argument(call, 0, "x", "indices")
            size = ranges.number(code, argument(call, 1, "num_classes", "depth"))
            if labels is None or size is None:
                continue
            known = ranges.of(code, labels)
            if known is not None and beyond(known.high, size):
                yield _finding(code, call, labels, known, size)
            elif known is None and isinstance(code.origin(labels), (ast.Name, ast.Attribute, ast.Subscript)) and (
                    _counted_from_one(code, labels, size, ranges)):  # fmt: skip
                yield _by_use(code, call, labels, size)


def _finding(code: Syntax, call: ast.Call, labels: ast.expr, known: Range, size: Number) -> Finding:
    counted = "counted from 1" if known.low == 1 and known.high == size else f"from {known.low} to {known.high}"
    last = known.high if known.high == size else f"every label from {size}"
    return RULE.finding(
        f"{written(labels)} at {code.at(call)} holds labels {counted} (made at {known.code.at(known.made)}), and "
        f"one_hot with {size} classes has places for 0 to {size.shifted(-1)}: the target of {last} is all zeros",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "beyond", "lowest": known.low, "highest": str(known.high), "classes": str(size)},
    )


def _counted_from_one(code: Syntax, labels: ast.expr, size: Number, ranges: Ranges) -> bool:
    """Whether labels of that kind are gone through as 1 to C elsewhere: `for c in range(1, C + 1): y == c`."""
    for loop in code.of(ast.For):
        source = loop.iter
        if not (isinstance(source, ast.Call) and last_name(source.func) == "range" and len(source.args) == 2):
            continue
        low, high = (ranges.number(code, a) for a in source.args)
        if low != Number(1) or high != size.shifted(1) or not isinstance(loop.target, ast.Name):
            continue
        for node in (n for s in loop.body for n in below(s) if isinstance(n, ast.Compare)):
            sides = [written(node.left), *(written(c) for c in node.comparators)]
            if loop.target.id in sides and any(_of_labels(s, labels) for s in sides if s != loop.target.id):
                return True
    return False


def _of_labels(side: str, labels: ast.expr) -> bool:
    own = {n.lower() for n in names_in(labels)}
    return any(n in side.lower() for n in own if len(n) > 2) or side.rpartition("_")[2] in ("y", "labels", "target")


def _by_use(code: Syntax, call: ast.Call, labels: ast.expr, size: Number) -> Finding:
    return RULE.finding(
        f"{written(labels)} at {code.at(call)} is made one-hot with {size} classes (0 to {size.shifted(-1)}), while "
        f"the file goes through labels from 1 to {size}: the target of the highest one would be all zeros",
        code.place(call),
        code.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "beyond", "classes": str(size)},
    )
