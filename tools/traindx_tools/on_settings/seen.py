"""What the rules on settings judge: the files that a process read, and the names that its code asks by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property

from traindx_tools.on_settings.named import Named
from traindx_tools.on_settings.written import Setting, SettingsFile
from traindx_tools.on_variables.composed import Composed

SOURCE = "settings as the process read them"
ALIKE = 0.85
"""Ratio of `difflib` from which two names are one with a slip: one letter in seven."""
SHORTEST = 4
"""Letters of a name below which others are like it by chance."""
_CLASS = re.compile(r"_*[A-Z]+[a-z]")


@dataclass(frozen=True)
class Handed:
    """A setting that a call in the code is given. `argument`: its name there, "" by position."""

    file: str
    line: int
    end_line: int
    callee: str
    argument: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Stopped:
    """An exception that ended the run. `own`: file and line of the frames of its own code, the innermost first;
    `innermost`: the source line of the innermost frame of all, "" where the log does not show it."""

    type: str
    message: str
    own: tuple[tuple[str, int], ...]
    innermost: str = ""


@dataclass(frozen=True, eq=False)
class SettingsSeen:
    """Of one process."""

    files: Sequence[SettingsFile]
    named: Named = field(default_factory=Named)
    handed: Sequence[Handed] = ()
    stopped: Sequence[Stopped] = ()
    composed: Sequence[Composed] = ()
    """What the program held while it trained."""

    @cached_property
    def spelt(self) -> Mapping[str, tuple[str, ...]]:
        """Every name that the code can ask by, under what is left of it without its spelling.

        An attribute in CapWords is a class of a module (`optim.Adam`), and no key.
        """
        found: dict[str, list[str]] = {}
        for name in self.named.texts | {a for a in self.named.attributes if not _CLASS.match(a)}:
            found.setdefault(plain(name), []).append(name)
        return {spelling: tuple(names) for spelling, names in found.items()}

    @cached_property
    def given(self) -> frozenset[str]:
        """Every key of every file."""
        return frozenset(k for f in self.files for keys in f.maps.values() for k in keys)

    @cached_property
    def defaulted(self) -> Sequence[str]:
        """The names that are asked for with a default, and that no file gives."""
        return sorted(self.named.defaulted - self.given)

    def others(self, file: SettingsFile) -> Iterator[SettingsFile]:
        """The other files that were read."""
        return (f for f in self.files if f is not file)


def plain(name: str) -> str:
    """A name without what spellings differ in: case, dashes, dots, underscores."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def abbreviates(a: str, b: str) -> bool:
    """Whether one name is the beginning of the other, such as optim and optimizer."""
    short, long = sorted((plain(a), plain(b)), key=len)
    return len(short) >= SHORTEST and long.startswith(short) and short != long


def shares_word(a: str, b: str) -> bool:
    """Whether the words of one name are some of the other's, such as smoothing and label_smoothing."""
    one, other = ({w for w in re.split(r"[^a-z0-9]+", n.lower()) if w} for n in (a, b))
    small, large = sorted((one, other), key=len)
    return bool(small) and small < large and max(map(len, small)) >= SHORTEST


def slip_of(a: str, b: str) -> bool:
    """Whether two names differ by a slip of the pen."""
    x, y = plain(a), plain(b)
    short, both = min(len(x), len(y)), len(x) + len(y)
    may = short > SHORTEST and x != y and 2 * short >= ALIKE * both  # the most that the ratio can be
    return may and SequenceMatcher(None, x, y).ratio() >= ALIKE


def children(setting: Setting) -> frozenset[str]:
    """The keys of a map."""
    return frozenset(i.key for i in setting.items) if setting.type == "map" else frozenset()
