"""How a run of a tracker is named."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from traindx_tools.errors import BadUsage

WANDB, MLFLOW, TENSORBOARD = "wandb", "mlflow", "tensorboard"
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_WANDB = "expected wandb:ENTITY/PROJECT/RUN, or wandb:RUN for one whose files are here; RUN is its id"
_EXPECTED = {WANDB: _WANDB, MLFLOW: "expected mlflow:RUN, with the run's id",
             TENSORBOARD: "expected tensorboard:FOLDER, the folder that `tensorboard --logdir` is given"}


@dataclass(frozen=True)
class Named:
    """`tracker`: "wandb", "mlflow" or "tensorboard"; `run`: the run's id, or the folder; `project`: "ENTITY/PROJECT"
    or ""."""

    tracker: str
    run: str
    project: str = ""

    @property
    def full(self) -> str:
        """As the tracker itself names it."""
        return f"{self.project}/{self.run}" if self.project else self.run

    def __str__(self) -> str:
        return f"{self.tracker}:{self.full}"


def named(path: str) -> Named | None:
    """The run that a name stands for; None for a path. Raises BadUsage where the name is none."""
    tracker, colon, rest = path.partition(":")
    if not colon or tracker not in _EXPECTED or rest.startswith("//") or os.path.exists(path):
        return None
    if tracker == TENSORBOARD:
        if not rest:
            raise BadUsage(f"{path!r} names no folder: {_EXPECTED[tracker]}.")
        return Named(tracker, os.path.expanduser(rest))
    parts = rest.split("/")
    if len(parts) not in ((1, 3) if tracker == WANDB else (1,)) or not all(map(_ID.fullmatch, parts)):
        beside = f" {rest[:200]} is a path that is here: give it without `{tracker}:`." if os.path.exists(rest) else ""
        raise BadUsage(f"{path[:200]!r} is no name of a run: {_EXPECTED[tracker]}.{beside}")
    return Named(tracker, parts[-1], "/".join(parts[:-1]))
