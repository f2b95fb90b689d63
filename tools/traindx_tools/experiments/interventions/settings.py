"""What the program is told: a setting, a variable of the environment, a patch."""

from __future__ import annotations

import re
from pathlib import Path

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions.intervention import ANY, BEFORE, Intervention, Setting
from traindx_tools.experiments.interventions.writing.diff import patched
from traindx_tools.experiments.interventions.writing.edits import KINDS, edits_of
from traindx_tools.experiments.interventions.writing.program import SHELL_SUFFIXES, Program
from traindx_tools.experiments.interventions.writing.set_key import prepare_set
from traindx_tools.experiments.place import Prepared


def _set(change: Change, command: str, workspace: Path) -> Prepared:
    """One key after the other: each sees what the one before changed in the command."""
    whole = Prepared(command)
    for key, value in change.options.items():
        written = {name: text for name, text in whole.files.items() if text is not None}
        one = prepare_set(key, value, whole.command, workspace, written)
        both = {n for n in set(one.files) & set(whole.files) if n.endswith(SHELL_SUFFIXES)}
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


def _edit(change: Change, command: str, workspace: Path) -> Prepared:
    """The one edit of that kind at that place of the program's source."""
    at, do = str(change.options["at"]), str(change.options["do"])
    told = re.fullmatch(r"(.+\.py):(\d+)(?::(\d+))?", at)
    program = Program(command, workspace)
    if told is None or told[1] not in program.trees:
        raise BadUsage(f"at={at}: expected FILE:LINE or FILE:LINE:COLUMN of one of {', '.join(program.trees)}.")
    name, line, column = told[1], int(told[2]), int(told[3] or 0)
    text = program.sources[name]
    here = [e for e in edits_of(text, program.trees[name]) if e.line == line and (not column or e.column == column)]
    found = [e for e in here if e.do == do]
    if not found:
        others = ", ".join(dict.fromkeys(f"at={name}:{e.line}:{e.column},do={e.do}" for e in here))
        raise BadUsage(f"nothing at {at} can be {do}; {f'there is {others}' if others else 'no edit begins there'}.")
    edit = found[0]
    return Prepared(command, files={name: (text[:edit.start] + edit.text + text[edit.end:]).encode()})


INTERVENTIONS = (
    Intervention(
        "edit", "one small edit of the source",
        changes="At one place of the program's source a step is left out (`left-out`), a call is replaced by what it "
                "changes (`unwrapped`), a comparison, a flag or min and max are turned (`turned`), two arguments "
                "(`swapped`) or two statements (`exchanged`) change places, a condition holds `always` or `never`, the "
                "`whole` stands for a slice, or a value stands without its sign or negation (`plain`).",
        keeps="All other source, and all other files.",
        shows="That this place takes part: what stands there brings the symptom, or hides what would undo it.",
        cannot_tell="Whether the edit mends it or makes the measure easier: an evaluation that sees what it should not "
                    "gets better as well.",
        holds=BEFORE, frameworks=(ANY,), horizon=20,
        options=(Setting("at", "FILE:LINE or FILE:LINE:COLUMN", required=True),
                 Setting("do", "what is done there", required=True, choices=KINDS)), preparation=_edit),
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
