"""The tables of this package as they are written, each read once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def table(*name: str) -> dict[str, Any]:
    """One table by its path below this package: `table("pages", "step_order.toml")`."""
    found: dict[str, Any] = tomllib.loads(files("traindx_tools.knowledge").joinpath(*name).read_text(encoding="utf-8"))
    return found


def every_page() -> Iterator[tuple[str, dict[str, Any]]]:
    """The ids that have a page in `pages/`, of every family, each with its page."""
    for file in sorted(files("traindx_tools.knowledge").joinpath("pages").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            yield from table("pages", file.name).items()


@cache
def words(name: str, *keys: str) -> frozenset[str]:
    """One list of names of a table: `words("names.toml", "optimizers")`, `words("data.toml", "draws", "calls")`."""
    found: Any = table(name)
    for key in keys:
        found = found[key]
    return frozenset(found)
