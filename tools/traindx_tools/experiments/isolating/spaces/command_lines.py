"""Two command lines: options of argparse and click, Hydra's overrides, variables before the program."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cached_property

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.spaces.space import hashed
from traindx_tools.experiments.place import Prepared

_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OVERRIDE = re.compile(r"([+~]{0,2}[A-Za-z_][\w./@:-]*)(?:=(.*))?", re.DOTALL)
_OPTION = re.compile(r"-{1,2}[A-Za-z]")
_SHELL = re.compile(r"[|;&<>`]|\$\(")

Words = tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Words that belong together, under the name that they have on both lines."""

    name: str
    words: Words

    @property
    def text(self) -> str:
        """As typed."""
        return shlex.join(self.words)


def groups_of(line: str) -> tuple[Group, ...]:
    """Variables, words by their place, options with their values, overrides by their key. Raises BadUsage."""
    if _SHELL.search(line):
        raise BadUsage(f"a command line with pipes, redirections or several commands cannot be taken apart: {line}")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise BadUsage(f"no shell words ({error}): {line}") from None
    found: dict[str, Group] = {}
    current = ""
    started, place = False, 0
    for word in words:
        variable = None if started else _VARIABLE.fullmatch(word)
        override = _OVERRIDE.fullmatch(word) if "=" in word or word.startswith("~") else None
        if variable is not None:
            name, current = f"variable {variable[1]}", ""
        elif _OPTION.match(word):
            started = True
            name = word.partition("=")[0]
            current = name if "=" not in word else ""
        elif current:
            name = current
        elif override is not None and started:
            name = override[1].lstrip("+~")
        else:
            started, name, place = True, f"word {place + 1}", place + 1
        held = found[name].words if name in found else ()
        found[name] = Group(name, (*held, word))
    return tuple(found.values())


@dataclass(frozen=True)
class CommandLines:
    """See `spaces.space.Space`."""

    good: tuple[Group, ...]
    bad: tuple[Group, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, good: str, bad: str) -> CommandLines:
        """Raises BadUsage for a line that is no single command."""
        return cls(groups_of(good), groups_of(bad))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the groups that differ, in the order of the bad line."""
        sides = [{g.name: g.words for g in side} for side in (self.good, self.bad)]
        every = dict.fromkeys(g.name for g in (*self.bad, *self.good))
        return tuple(n for n in every if sides[0].get(n) != sides[1].get(n))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """`--lr 0.1 -> --lr 1.0`."""
        sides = [{g.name: g.text for g in side} for side in (self.good, self.bad)]
        return tuple(f"{sides[0].get(n, 'not given')} -> {sides[1].get(n, 'not given')}" for n in self.names)

    @cached_property
    def identity(self) -> str:
        """Of both lines."""
        return hashed(["command lines", *(g.text for g in self.good), "against", *(g.text for g in self.bad)])

    def prepared(self, part: Items) -> Prepared:
        """The line with these groups as on the bad one."""
        wanted = {self.names[i] for i in part}
        lasting = [g for g in self.good if g.name not in wanted]
        order = {n: i for i, n in enumerate(dict.fromkeys(g.name for g in (*self.good, *self.bad)))}
        both = sorted([*lasting, *(g for g in self.bad if g.name in wanted)], key=lambda g: _rank(g, order))
        variables = [v for g in both if g.name.startswith("variable ") for v in g.words]
        environment = dict(v.split("=", 1) for v in variables)
        words = [w for g in both if not g.name.startswith("variable ") for w in g.words]
        return Prepared(shlex.join(words), environment=environment)


def _rank(group: Group, order: dict[str, int]) -> tuple[bool, int]:
    """Options last: one that takes several values would swallow what follows it."""
    return not group.name.startswith(("variable ", "word ")), order[group.name]
