"""What a session is begun or gone on with, as a caller hands it over: checked before anything starts.

Each function takes what is convenient to write and returns what the session keeps. What makes no sense raises BadUsage:
what came, what was expected.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from traindx import arguments
from traindx.characterize import read_symptom
from traindx.journal import read_journal
from traindx.model import Artifacts, Budget, Symptom, Verify
from traindx.session_folder import SessionFolder, opening_of
from traindx.verify import verify_from
from traindx_tools.errors import BadUsage
from traindx_tools.scope.find import entry_file

Told = str | Symptom | Mapping[str, Any]


def symptom_from(told: Told) -> Symptom:
    """The symptom of a sentence, of a form or of its fields."""
    if not isinstance(told, (str, Symptom, Mapping)):
        raise BadUsage(f"symptom is of type {type(told).__name__}: give a sentence ('' where there is nothing to say), "
                       "a Symptom, or its fields")
    try:
        return read_symptom(told)
    except ValidationError as error:
        raise BadUsage(f"the symptom makes no sense: {_first(error)}") from error


def budget_from(given: Budget | Mapping[str, Any] | float | None) -> Budget | None:
    """A `Budget` from its fields, or from the seconds alone."""
    if given is None or isinstance(given, Budget):
        return given
    if not isinstance(given, Mapping) and (isinstance(given, bool) or not isinstance(given, (int, float))):
        raise BadUsage(f"budget is of type {type(given).__name__}: give seconds, or Budget(seconds=1800, attempts=6)")
    try:
        return Budget.model_validate(given if isinstance(given, Mapping) else {"seconds": given})
    except ValidationError as error:
        raise BadUsage(f"the budget makes no sense: {_first(error)}") from error


def larger(folder: str | Path, seconds: float | None, attempts: int | None) -> Budget | None:
    """The session's budget with what a person changes of it; None where they change nothing."""
    if seconds is None and attempts is None:
        return None
    now = opening_of(read_journal(SessionFolder(Path(folder)).journal)).budget
    return Budget(seconds=now.seconds if seconds is None else seconds,
                  attempts=now.attempts if attempts is None else attempts)


def artifacts_from(given: Artifacts | Mapping[str, Any] | Sequence[str | Path] | None) -> Artifacts:
    """`Artifacts` from a list of paths or from roles."""
    if given is None or isinstance(given, Artifacts):
        return given or Artifacts()
    if isinstance(given, Mapping):
        try:
            return Artifacts.model_validate(given)
        except ValidationError as error:
            raise BadUsage(f"the artifacts make no sense: {_first(error)}") from error
    if not isinstance(given, (str, Path, list, tuple, set, frozenset)):
        raise BadUsage(f"artifacts is of type {type(given).__name__}: give a list of paths, or roles with paths")
    return Artifacts(paths=(str(given),) if isinstance(given, (str, Path)) else tuple(map(str, given)))


def entry_of(entry: Sequence[str | Path] | str | Path, root: Path) -> tuple[str, ...]:
    """The entry points as absolute paths. Raises BadUsage for one that is no Python file."""
    return tuple(str(entry_file(e, root)) for e in arguments.paths("entry", entry))


def there(given: Artifacts, root: Path) -> Artifacts:
    """The artifacts, where each path that was listed names something, from here or in the workspace.

    Raises BadUsage: a name with a typing error would be worked without, and nobody would notice.
    """
    absent = [p for p in given.paths if "://" not in p and not any(c in p for c in "*?[")
              and not os.path.exists(p) and not os.path.exists(root / p)]
    if absent:
        named = ", ".join(a[:200] for a in absent)
        raise BadUsage(f"there is no file or folder {named}, here or in {root}: give artifacts that exist")
    return given


def verification(given: Verify | Mapping[str, Any] | str | Sequence[str] | None, root: Path) -> Verify | None:
    """The `Verify`, where it can be one and the script that its command starts is there. Raises BadUsage."""
    if given is not None and not isinstance(given, (Verify, Mapping, str, list, tuple)):
        raise BadUsage(f"verify is of type {type(given).__name__}: give a shell command, a list of arguments, or a "
                       "Verify")
    made = verify_from(given)
    if made is not None and made.command is not None:
        runnable(made.command, root, "verify")
    return made


def runnable(command: str | Sequence[str], root: Path, option: str) -> None:
    """Raises BadUsage for a command that is an option, whose quotes do not close, or whose script is not there.

    Looked at is `python SCRIPT` where nothing before it could change the folder or make the script; what cannot be
    told from the words is left to the run.
    """
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise BadUsage(f"{option}: the command {command!r} cannot be read ({str(error).lower()}): close its quotes"
                       ) from error
    if words and words[0].startswith("-"):  # `--run --json`: what was meant for traindx became the command
        raise BadUsage(f"{option} takes the command that starts the training and got {words[0]!r}: write it right "
                       f"behind, in quotes, as in {option} 'python train.py'")
    script = script_of(words)
    if script is None or (root / script).exists():
        return
    near = sorted(p.name for p in (root / script).parent.glob("*.py"))[:5] if (root / script).parent.is_dir() else []
    beside = f"; there is {', '.join(near)}" if near else ""
    raise BadUsage(f"{option}: there is no script {script} in {root}{beside}: give the command that starts the "
                   "training")


_SHELL = frozenset(";&|<>()$`*?{}\n")
_ALONE = frozenset({"-u", "-B", "-E", "-I", "-O", "-OO", "-P", "-s", "-S", "-v", "-b", "-q", "-x", "-i"})
"""Options of Python without a value, which stand before a script."""


def script_of(words: Sequence[str]) -> str | None:
    """The script that a plain `[NAME=VALUE] python SCRIPT` starts; None for any other command."""
    rest = list(words)
    while rest and "=" in rest[0] and rest[0].partition("=")[0].isidentifier():
        rest = rest[1:]
    if not rest or not Path(rest[0]).name.startswith("python"):
        return None
    rest = rest[1:]
    while rest and rest[0] in _ALONE:
        rest = rest[1:]
    plain = bool(rest) and rest[0].endswith(".py") and not _SHELL.intersection(rest[0])
    return rest[0] if plain else None


def callables(**given: Callable[..., Any] | None) -> None:
    """Raises BadUsage for a callback that cannot be called."""
    for name, value in given.items():
        if value is not None and not callable(value):
            expected = _CALLED.get(name, "give a function")
            raise BadUsage(f"{name} is of type {type(value).__name__} ({value!r:.60}): {expected}")


_CALLED = {
    "approve": "give a function that takes the Diagnosis and returns a Decision (Decision.approve(diagnosis, 'A')), or "
               "None to decide later",
    "hear": "give a function that takes a Notice",
    "fixer": "give a function that takes the Diagnosis and the Fix and returns ProposedEdits",
}


def _first(error: ValidationError) -> str:
    one = error.errors()[0]
    where = ".".join(str(p) for p in one["loc"]) or "the fields"
    return f"{where}: {one['msg']}, got {one['input']!r:.80}"
