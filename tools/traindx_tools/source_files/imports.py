"""Which file of the project an import means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import Generic, Protocol, TypeVar

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)(?P<home>[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)"
                     r"|import[ \t]+(?P<modules>[^\n#]+))", re.MULTILINE)


class Named(Protocol):
    """Anything with the path of a Python file."""

    @property
    def path(self) -> str:
        """The path as the user named it."""


class Written(Named, Protocol):
    """Anything with the path and the text of a Python file."""

    @property
    def text(self) -> str:
        """What the file holds."""


Found = TypeVar("Found", bound=Named)
Read = TypeVar("Read", bound=Written)


class ModuleIndex(Generic[Found]):
    """Files by the dotted names under which they may be imported."""

    def __init__(self, files: Sequence[Found]) -> None:
        self._by_parts: dict[tuple[str, ...], Found] = {}
        self._by_suffix: dict[tuple[str, ...], list[Found]] = {}
        for file in files:
            parts = _parts(file.path)
            self._by_parts[parts] = file
            for i in range(max(0, len(parts) - 6), len(parts)):
                self._by_suffix.setdefault(parts[i:], []).append(file)

    def find(self, dotted: str, importer: Found, level: int) -> Found | None:
        """The file that `importer` means by a module name with `level` leading dots; None if it is no project file."""
        wanted = tuple(p for p in dotted.split(".") if p)
        here = _parts(importer.path)
        if importer.path.endswith("__init__.py") and PurePath(importer.path).name == "__init__.py":
            here = (*here, "__init__")
        if level:
            base = here[: len(here) - level]
            return self._by_parts.get((*base, *wanted)) if len(here) >= level else None
        if not wanted:
            return None
        for depth in range(len(here) - 1, -1, -1):  # nearest first: a file beside the importer wins
            found = self._by_parts.get((*here[:depth], *wanted))
            if found is not None and found is not importer:
                return found
        candidates = [f for f in self._by_suffix.get(wanted, []) if f is not importer]
        return candidates[0] if len(candidates) == 1 and len(wanted) > 1 else None


def imported(file: Read, index: ModuleIndex[Read]) -> Iterator[str]:
    """Paths of the project files that a file imports, packages on the way to a module included."""
    for match in _IMPORT.finditer(file.text):
        if match["modules"] is not None:
            dotted = [(part.split()[0], 0) for part in match["modules"].split(",") if part.split()]
        else:
            home, level = match["home"], len(match["dots"])
            names = [part.split()[0] for part in match["names"].strip("()").split(",") if part.split()]
            dotted = [(home, level), *((f"{home}.{name}".lstrip("."), level) for name in names)]
        for name, level in dotted:
            for depth in range(name.count(".") + 1):
                found = index.find(name.rsplit(".", depth)[0], file, level)
                if found is not None:
                    yield found.path


@lru_cache(maxsize=50_000)
def _parts(path: str) -> tuple[str, ...]:
    pure = PurePath(path)
    parts = [p for p in pure.with_suffix("").parts if p not in ("/", ".")]
    return tuple(parts[:-1] if parts and parts[-1] == "__init__" else parts)
