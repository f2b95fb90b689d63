"""Entries of configuration files that no code reads, where the code knows the setting by another name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.configuration_values import read
from traindx_tools.on_code.filling.spots import spot_in
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax
from traindx_tools.on_code.values import Const, Site, Table
from traindx_tools.program.results import UnreadSetting

_SAME: list[list[str]] = table("settings.toml")["same"]
_PASSES_ALL = re.compile(r"\*\*|setattr\(|OmegaConf|hydra|from_dict|parse_obj")
"""What takes keys whatever they are called."""
_READERS = frozenset({"open", "Path", "join", "add_argument", "load", "safe_load", "loads", "get", "resolve"})


def unread_settings(project: Project) -> Iterator[UnreadSetting]:
    """Every such entry of the files that a program reads."""
    naming = [f for f in project.files if any(end in f.text for end in (".yaml", ".yml", ".json"))]
    if not naming or any(f.mentions(_PASSES_ALL) for f in project.files):
        return
    known = {word for f in project.files for word in _words(syntax(f))}
    for code in map(syntax, naming):
        names = {n.value for n in code.of(ast.Constant) if isinstance(n.value, str)
                 and n.value.endswith((".yaml", ".yml", ".json")) and _is_read(code, n)}
        for name in sorted(names):
            found = read(name, code.file.path, Site(code.file.path, 1))
            for key, value in _leaves(found) if isinstance(found, Table) else ():
                group = next((g for g in _SAME if key in g), [])
                other = next((o for o in group if o in known), None) if key not in known else None
                if other is not None:
                    home = _home(code, other) or code.file.tree
                    yield UnreadSetting(name, key, str(value), other, spot_in(code, home))


def _words(code: Syntax) -> Iterator[str]:
    """What may read a key: attributes, and texts with the parts of dotted ones ("training.lr")."""
    called = {id(c.func) for c in code.of(ast.Call)}
    yield from (n.attr for n in code.of(ast.Attribute) if id(n) not in called)
    for text in (n.value for n in code.of(ast.Constant) if isinstance(n.value, str)):
        yield text
        yield from text.split(".") if text.replace(".", "").isidentifier() else ()


def _is_read(code: Syntax, name: ast.Constant) -> bool:
    """Whether the program reads the file itself: not where it writes it, or hands its path to a library."""
    calls = [up for up in code.above(name) if isinstance(up, ast.Call)]
    if not calls:
        return True  # a constant or a default, read under its name
    mode = argument(calls[0], 1, "mode") if last_name(calls[0].func) == "open" else None
    writes = isinstance(mode, ast.Constant) and bool(set(str(mode.value)) & set("wax"))
    own = not code.qualified(calls[0].func) or last_name(calls[0].func) in _READERS
    return own and not writes and not any(last_name(c.func) in ("dump", "write_text", "to_json") for c in calls)


def _leaves(found: Table, depth: int = 0) -> Iterator[tuple[str, object]]:
    for key, value in found.items.items():
        if isinstance(value, Table) and depth < 6:
            yield from _leaves(value, depth + 1)
        elif isinstance(value, Const):
            yield str(key), value.value


def _home(code: Syntax, name: str) -> ast.AST | None:
    """Where the code first writes the name: a default if there is one."""
    keys = [k for d in code.of(ast.Dict) for k, v in zip(d.keys, d.values, strict=True) if isinstance(v, ast.Constant)]
    for node in (*keys, *code.of(ast.Constant)):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and (text == name or text.endswith(f".{name}")):
            return node
    return next((n for n in code.of(ast.Attribute) if n.attr == name), None)
