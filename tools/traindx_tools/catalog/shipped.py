"""The data files that come with the catalog, whether the package lies in a folder or in an archive."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING

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
