"""Configuration files that a script opens by a constant name, read as plain data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from traindx_tools.on_code.values import Bag, Const, Site, Table, Value

MAX_BYTES = 200_000
MAX_NODES = 5_000
"""Most values that are taken over: aliases in YAML can make a small file unfold without end."""

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
        return "" if path.stat().st_size > MAX_BYTES else hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def text_of(name: str, script: str) -> str | None:
    """The text of the file `name` below the folder of `script`; None where it is not there or no text."""
    folder = Path(script).parent
    try:
        path = (folder / name).resolve()
        if Path(name).is_absolute() or not path.is_relative_to(folder.resolve()):
            return None
        if (opened := _opened.get()) is not None:
            opened[str(path)] = digest(path)
        return None if path.stat().st_size > MAX_BYTES else path.read_bytes().decode("utf-8")
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return None


def read(name: str, script: str, site: Site) -> Value | None:
    """The file `name` below the folder of `script` as a table; None where it is not there or of no known kind."""
    text = text_of(name, script)
    if text is None:
        return None
    try:
        data = _parsed(text, Path(name).suffix)
    except (ValueError, RecursionError):
        return None
    return _value(data, site, [MAX_NODES]) if isinstance(data, dict) else None


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


def _value(data: Any, site: Site, left: list[int], depth: int = 0, keys: tuple[str, ...] = ()) -> Value:
    left[0] -= 1
    if left[0] < 0 or depth > 12:
        return Table({}, open=True)
    if isinstance(data, dict):
        known = {k: v for k, v in data.items() if isinstance(k, (str, int))}
        return Table({k: _value(v, site, left, depth + 1, (*keys, str(k))) for k, v in known.items()}, site=site)
    if isinstance(data, list):
        return Bag("list", [_value(v, site, left, depth + 1) for v in data], site=site)
    return Const(data if isinstance(data, (str, int, float, bool)) or data is None else str(data), False, keys)
