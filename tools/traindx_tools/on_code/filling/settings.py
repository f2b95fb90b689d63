"""Settings that are not what they say: texts that `bool` makes a truth value, entries of files that no code reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.configuration_values import read
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax
from traindx_tools.on_code.values import Const, Function, Ref, Site, Table, Thing, Value
from traindx_tools.program.constants import TextSwitch
from traindx_tools.program.uses import UnreadSetting

_OFF = frozenset({"0", "false", "no", "off", "none", "n", "f"})


def text_switches(project: Project) -> Iterator[TextSwitch]:
    """Every option of argparse with `type=bool`, and every variable of the environment that says "off" by default."""
    for event in project.calls("add_argument"):
        names = [a.value for a in event.args if isinstance(a, Const) and isinstance(a.value, str)]
        default = event.kwargs.get("default")
        if isinstance(event.receiver, Thing) and event.receiver.type == "argparse.ArgumentParser" and names and (
                _is_bool(event.kwargs.get("type")) and "action" not in event.kwargs):
            on = isinstance(default, Const) and default.value is True
            yield TextSwitch(f"option {max(names, key=len)}", event.spot, _says_off(default), on)
    asked = {e.site: e for e in project.calls("getenv", "get") if e.name in ("os.environ.get", "os.getenv")}
    for event in project.calls("bool"):
        found = asked.get(event.site)
        given = event.args[0] if event.args else None
        if found is not None and found.result == given and _says_off(found.argument(1, "default")):
            yield TextSwitch(event.text, event.spot, True, False)


def _says_off(default: Value | None) -> bool:
    return isinstance(default, Const) and isinstance(default.value, str) and default.value.lower() in _OFF


def _is_bool(kind: Value | None) -> bool:
    """`bool`, or a function that does nothing else."""
    if isinstance(kind, Function) and isinstance(kind.info.node, ast.Lambda):
        return ast.unparse(kind.info.node.body) in [f"bool({name})" for name in kind.info.parameters]
    return isinstance(kind, Ref) and kind.name == "builtins.bool"


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
                    yield UnreadSetting(name, key, str(value), other, code.spot(home))


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
