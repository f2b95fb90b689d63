"""What the program is told: a setting, a variable of the environment, a patch."""

from __future__ import annotations

import re
from pathlib import Path

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions.intervention import ANY, BEFORE, Intervention, Setting
from traindx_tools.experiments.interventions.writing.diff import patched
from traindx_tools.experiments.interventions.writing.set_key import prepare_set
from traindx_tools.experiments.place import Prepared


def _set(change: Change, command: str, workspace: Path) -> Prepared:
    """One key after the other: each sees what the one before changed in the command."""
    whole = Prepared(command)
    for key, value in change.options.items():
        one = prepare_set(key, value, whole.command, workspace)
        both = set(one.files) & set(whole.files)
        if both:
            raise BadUsage(f"two settings of {change} stand in {', '.join(sorted(both))}: make one change of each.")
        whole = Prepared(one.command, files={**whole.files, **one.files})
    return whole


def _environment(change: Change, command: str, workspace: Path) -> Prepared:
    for name in change.options:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise BadUsage(f"{name!r} is no name of an environment variable.")
        if name in ("PYTHONPATH", "TRAINDX_LIVE"):
            raise BadUsage(f"{name} is how the instruments reach the process and cannot be changed.")
    return Prepared(command, {k: v if isinstance(v, str) else str(int(v)) if isinstance(v, bool) else str(v)
                              for k, v in change.options.items()})


def _patch(change: Change, command: str, workspace: Path) -> Prepared:
    name = str(change.options["file"])
    path = Path(name) if Path(name).is_absolute() else workspace / name
    if not path.is_file():
        path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadUsage(f"the patch {name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    return Prepared(command, files=patched(text, workspace))


INTERVENTIONS = (
    Intervention(
        "set", "one setting of the program",
        changes="The key is set where it is really read: the option of the command line where the program has one "
                "(argparse, click, typer, fire, tyro, dataclass parsers, Hydra, OmegaConf, LightningCLI), else the one "
                "key of the YAML, JSON or TOML file that the run reads, else the default in its source.",
        keeps="Everything else, also comments and formatting of an edited file. `FILE:key` means the place of that "
              "file.",
        shows="That this setting does it.",
        cannot_tell="Whether the program overwrites the value later. Several places of one kind are an error that "
                    "names them.",
        holds=BEFORE, frameworks=(ANY,), horizon=30, free=True, preparation=_set),
    Intervention(
        "env", "a variable of the environment",
        changes="The variable is set for the command.",
        keeps="All other variables, command and files.",
        shows="That this variable does it: threads, allocators, NCCL, caches, flags of a framework.",
        cannot_tell="Whether anything reads it.",
        holds=BEFORE, frameworks=(ANY,), horizon=20, free=True, preparation=_environment),
    Intervention(
        "patch", "a patch of the program's files",
        changes="The files of the copy are changed as a unified diff says; its context has to fit line by line.",
        keeps="All other files.",
        shows="That these lines do it.",
        cannot_tell="Which of them, where there are several.",
        holds=BEFORE, frameworks=(ANY,), horizon=20,
        options=(Setting("file", "path of the unified diff", required=True),), preparation=_patch),
)
