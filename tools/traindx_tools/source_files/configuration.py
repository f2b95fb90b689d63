"""Configuration files that a script opens by a constant name, read as plain data."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

MAX_BYTES = 200_000

_opened: ContextVar[dict[str, str] | None] = ContextVar("opened", default=None)


@contextmanager
def recording() -> Iterator[dict[str, str]]:
    """Collects what is read meanwhile: the absolute path and `digest` of each file, also of those that are not there.

    A cached audit holds only as long as these stay as they were.
    """
    opened: dict[str, str] = {}
    token = _opened.set(opened)
    try:
        yield opened
    finally:
        _opened.reset(token)


def digest(path: Path) -> str:
    """The SHA-256 of a file of acceptable size, else ""."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if _acceptable(path) else ""
    except OSError:
        return ""


def _acceptable(path: Path) -> bool:
    """Whether it is a file (a pipe would be waited for) of acceptable size. Raises OSError."""
    about = path.stat()
    return stat.S_ISREG(about.st_mode) and about.st_size <= MAX_BYTES


def text_of(name: str, script: str) -> str | None:
    """The text of the file `name` below the folder of `script`; None where it is not there or no text."""
    folder = Path(script).parent
    try:
        path = (folder / name).resolve()
        if Path(name).is_absolute() or not path.is_relative_to(folder.resolve()):
            return None
        if (opened := _opened.get()) is not None:
            opened[str(path)] = digest(path)
        return path.read_bytes().decode("utf-8") if _acceptable(path) else None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return None


def data_of(name: str, script: str) -> dict[Any, Any] | None:
    """What stands in the file `name` below the folder of `script`; None where it is not there or of no known kind."""
    text = text_of(name, script)
    try:
        data = None if text is None else _parsed(text, Path(name).suffix)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _parsed(text: str, suffix: str) -> Any:
    if suffix == ".json":
        return json.loads(text)
    if suffix in (".yaml", ".yml"):
        import yaml

        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from error
    return None
