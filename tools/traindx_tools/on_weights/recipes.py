"""What settings beside files say of the parts in a sum of them: a soup's, a merge's, an ensemble's.

No key is known: a recipe is where each of the files stands beside one number. A mapping from names to numbers, a list
of entries with a name and a number each, or a list of names beside a list of as many numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from traindx_tools.on_data.hints import read_settings

DEEPEST, MOST_FILES, MOST_BYTES = 6, 16, 2**18


@dataclass(frozen=True)
class Recipe:
    """`parts`: the number that `file` gives to each of the members, in their order."""

    file: str
    parts: tuple[float, ...]


def recipes_of(made: str, members: Sequence[str]) -> list[Recipe]:
    """The recipes for these members in the settings of the folders from that of the made file up to that of the run."""
    folder = Path(made).absolute().parent
    found: list[Recipe] = []
    for home in dict.fromkeys((folder, *(Path(m).absolute().parent for m in members), folder.parent)):
        for name, tree in read_settings(_files(home)):
            found += [Recipe(name, parts) for parts in _in(tree, members, DEEPEST)]
    return list(dict.fromkeys(found))


def _files(home: Path) -> list[Path]:
    try:
        some = sorted(f for f in home.iterdir() if f.suffix in {".json", ".yaml", ".yml"} and f.is_file()
                      and not f.is_symlink() and f.stat().st_size <= MOST_BYTES)
    except OSError:
        return []
    return some[:MOST_FILES]


def _in(tree: Any, members: Sequence[str], depth: int) -> Iterator[tuple[float, ...]]:
    if not depth or not isinstance(tree, (Mapping, list)):
        return
    below = list(tree.values() if isinstance(tree, Mapping) else tree)[:200]
    for told in (_by_name(tree), _by_entry(below), _by_lists(tree)):
        if (parts := _parts(told, members)) is not None:
            yield parts
            return
    for one in below:
        yield from _in(one, members, depth - 1)


def _by_name(tree: Any) -> list[tuple[str, float]]:
    return [(str(k), float(v)) for k, v in tree.items() if _is_number(v)] if isinstance(tree, Mapping) else []


def _by_entry(entries: Sequence[Any]) -> list[tuple[str, float]]:
    """Of entries with a name each the one number that they have, also one level deeper."""
    found = []
    for entry in entries:
        flat = list(_leaves(entry, 2))
        names = [v for v in flat if isinstance(v, str)]
        numbers = [float(v) for v in flat if _is_number(v)]
        if len(numbers) == 1:
            found += [(n, numbers[0]) for n in names]
    return found


def _by_lists(tree: Any) -> list[tuple[str, float]]:
    """A list of names and a list of as many numbers under one key each."""
    lists = [v for v in tree.values() if isinstance(v, list) and v] if isinstance(tree, Mapping) else []
    names = [v for v in lists if all(isinstance(x, str) for x in v)]
    numbers = [v for v in lists if all(map(_is_number, v))]
    pairs = [(n, v) for n in names for v in numbers if len(n) == len(v)]
    return [(a, float(b)) for a, b in zip(*pairs[0], strict=True)] if len(pairs) == 1 else []


def _leaves(tree: Any, depth: int) -> Iterator[Any]:
    if isinstance(tree, (Mapping, list)):
        for one in list(tree.values() if isinstance(tree, Mapping) else tree)[:20] if depth else ():
            yield from _leaves(one, depth - 1)
    else:
        yield tree


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _parts(told: Sequence[tuple[str, float]], members: Sequence[str]) -> tuple[float, ...] | None:
    """A number for each member, and none that is told two."""
    found = []
    for member in members:
        mine = {v for name, v in told if _is_of(name, member)}
        if len(mine) != 1:
            return None
        found.append(mine.pop())
    return tuple(found) if any(found) else None


def _is_of(name: str, member: str) -> bool:
    """Whether a name is that of the file, with its folders or without, or that of the folder which it fills."""
    own = Path(member).absolute()
    told = PurePath(name)
    if not told.parts:
        return False
    whole = own.parts[-len(told.parts):] == told.parts
    return whole or (len(told.parts) == 1 and told.name in (own.stem, own.parent.name)) or (
        own.parent.parts[-len(told.parts):] == told.parts)
