"""The data files that come with the catalog, whether the package lies in a folder or in an archive."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from traindx_tools.errors import CatalogError

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the oldest supported Python only
    import tomli as tomllib

if TYPE_CHECKING:
    from importlib.abc import Traversable

PACKAGE = "traindx_tools.catalog"


def shipped(name: str) -> Traversable:
    """A file or folder beside this module; a `Path` where the package is no archive."""
    return files(PACKAGE) / name


def toml_below(folder: Traversable) -> Iterator[Traversable]:
    """Every TOML file of a folder and of those in it, in the order of their names."""
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            yield from toml_below(entry)
        elif entry.name.endswith(".toml"):
            yield entry


def table(path: Traversable, mend: str = "install traindx anew") -> dict[str, Any]:
    """What a shipped TOML file holds. Raises CatalogError that names the file and what mends it."""
    try:
        read: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CatalogError(f"{path.name} of the catalog cannot be read ({error}): {mend}") from error
    return read
