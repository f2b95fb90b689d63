"""From a change and a seed to a run that can be started: what the table of interventions prepares, for one command."""

from __future__ import annotations

import re
from pathlib import Path

from traindx_tools.experiments.change import Change
from traindx_tools.experiments.experiment import Prepare
from traindx_tools.experiments.interventions import check, intervention, prepare_all, settings_options
from traindx_tools.experiments.place import Prepared

SEED = "seed"
"""The intervention that adds a number to every seed of the process."""


def preparing(command: str, workspace: Path, seed_option: str = "") -> Prepare:
    """What prepares the runs of a command. `seed_option`: the program's own option for its seed, as in "--seed".

    With it a placebo is a run with another number behind that option; without it all seeds of the process are moved.
    Raises BadUsage, when it is called, for a change that is none or cannot be made here.
    """
    def prepare(change: Change, seed: int) -> Prepared:
        changes = [] if change.is_control else [change]
        if seed and not seed_option:
            changes.append(Change(SEED, {"by": seed}))
        told = with_seed(command, seed_option, seed) if seed_option else command
        made = prepare_all([check(c) for c in changes], told, workspace)
        return Prepared(made.command, made.environment, made.files, made.inside, made.probes,
                        {**made.options, **settings_options(made)})

    return prepare


def with_seed(command: str, option: str, seed: int) -> str:
    """The command with so much added to its seed; where it names none, `seed` itself (0: as it is)."""
    if not seed:
        return command
    written = re.compile(rf"(?<!\S)({re.escape(option)})(=|\s+)(['\"]?)(\d+)\3(?!\S)")
    if written.search(command):
        return written.sub(lambda m: f"{m[1]}{m[2]}{int(m[4]) + seed}", command)
    joined = "=" if option.startswith("--") or "=" in option else " "
    return f"{command} {option.rstrip('=')}{joined}{seed}"


def least_steps(change: Change) -> float:
    """The fewest steps after which the effect of a change can be judged."""
    return 0.0 if change.is_control else float(intervention(change.name).horizon)
