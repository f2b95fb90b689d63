"""Where a value is written down: the literal behind an argument, in the code or in a configuration file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from traindx_tools.finding import Patch
from traindx_tools.on_code import configuration
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.literals import literal
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, syntax

MOST_STEPS = 8


def literal_behind(code: Syntax, node: ast.expr | None, left: int = MOST_STEPS) -> ast.expr | None:
    """The number that an expression holds, as it is written down in this file; None where that is not certain."""
    if node is None or left <= 0:
        return None
    if isinstance(literal(node), (bool, int, float)):
        return node
    return next((found for n in _one_step(code, node) if (found := literal_behind(code, n, left - 1))), None)


def source_behind(code: Syntax, node: ast.expr | None) -> ast.expr | None:
    """Where a value comes from in this file, as far as every step is certain: `cfg["commitment"]`."""
    for _ in range(MOST_STEPS):
        steps = [] if node is None else list(_one_step(code, node))
        if len(steps) != 1:
            return node
        node = steps[0]
    return node


def _one_step(code: Syntax, node: ast.expr) -> Iterator[ast.expr]:
    """The one expression that a name, an attribute or an entry stands for."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        bound = [v for _, v in code.bindings(node)]
        if len(bound) == 1:
            yield bound[0]
        elif not bound and isinstance(node, ast.Name):
            yield from _of_parameter(code, node)
        elif not bound and isinstance(node, ast.Attribute):
            yield from _of_attribute(code, node)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        yield from _entry(code, node.value, node.slice.value)
    elif isinstance(node, ast.Call) and last_name(node.func) == "float" and len(node.args) == 1:
        yield node.args[0]


def _of_parameter(code: Syntax, name: ast.Name) -> Iterator[ast.expr]:
    """What the one caller gives, else the default."""
    function = next((a for a in code.above(name) if isinstance(a, FunctionNode) and name.id in parameters(a)), None)
    if function is None:
        return
    calls = _calls_of(code, function)
    position = list(parameters(function)).index(name.id) - (code.owner(function) is not None)
    given = [g for c in calls if (g := argument(c, position, name.id)) is not None]
    default = parameters(function)[name.id]
    if len(given) == 1 and len(calls) == 1:
        yield given[0]
    elif not given and default is not None:
        yield default


def _calls_of(code: Syntax, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
    owner = code.owner(function)
    name = owner.name if owner is not None and function.name == "__init__" else function.name
    return code.calls(name)


def _of_attribute(code: Syntax, node: ast.Attribute) -> Iterator[ast.expr]:
    """A field of a class, an option of argparse, or an entry of a namespace that is made of keywords."""
    value = code.options.get(node.attr)
    if value is not None:
        yield value
        return
    owners = [n for n in code.of(ast.ClassDef) if last_name(node.value) in (n.name, "cfg", "config", "self", "args")]
    fields = [s.value for o in owners for s in o.body if isinstance(s, ast.Assign)
              and any(isinstance(t, ast.Name) and t.id == node.attr for t in s.targets)]  # fmt: skip
    if len(fields) == 1:
        yield fields[0]
        return
    made = code.origin(node.value)
    if isinstance(made, ast.Call):
        yield from (k.value for k in made.keywords if k.arg == node.attr)


def _entry(code: Syntax, table: ast.expr, key: object) -> Iterator[ast.expr]:
    """An entry of a dict that is written down once."""
    made = code.origin(table)
    if isinstance(made, ast.Dict):
        yield from (v for k, v in zip(made.keys, made.values, strict=True)
                    if isinstance(k, ast.Constant) and k.value == key)  # fmt: skip
    elif isinstance(made, ast.Call) and last_name(made.func) == "dict":
        yield from (k.value for k in made.keywords if k.arg == key)


def operand(code: Syntax, call: ast.Call) -> ast.expr | None:
    """What a function of one array is applied to: x of f(x), of library.f(x) and of x.f()."""
    called = call.func
    if isinstance(called, ast.Attribute) and not code.qualified(called):
        return called.value
    return call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None


def rewritten(file: SourceFile, node: ast.expr | None, value: str, summary: str) -> tuple[Patch, ...]:
    """Another value where the one behind an expression is written down."""
    found = literal_behind(syntax(file), node)
    return Change(file, summary).replace(found, value).patches() if found is not None else ()


def in_configuration(
    file: SourceFile, key: str, old: float | str | None, new: str, summary: str
) -> tuple[Patch, ...]:
    """Another value in the one configuration file beside the code that sets a key."""
    made = [p for name in _configurations(file) for p in _edited(file, name, key, old, new, summary)]
    return tuple(made) if len(made) == 1 else ()


def _configurations(file: SourceFile) -> list[str]:
    texts = {n.value for n in syntax(file).of(ast.Constant) if isinstance(n.value, str)}
    return sorted(t for t in texts if t.endswith((".yaml", ".yml", ".json")) and len(t) < 200)


def _edited(
    file: SourceFile, name: str, key: str, old: float | str | None, new: str, summary: str
) -> Iterator[Patch]:
    text = configuration.text_of(name, file.path)
    if text is None:
        return
    lines = [line.rstrip("\r") for line in text.split("\n")]
    pattern = re.compile(rf"""^[\s{{,-]*["']?{re.escape(key)}["']?\s*:\s*(?P<value>[^\s,#}}]+)""")
    hits = [(i, m) for i, line in enumerate(lines, 1) if (m := pattern.match(line))]
    if len(hits) != 1 or (old is not None and not _equal(hits[0][1]["value"], old)):
        return
    number, match = hits[0]
    line = lines[number - 1]
    changed = f"{line[: match.start('value')]}{new}{line[match.end('value') :]}"
    yield Patch(str(Path(file.path).parent / name), number, number, line, changed, summary)


def _equal(written: str, value: float | str) -> bool:
    try:
        return float(written) == float(value)
    except ValueError:
        return written.strip("\"'") == str(value)
