"""The names of the probes of every framework that is installed here, for `traindx run --list` and `--probe`.

They are read out of the source of the probes' modules: importing these would import the framework, which takes
seconds, before the command has even been started.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

ROOMS = {"torch": "on_torch/probes", "jax": "on_jax/probes"}
"""Where each framework's probes lie in this package."""


def known_names() -> list[tuple[str, str, bool]]:
    """Name, what it does in one line, and whether it is always on."""
    package = Path(__file__).parent.parent
    return [row for framework, room in ROOMS.items() if importlib.util.find_spec(framework) is not None
            for row in sorted(_in_folder(package / room))]


def _in_folder(folder: Path) -> Iterator[tuple[str, str, bool]]:
    for path in folder.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                told = dict(_constants(node))
                if told.get("name"):
                    about = (ast.get_docstring(node) or "").split("\n")[0]
                    yield str(told["name"]), about, bool(told.get("always_on"))


def _constants(node: ast.ClassDef) -> Iterator[tuple[str, object]]:
    """The attributes of a class that are written as constants."""
    for line in node.body:
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
            for target in line.targets:
                if isinstance(target, ast.Name):
                    yield target.id, line.value.value
