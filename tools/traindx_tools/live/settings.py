"""What a process is told of the run it takes part in: one environment variable, inherited by every child process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VARIABLE = "TRAINDX_LIVE"
"""Environment variable that holds the settings as JSON; without it no instrument starts."""

WATCH, ORIGIN = "watch", "origin"
"""The modes of a process: probes watch each step, or the step that went wrong is traced operation by operation."""

SNAPSHOT = "snapshot"
"""The probe that keeps each step to run it again in the process, for those who asked."""

FILE_BOUND = 16 * 2**20
"""Bytes that one rank's file may hold: 10,000 steps of a hundred metrics."""


@dataclass(frozen=True)
class Settings:
    """Where a process writes and what it runs.

    `probes` are names; "always" stands for every probe that is always on. `options` go to the probes as they are.
    """

    folder: str
    probes: tuple[str, ...] = ("always",)
    mode: str = WATCH
    bound: int = FILE_BOUND
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_text(self) -> str:
        """The value of the environment variable."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """The inverse of `to_text`. Raises ValueError, TypeError or KeyError on anything else."""
        told = json.loads(text)
        return cls(**{**told, "probes": tuple(told["probes"])})


def settings_here(environment: Mapping[str, str] | None = None) -> Settings | None:
    """The settings of this process, None where it takes part in no run or they cannot be read."""
    text = (os.environ if environment is None else environment).get(VARIABLE)
    if not text:
        return None
    try:
        return Settings.from_text(text)
    except (ValueError, TypeError, KeyError):
        return None


def environment_for(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment whose Python processes attach the instruments: the start folder comes first on PYTHONPATH.

    An empty entry (`PYTHONPATH=:src`) stands for the current directory and is kept: programs import through it.
    """
    start = str(Path(__file__).parent / "site")
    given = environment.get("PYTHONPATH", "")
    others = [p for p in given.split(os.pathsep) if p != start] if given else []
    return {**environment, VARIABLE: settings.to_text(), "PYTHONPATH": os.pathsep.join([start, *others])}
