"""A setting is written down and never read.

Two ways. A configuration file beside the code sets a key that no code knows, while the code reads the same setting
under another name (`learning_rate` in the file, `lr` in the code): a merge that drops unknown keys, or a `get` with a
default, uses the default instead. Or an option of argparse is defined and nobody reads it: the value that is used is
written into the code somewhere else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.configuration import read
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax
from traindx_tools.on_code.values import Const, Site, Table

(RULE,) = pages("settings", ("C199",))
_SAME: list[list[str]] = table("settings.toml")["same"]
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_NAMES = frozenset(n for group in _SAME for n in group)
_WHOLE = re.compile(
    r"vars\(|__dict__|asdict|\*\*|setattr\(|getattr\(|OmegaConf|hydra|instantiate|parse_args_into|dataclass"
)
_PASSES_ALL = re.compile(r"\*\*|setattr\(|OmegaConf|hydra|from_dict|parse_obj")


def check(project: Project) -> Iterator[Finding]:
    """Look at configuration files, then at options."""
    options = [f for f in project.files if "add_argument" in f.text]
    read_names = _read(project) if any(not f.mentions(_WHOLE) for f in options) else set()
    known: set[str] | None = None
    spread = any(f.mentions(_PASSES_ALL) for f in project.files)
    for file in project.files:
        if not spread and (".yaml" in file.text or ".yml" in file.text or ".json" in file.text):
            known = _words(project) if known is None else known
            yield from _in_files(file, known)
        if "add_argument" in file.text:
            yield from _options(file, read_names)


def _read(project: Project) -> set[str]:
    """Attributes that are read, and texts."""
    codes = [syntax(f) for f in project.files]
    names = {n.attr for code in codes for n in code.of(ast.Attribute)}
    return names | {n.value for code in codes for n in code.of(ast.Constant) if isinstance(n.value, str)}


def _words(project: Project) -> set[str]:
    """Attributes that are read, and texts with the parts of dotted ones ("training.lr"): what may read a key."""
    found: set[str] = set()
    for file in project.files:
        code = syntax(file)
        called = {id(c.func) for c in code.of(ast.Call)}
        found |= {n.attr for n in code.of(ast.Attribute) if id(n) not in called}
        for text in (n.value for n in code.of(ast.Constant) if isinstance(n.value, str)):
            found |= {text, *(text.split(".") if _DOTTED.fullmatch(text) else ())}
    return found


def _in_files(file: SourceFile, known: set[str]) -> Iterator[Finding]:
    code = syntax(file)
    names = {
        n.value
        for n in code.of(ast.Constant)
        if isinstance(n.value, str) and n.value.endswith((".yaml", ".yml", ".json")) and _read_here(code, n)
    }
    for name in sorted(names):
        table = read(name, file.path, Site(file.path, 1))
        if not isinstance(table, Table):
            continue
        for key, value in _leaves(table):
            group = next((g for g in _SAME if key in g), None)
            if group is None or key in known:
                continue
            other = next((o for o in group if o in known), None)
            if other is not None:
                yield _ignored(code, name, key, value, other)


_READERS = frozenset({"open", "Path", "join", "add_argument", "load", "safe_load", "loads", "get", "resolve"})


def _read_here(code: Syntax, name: ast.Constant) -> bool:
    """Whether the program reads the file itself: not where it writes it, or hands its path to a library."""
    call = next((up for up in code.above(name) if isinstance(up, ast.Call)), None)
    if call is None:
        return True  # a constant or a default, read under its name
    mode = argument(call, 1, "mode") if last_name(call.func) == "open" else None
    writes = isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) & set("wax")
    own = not code.qualified(call.func)
    return not writes and (own or last_name(call.func) in _READERS) and not any(
        isinstance(up, ast.Call) and last_name(up.func) in ("dump", "write_text", "to_json") for up in code.above(name)
    )


def _leaves(table: Table, depth: int = 0) -> Iterator[tuple[str, object]]:
    for key, value in table.items.items():
        if isinstance(value, Table) and depth < 6:
            yield from _leaves(value, depth + 1)
        elif isinstance(value, Const):
            yield str(key), value.value


def _ignored(code: Syntax, name: str, key: str, value: object, other: str) -> Finding:
    node = _home(code, other)
    path = str(Path(code.file.path).with_name(name))
    line = getattr(node, "lineno", 1)
    return RULE.finding(
        f"{name} sets {key} = {value}, which no code reads: the code knows the setting as {other} (line {line}), so "
        f"the value in the file is ignored{_default(code, node)}",
        code.place(node) if node is not None else Location(file=path),
        path,
        bearing=Bearing.CAUSE,
        measured={"kind": "configuration", "name": key, "known_as": other, "value": str(value)},
    )


def _default(code: Syntax, node: ast.AST | None) -> str:
    """What is used instead: the default of the call that reads the other name."""
    call = code.parent(node) if node is not None else None
    if not isinstance(call, ast.Call) or len(call.args) < 2 or call.args[0] is not node:
        return ""
    value = call.args[1]
    return f" and the default {value.value!r} is used" if isinstance(value, ast.Constant) else ""


def _home(code: Syntax, name: str) -> ast.AST | None:
    """Where the code first writes the name: a default if there is one."""
    for made in code.of(ast.Dict):
        for key, value in zip(made.keys, made.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name and isinstance(value, ast.Constant):
                return key
    for text in code.of(ast.Constant):
        if isinstance(text.value, str) and (text.value == name or (
                _DOTTED.fullmatch(text.value) and text.value.endswith(f".{name}"))):
            return text
    return next((n for n in code.of(ast.Attribute) if n.attr == name), None)


def _options(file: SourceFile, read_names: set[str]) -> Iterator[Finding]:
    """Options that shape training and that nobody reads."""
    if file.mentions(_WHOLE):
        return
    code = syntax(file)
    for call in code.calls("add_argument"):
        texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if not texts or not max(texts, key=len).startswith("--") or argument(call, 99, "dest") is not None:
            continue
        name = max(texts, key=len).lstrip("-").replace("-", "_")
        if name in _NAMES and name not in read_names and _parsed_here(code):
            yield RULE.finding(
                f"The option --{name.replace('_', '-')} at {code.at(call)} is never read: its value has no effect",
                code.place(call),
                file.path,
                bearing=Bearing.CAUSE,
                severity=Severity.MEDIUM,
                measured={"kind": "option", "name": name},
            )


def _parsed_here(code: Syntax) -> bool:
    """Whether the options are parsed in this file and not handed on as a whole."""
    parsed = code.calls("parse_args", "parse_known_args")
    if not parsed:
        return False
    names = {last_name(t) for c in parsed if isinstance(s := code.statement(c), ast.Assign) for t in s.targets}
    own = {f.name for f in code.of(ast.FunctionDef)}
    for call in code.of(ast.Call):
        if last_name(call.func) in own | {"print", "vars"}:
            continue
        if any(isinstance(a, ast.Name) and a.id in names for a in (*call.args, *(k.value for k in call.keywords))):
            return False
    return True
