"""Two environments: variables can be tried, versions of packages are named and cannot be changed here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.spaces.space import hashed
from traindx_tools.experiments.place import Prepared

_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)")
_VERSION = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:==|@|=)\s*(\S.*)")
OF_THE_SHELL = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "HOSTNAME", "TERM", "SSH_CLIENT", "SSH_CONNECTION",
                          "SSH_TTY", "XDG_SESSION_ID", "WINDOWID", "LS_COLORS"})  # fmt: skip
"""Differ between any two shells and are no part of a run."""
_SECRET = re.compile(r"(?:^|_)(?:API)?(?:KEYS?|TOKEN|SECRETS?|PASS(?:WORD|WD)?|CREDENTIALS?|AUTH|COOKIE)(?:_|$)", re.I)
"""Variables that look like a secret are neither shown nor given to a run."""


@dataclass(frozen=True)
class Read:
    """Variables and versions of one file."""

    variables: Mapping[str, str]
    versions: Mapping[str, str]


def read_environment(path: Path) -> Read:
    """Lines NAME=VALUE (`env`, .env), name==version (`pip freeze`), or a JSON object. Raises UnreadableInput."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if text.lstrip().startswith("{"):
        try:
            return Read({k: str(v) for k, v in json.loads(text).items() if not _SECRET.search(k)}, {})
        except (ValueError, RecursionError) as error:
            raise UnreadableInput(f"{path}: no JSON: {error}") from error
    variables, versions = {}, {}
    for line in text.splitlines():
        line = line.strip()
        variable, version = _VARIABLE.fullmatch(line), _VERSION.fullmatch(line)
        if version is not None and ("==" in line or " @ " in line):
            versions[version[1]] = version[2]
        elif variable is not None and variable[1] not in OF_THE_SHELL and not _SECRET.search(variable[1]):
            variables[variable[1]] = _unquoted(variable[2])
    if not variables and not versions:
        raise UnreadableInput(f"{path}: holds neither NAME=VALUE nor name==version lines; expected what `env` or "
                              "`pip freeze` prints")
    return Read(variables, versions)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


@dataclass(frozen=True)
class Environment:
    """See `spaces.space.Space`. A variable that the good one lacks is set to nothing there."""

    good: Read
    bad: Read
    command: str

    @classmethod
    def of(cls, good: Path, bad: Path, command: str) -> Environment:
        """Raises UnreadableInput."""
        return cls(read_environment(good), read_environment(bad), command)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the variables that differ."""
        every = dict.fromkeys([*self.bad.variables, *self.good.variables])
        return tuple(n for n in every if self.good.variables.get(n) != self.bad.variables.get(n))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """`OMP_NUM_THREADS: 1 -> 8`."""
        return tuple(f"{n}: {self.good.variables.get(n, 'not set')} -> {self.bad.variables.get(n, 'not set')}"
                     for n in self.names)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Versions that differ."""
        every = dict.fromkeys([*self.bad.versions, *self.good.versions])
        told = [f"{n} {self.good.versions.get(n, 'not there')} -> {self.bad.versions.get(n, 'not there')}"
                for n in every if self.good.versions.get(n) != self.bad.versions.get(n)]
        return (f"versions differ and cannot be changed here: {'; '.join(told)}",) if told else ()

    @cached_property
    def identity(self) -> str:
        """Of both sides' variables."""
        sides = self.good.variables, self.bad.variables
        return hashed(["environment", *(f"{n}={s.get(n)}" for n in self.names for s in sides)])

    def prepared(self, part: Items) -> Prepared:
        """The run with these variables as in the bad environment."""
        bad = {self.names[i] for i in part}
        wanted = {n: (self.bad if n in bad else self.good).variables.get(n) for n in self.names}
        gone = [n for n, v in wanted.items() if v is None]
        unset = f"unset {' '.join(gone)}; " if gone else ""
        return Prepared(unset + self.command, environment={n: v for n, v in wanted.items() if v is not None})
