"""One way to say a place: `path:line` as seen from the workspace, also where a log names a path of another machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

_PATH = re.compile(r"(?<![\w/.:])(?:\.{1,2}/|/|[A-Za-z]:\\)[\w@%+=./\\-]*\w(?=[\s:,;()\"'\]]|$)")
"""A path that begins with a folder: `./log.txt`, `/home/user/project/train.py`."""

LONG = 40
"""Characters from which a path that is nobody's here is told by its file alone."""


@dataclass(frozen=True)
class NamedPlaces:
    """The files that were read, by the names that a person types."""

    files: tuple[str, ...]

    @classmethod
    def of(cls, files: Iterable[str]) -> NamedPlaces:
        """Of paths as they were read; `./` in front says nothing."""
        return cls(tuple(dict.fromkeys(_plain(f) for f in files if f)))

    def told(self, text: str) -> str:
        """The text, each path in it that is one of the files under its short name, long ones of others by their end."""
        return _PATH.sub(lambda found: self._name(found[0]), text)

    def _name(self, path: str) -> str:
        plain = _plain(path)
        if plain in self.files or path.startswith("./"):
            return plain
        if not plain.startswith("/") and ":\\" not in plain:
            return path
        parts = PurePosixPath(plain.replace("\\", "/")).parts
        ends = [f for f in self.files if parts[-len(PurePosixPath(f).parts):] == PurePosixPath(f).parts]
        longest = [f for f in ends if len(f) == max(map(len, ends))]
        if len(longest) == 1:
            return longest[0]
        return path if len(path) <= LONG else f"…/{parts[-1]}"


def _plain(path: str) -> str:
    return path.removeprefix("./")
