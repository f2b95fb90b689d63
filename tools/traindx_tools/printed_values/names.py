"""Which value a training script prints under which name.

Every way to write a metric is looked at: f-strings, `%` and `str.format`, `print("loss", x)`, dictionaries (for
`json.dumps`, `wandb.log`, `csv.DictWriter`), keyword arguments (`set_postfix(loss=...)`), `self.log("name", x)`,
`writer.add_scalar("name", x, step)`, rows under a header. What the value stands for is told by `meanings`.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code.nodes import last_name
from traindx_tools.on_code.source import below
from traindx_tools.printed_values.meanings import Meanings
from traindx_tools.printed_values.roles import Meaning

MAX_BYTES = 2 * 2**20
"""Longer files are no training scripts."""
_LABEL = re.compile(r"([^\W\d][\w@/.\-²#]*|\|\w+\|)((?: [^\W\d_][\w@/.\-]*){0,3})"
                    r"\s*(?:\([^()]*\)|%)?\s*[:=~≈]?\s*[\[(\"'$]*$")
_PERCENT = re.compile(r"%(?:\([^)]*\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?([diouxXeEfFgGcrsa%])")
_LOGGED = words("roles.toml", "logged")
"""Methods that take a name and a value."""
_WITH_KEYWORDS = frozenset({"set_postfix", "dict", "log", "update"})
_NOT_PRINTED = words("roles.toml", "not_printed")


@dataclass(frozen=True)
class Printed:
    """A name in the output, what the value stands for, and where it is written."""

    name: str
    meaning: Meaning
    file: str
    line: int
    expression: str


def printed_names(files: Iterable[tuple[str, str]]) -> tuple[Printed, ...]:
    """Every name that these files (path, text) print together with a value whose meaning is certain.

    A file that does not parse is skipped: it may be for another version of Python.
    """
    found: list[Printed] = []
    for path, text in files:
        if len(text) <= MAX_BYTES:
            try:
                tree = ast.parse(text)
                found.extend(_in_tree(path, tree))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
    return tuple(found)


def _in_tree(path: str, tree: ast.Module) -> Iterator[Printed]:
    meanings = Meanings(tree)
    for node, scope in list(meanings.scope_of.items()):
        for name, value in (*_pairs(node), *_rows(node, tree)):
            meaning = meanings.of(value, scope)
            if meaning is not None and name.strip():
                yield Printed(name.strip(), meaning, path, getattr(node, "lineno", 1), ast.unparse(value)[:120])


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names and values that one node writes."""
    if isinstance(node, ast.JoinedStr):
        yield from _of_f_string(node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        yield from _of_percent(_text(node.left), node.right)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
            elif isinstance(key, ast.JoinedStr):
                yield "/".join(str(v.value) for v in key.values if isinstance(v, ast.Constant)), value
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        key = node.targets[0].slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value != "lr":
            yield key.value, node.value
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return left + right if left is not None and right is not None else None
    return None


def label(text: str) -> str:
    """The name at the end of the text before a value: "val ce" of "[00] val ce ", "" where there is none."""
    found = _LABEL.search(re.split(r"[,;|]\s|\]\s|\)\s", text)[-1] if not text.rstrip().endswith("|") else text)
    return (found.group(1) + found.group(2)).strip() if found else ""


def _of_f_string(node: ast.JoinedStr) -> Iterator[tuple[str, ast.expr]]:
    before = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            before += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            yield label(before), part.value
            before = ""


def _of_percent(text: str | None, values: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if text is None:
        return
    given = list(values.elts) if isinstance(values, ast.Tuple) else [values]
    yield from _of_specifiers(text, given)


def _of_specifiers(text: str, given: Sequence[ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    at, used = 0, 0
    for found in _PERCENT.finditer(text):
        if found.group(1) == "%":
            continue
        if used < len(given):
            yield label(text[at : found.start()]), given[used]
        at, used = found.end(), used + 1


def _of_format(text: str, node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    named = {k.arg: k.value for k in node.keywords if k.arg}
    position = 0
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        return
    for before, name, _, _ in parts:
        if name is None:
            continue
        root = re.split(r"[.\[]", name)[0]
        if root in named:
            yield label(before), named[root]
        else:
            index = int(root) if root.isdigit() else position
            position += 1
            if index < len(node.args):
                yield label(before), node.args[index]


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    name = last_name(node.func)
    if name in _NOT_PRINTED:
        return
    first = _text(node.args[0]) if node.args else None
    if isinstance(node.func, ast.Attribute) and name == "format" and (text := _text(node.func.value)) is not None:
        yield from _of_format(text, node)
    elif first is not None and "%" in first and len(node.args) > 1:  # logger.info("loss %.3f", loss)
        yield from _of_specifiers(first, node.args[1:])
    elif first is not None and len(node.args) >= 2 and name in _LOGGED:
        yield first, node.args[1]
    elif name in ("print", "write", "echo", "tqdm_write") or len(node.args) > 2:
        for text_part, value in zip(node.args[:-1], node.args[1:], strict=True):
            if (text := _text(text_part)) is not None and _text(value) is None:
                yield label(text), value
    for keyword in node.keywords:
        if keyword.arg and (keyword.arg not in ("lr", "learning_rate") or name in _WITH_KEYWORDS):
            yield keyword.arg, keyword.value


_HEADER = re.compile(r"[^\W\d]\w*(?:[,\t;][^\W\d][\w/@.\-]*){1,60}\s*")


def _rows(node: ast.AST, tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Values of a row, named by a header of as many cells that the file writes."""
    cells = _cells(node)
    if cells is None or all(isinstance(c, ast.Constant) for c in cells):
        return
    for header in _headers(tree):
        if len(header) == len(cells):
            yield from zip(header, cells, strict=True)
            return


def _cells(node: ast.AST) -> list[ast.expr] | None:
    if isinstance(node, ast.Call) and last_name(node.func) == "writerow" and node.args:
        return list(node.args[0].elts) if isinstance(node.args[0], (ast.List, ast.Tuple)) else None
    if isinstance(node, ast.JoinedStr):
        between = [str(v.value) for v in node.values if isinstance(v, ast.Constant)]
        values = [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
        if len(values) >= 2 and between and all(re.fullmatch(r"[,\t; ]|\n", b) for b in between):
            return values
    return None


def _headers(tree: ast.Module) -> Iterator[list[str]]:
    for node in below(tree):
        if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) >= 2:
            names = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            if len(names) == len(node.elts):
                yield names
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _HEADER.fullmatch(node.value):
            yield re.split(r"[,\t;]", node.value.strip())
