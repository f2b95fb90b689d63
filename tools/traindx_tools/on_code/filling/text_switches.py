"""Texts from the command line and the environment of which `bool` makes a truth value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.values import Const, Function, Ref, Thing, Value
from traindx_tools.program.constants import TextSwitch

_OFF = frozenset({"0", "false", "no", "off", "none", "n", "f"})


def text_switches(project: Project) -> Iterator[TextSwitch]:
    """Every option of argparse with `type=bool`, and every variable of the environment that says "off" by default."""
    for event in project.calls("add_argument"):
        names = [a.value for a in event.args if isinstance(a, Const) and isinstance(a.value, str)]
        default = event.kwargs.get("default")
        if isinstance(event.receiver, Thing) and event.receiver.type == "argparse.ArgumentParser" and names and (
                _is_bool(event.kwargs.get("type")) and "action" not in event.kwargs):
            on = isinstance(default, Const) and default.value is True
            yield TextSwitch(f"option {max(names, key=len)}", spot_of(event), _says_off(default), on)
    asked = {e.site: e for e in project.calls("getenv", "get") if e.name in ("os.environ.get", "os.getenv")}
    for event in project.calls("bool"):
        found = asked.get(event.site)
        given = event.args[0] if event.args else None
        if found is not None and found.result == given and _says_off(found.argument(1, "default")):
            yield TextSwitch(event.file.segment(event.node), spot_of(event), True, False)


def _says_off(default: Value | None) -> bool:
    return isinstance(default, Const) and isinstance(default.value, str) and default.value.lower() in _OFF


def _is_bool(kind: Value | None) -> bool:
    """`bool`, or a function that does nothing else."""
    if isinstance(kind, Function) and isinstance(kind.info.node, ast.Lambda):
        return ast.unparse(kind.info.node.body) in [f"bool({name})" for name in kind.info.parameters]
    return isinstance(kind, Ref) and kind.name == "builtins.bool"
