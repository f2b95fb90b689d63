"""Where a run reads the thing that is changed: a placeholder in the command, a path that it names, or one that is told.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.errors import BadUsage

FOLDER = ".traindx-isolate"
"""Of the copy: where files are put that do not lie in the workspace."""


@dataclass(frozen=True)
class Target:
    """`path`: in the workspace, where each run finds what it should read; `command`: as it is run."""

    command: str
    path: str


def target_of(command: str, workspace: Path, sides: tuple[Path, ...], word: str, at: str | None = None) -> Target:
    """The target for files or folders that exist in two versions (`sides`), of which the command reads one.

    `word`: `{word}` in the command stands for the path; `at`: the path in the workspace, where it is told.
    Raises BadUsage where none or several places could be meant.
    """
    root = workspace.resolve()
    if "{" + word + "}" in command:
        path = at or f"{FOLDER}/{sides[-1].name}"
        return Target(command.replace("{" + word + "}", shlex.quote(str(root / _inside(path, root)))), path)
    if at is not None:
        return Target(command, _inside(at, root))
    named = _named(command, root, sides)
    if len({s for _, s in named}) > 1:
        raise BadUsage(f"the command names both {sides[0]} and {sides[-1]}: put {{{word}}} where the run should read "
                       "the one that is tried")
    if named:
        text, side = named[0]
        if side.resolve().is_relative_to(root):
            return Target(command, str(side.resolve().relative_to(root)))
        moved = f"{FOLDER}/{side.name}"
        return Target(_replaced(command, text, str(root / moved)), moved)
    near = [s for s in sides if s.resolve().is_relative_to(root)]
    if len({s.resolve() for s in near}) == 1:
        return Target(command, str(near[0].resolve().relative_to(root)))
    raise BadUsage(f"it is not clear where the run reads it: the command names neither of {', '.join(map(str, sides))}."
                   f" Put {{{word}}} in the command where the path belongs, or name the place that the code reads with "
                   "--at PATH")


def _inside(path: str, root: Path) -> str:
    whole = (root / path).resolve()
    if not whole.is_relative_to(root) or whole == root:
        raise BadUsage(f"{path} does not lie in the workspace {root}: name a path below it")
    return str(whole.relative_to(root))


def _named(command: str, root: Path, sides: tuple[Path, ...]) -> list[tuple[str, Path]]:
    """The words of the command that are one of the paths, and which."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise BadUsage(f"the command cannot be read as shell words ({error}): {command}") from None
    words = [w for word in words for w in {word, word.partition("=")[2]} if w]
    found = []
    for word in words:
        here = (root / word).resolve()
        found += [(word, side) for side in sides if here == side.resolve()]
    return found


def _replaced(command: str, text: str, new: str) -> str:
    return re.sub(rf"(?<![\w./-]){re.escape(text)}(?![\w./-])", lambda _: shlex.quote(new), command)
