"""What a script hands over, checked where it comes in: each refusal says what came, what is expected and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.short import in_short


def text(name: str, value: object, example: str) -> str:
    """A text. Raises BadUsage for anything else."""
    if isinstance(value, str):
        return value
    raise BadUsage(f"{name} is {_came(value)}, expected text: {name}={example}{_or_left_out(value)}")


def input_bytes(value: object) -> bytes | None:
    """The bytes of standard input, or None. Raises BadUsage for anything else."""
    if value is None or isinstance(value, bytes):
        return value
    how = "stdin=text.encode()" if isinstance(value, str) else "stdin=sys.stdin.buffer.read()"
    raise BadUsage(f"stdin is {_came(value)}, expected bytes: {how}")


def flag(name: str, value: object) -> bool:
    """True or False. Raises BadUsage for anything else: a text that says "no" would be taken for a yes."""
    if isinstance(value, bool):
        return value
    raise BadUsage(f"{name} is {_came(value)}, expected True or False: {name}=True")


def known(what: str, named: Mapping[str, object], taken: Sequence[str], hints: Mapping[str, str]) -> None:
    """Raises BadUsage for an argument that a function does not take, with the nearest one that it takes."""
    for name in named:
        if name not in taken:
            near = get_close_matches(name, taken, 1)
            told = hints.get(name) or (f"did you mean {near[0]}?" if near else f"it takes {', '.join(taken)}")
            raise BadUsage(f"{what} takes no {name}: {told}")


def optional_text(name: str, value: object, example: str) -> str | None:
    """A text, or None. Raises BadUsage for anything else."""
    return None if value is None else text(name, value, example)


def names(value: object) -> Mapping[str, str] | None:
    """What the log's own names stand for, or None. Raises BadUsage for anything but a dict of text."""
    if value is None:
        return None
    if isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair):
        return value
    raise BadUsage(f"names is {_came(value)}, expected a dict from the log's name to the known one: "
                   'names={"Kosten": "loss"}')


def lines(value: object, known: type) -> tuple[Any, ...]:
    """Forms of lines. Raises BadUsage for one text, which would be taken letter by letter, and for what is no form."""
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        parts = tuple(value)
        if all(isinstance(part, (str, known)) for part in parts):
            return parts
    raise BadUsage(f'lines is {_came(value)}, expected a list of forms, as in '
                   'lines=["{step} | {loss} | {lr}"]')


def of_type(name: str, value: object, known: type, example: str) -> Any:
    """A value of a type of this package. Raises BadUsage for anything else."""
    if isinstance(value, known):
        return value
    raise BadUsage(f"{name} is {_came(value)}, expected {known.__name__}: {name}={example}{_or_left_out(value)}")


def path(name: str, value: object, what: str) -> Path:
    """A path, which need not be there. Raises BadUsage for anything else."""
    if isinstance(value, (str, os.PathLike)):
        return Path(value)
    raise BadUsage(f"the {name} is {_came(value)}, expected {what}{_or_left_out(value)}")


def folder(name: str, value: object) -> Path:
    """The absolute path of a folder that is there. Raises BadUsage."""
    if value is None:
        raise BadUsage(f'the {name} is None, expected the folder of the training code, as in "runs/pump" or "."')
    found = path(name, value, 'the folder of the training code, as in "runs/pump" or "."').absolute()
    if not found.is_dir():
        raise BadUsage(f"the {name} {found} is no folder: give the folder of the training code")
    return found


def paths(name: str, value: object) -> tuple[str, ...]:
    """Paths or patterns: one, or several. Raises BadUsage for anything else."""
    several = (value,) if isinstance(value, (str, os.PathLike)) else value
    if isinstance(several, Iterable) and not isinstance(several, (bytes, Mapping)):
        parts = tuple(several)
        if all(isinstance(part, (str, os.PathLike)) for part in parts):
            return tuple(os.fspath(part) for part in parts)
    raise BadUsage(f"{name} is {_came(value)}, expected a path or a list of paths")


def _came(value: object) -> str:
    """What came, with its type where the value alone does not show it."""
    if hasattr(value, "columns") and hasattr(value, "shape"):
        return f"a {type(value).__name__} of shape {tuple(value.shape)}"
    return "None" if value is None else f"{in_short(value)} ({type(value).__name__})"


def _or_left_out(value: object) -> str:
    return ", or leave it out" if value is None else ""
