"""Configuration files that a script opens by a constant name, as values."""

from __future__ import annotations

from typing import Any

from traindx_tools.on_code.values import Bag, Const, Site, Table, Value
from traindx_tools.source_files.configuration import data_of

MAX_NODES = 5_000
"""Most values that are taken over: aliases in YAML can make a small file unfold without end."""


def read(name: str, script: str, site: Site) -> Value | None:
    """The file `name` below the folder of `script` as a table; None where it is not there or of no known kind."""
    data = data_of(name, script)
    return None if data is None else _value(data, site, [MAX_NODES])


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
