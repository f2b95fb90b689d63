"""Large numbers are rounded to float32 before their difference is taken.

float32 has 24 bits: above 16,777,216 it does not hold every whole number, and at a time in seconds since 1970 (1.7e9)
its values lie 128 apart. Times, ids and readings with a large offset that are stored as float32 lose what is smaller
than that, and a difference that is taken afterwards is 0 or a multiple of 128. A feature of dwell times or gaps is then
noise: nothing fails, and no network can use it. Taken in int64 or float64, the difference is small and fits float32.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.large_numbers import Rounded, rounded
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C275",
    name="large-numbers-rounded",
    title="Large numbers are rounded before their difference is taken",
    severity=Severity.HIGH,
    sees="Times since 1970, ids or numbers with an offset of 2**24 or more that are cast to float32 or shorter, and "
         "then subtracted from each other or compared for equality.",
    matters="Differences below the spacing (128 s for times in float32) become 0 or a multiple of it.",
    alike=("the difference taken in int64 or float64 and cast afterwards",
           "an offset that is subtracted before the cast"),
    confirm=("print the unique differences: they are multiples of a power of two",),
)  # fmt: skip
_LARGE = re.compile(r"\b\d[\d_]{7,}\b|\*\*|time\.time|\.timestamp\(|time_ns|unix|posix|epoch_(s|ms|time)|datetime"
                    r"|timestamp")  # fmt: skip
_SHORTENS = re.compile(r"float32|float16|bfloat16|\.float\(\)|\.half\(\)|FloatTensor|\.Tensor\(|\.tensor\("
                       r"|jnp\.(as)?array")  # fmt: skip
_DIFFERENCES = ("diff", "ediff1d")


def check(project: Project) -> Iterator[Finding]:
    """Look at differences and equalities of values that were cast."""
    files = project.files
    if not any(f.mentions(_LARGE) for f in files) or not any(f.mentions(_SHORTENS) for f in files):
        return
    look = lookup(project)
    told: set[int] = set()
    for code in look.codes:
        for node, operands in _compared(code):
            found = [rounded(look, code, o) for o in operands[:1]]
            found += [rounded(look, code, o) for o in operands[1:]] if found[0] is not None else []
            first = found[0]
            if first is None or any(f is None for f in found) or id(first.cast) in told:
                continue
            told.add(id(first.cast))
            yield _finding(code, node, first)


def _compared(code: Syntax) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Every difference of neighbours or of two values, and every equality, with its operands."""
    for call in code.calls(*_DIFFERENCES):
        library = code.qualified(call.func)
        inside = argument(call, 0, "input", "a", "ary") if library else None
        if inside is None and isinstance(call.func, ast.Attribute) and not library:
            inside = call.func.value
        if inside is not None:
            yield call, [inside]
    for node in code.of(ast.BinOp):
        if isinstance(node.op, ast.Sub) and _values(node.left) and _values(node.right):
            yield node, [node.left, node.right]
    for compare in code.of(ast.Compare):
        if len(compare.ops) == 1 and isinstance(compare.ops[0], (ast.Eq, ast.NotEq)):
            sides = [compare.left, compare.comparators[0]]
            if all(_values(s) for s in sides):
                yield compare, sides


def _values(node: ast.expr) -> bool:
    """Whether an operand is a name, a part of one, or its view, and no statistic."""
    if isinstance(node, ast.Call):
        views = ("unsqueeze", "reshape", "view", "roll", "float", "to", "astype", "half")
        return isinstance(node.func, ast.Attribute) and last_name(node.func) in views
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))


def _finding(code: Syntax, node: ast.expr, known: Rounded) -> Finding:
    what = "compared for equality" if isinstance(node, ast.Compare) else "subtracted from each other"
    return RULE.finding(
        f"{written(known.cast)[:80]} at {known.code.at(known.cast)} rounds numbers of {known.size:.2g} "
        f"({known.source}) to {known.short}, whose values lie {known.spacing:g} apart there, and they "
        f"are {what} at {code.at(node)}",
        known.code.place(known.cast),
        known.code.file.path,
        bearing=Bearing.CAUSE if known.proven else Bearing.SIGN,
        severity=Severity.HIGH if known.proven else Severity.MEDIUM,
        measured={"kind": "rounded", "size": known.size, "spacing": known.spacing, "dtype": known.short},
        patch=_in_float64(code, node, known),
    )


def _in_float64(code: Syntax, node: ast.expr, known: Rounded) -> tuple[Patch, ...]:
    """The values in float64 and the difference in float32, where nothing else reads the values."""
    kind = argument(known.cast, 1, "dtype")
    statement = code.statement(known.cast)
    if known.code is not code or not isinstance(node, ast.Call) or not isinstance(kind, ast.Attribute):
        return ()
    if written(kind) != "torch.float32" or not isinstance(statement, ast.Assign) or statement.value is not known.cast:
        return ()
    if not code.qualified(node.func).startswith("torch") or not _only_in(code, statement.targets[0], node, 3):
        return ()
    change = Change(code.file, "float64 until the difference is taken")
    return change.replace(kind, "torch.float64").wrap(node, "", ".float()").patches()


def _only_in(code: Syntax, target: ast.expr, node: ast.expr, left: int) -> bool:
    """Whether everything that is read from a target ends in one expression."""
    text, inside = written(target), {id(n) for n in below(node)}
    kinds: list[ast.expr] = [*code.of(ast.Attribute), *code.of(ast.Name)]
    reads = [n for n in kinds if written(n) == text and isinstance(getattr(n, "ctx", None), ast.Load)]
    if isinstance(target, ast.Name):
        reads = [n for n in reads if code.scope(n) is code.scope(target)]
    for read in reads:
        if id(read) in inside:
            continue
        statement = code.statement(read)
        value = statement.value if isinstance(statement, ast.Assign) else None
        plain = isinstance(value, ast.Subscript) and value.value is read
        if not plain or left <= 0 or not isinstance(statement, ast.Assign) or \
                not _only_in(code, statement.targets[0], node, left - 1):  # fmt: skip
            return False
    return bool(reads)
