"""What every space is: its differences by name, and the run in which some of them are as in the bad one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.place import Prepared


class Space(Protocol):
    """Differences are numbered from 0; `labels[i]` says what the i-th is."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Each difference in words, unique."""

    @property
    def identity(self) -> str:
        """A hash of everything that the runs depend on besides the command and the workspace."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What differs besides and cannot be changed, and what a person should know of how it is changed."""

    def prepared(self, part: Items) -> Prepared:
        """The run in which these differences are as in the bad run and all others as in the good one."""


def hashed(parts: Iterable[bytes | str]) -> str:
    """One hash of many parts; where one ends and the next begins counts."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


def over(base: Prepared, prepared: Prepared) -> Prepared:
    """The second on top of the first: its files and variables win, its command is taken."""
    files: Mapping[str, bytes | None] = {**base.files, **prepared.files}
    return replace(prepared, environment={**base.environment, **prepared.environment}, files=files)
