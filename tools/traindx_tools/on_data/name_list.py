"""A list of names with an index each, as a small file beside the data gives it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NameList:
    """Names by their index."""

    file: str
    """As the user named it."""
    field: str
    """Keys that lead to it, "" where the file is the list."""
    names: tuple[str, ...]
    numbered: bool
    """Whether the file gives each name its number."""
    is_index: bool
    """Whether the order means an index: five numbers and more from 0 on, or it is called as such lists are."""
    first: int = 0
    """The number of the first name, where the file gives each its number."""
    beside_weights: bool = False
    """Whether a file of weights lies in its folder, and not in that of every such list."""
