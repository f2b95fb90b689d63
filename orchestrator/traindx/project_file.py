"""`traindx.toml`: what a project wants every later run to know.

    entry = ["train.py"]        # the Python files that start the training
    budget = 120                # seconds of experiments after --run
    lines = ["{step} | {loss}"] # what the numbers of the log's own lines are

    [names]                     # what the log's own names stand for
    Verlust = "loss"

    [[ignore]]                  # a rule or a failure mode that you disagree with, and why
    rule = "L204"
    because = "our loss is a sum over the batch"
    path = "eval/*.py"          # a pattern of files; leave it out: everywhere

The nearest one counts: in the folder of what was given, or in one above it, up to the top of the repository. Options on
the command line come before it. A file somebody else wrote can hide a finding and nothing worse, and never unsaid:
`traindx_tools.set_aside`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.on_logs.readers.line_forms import LineForm, parse_forms
from traindx_tools.rules import explained_rules
from traindx_tools.scope import Asked
from traindx_tools.set_aside import SetAside
from traindx_tools.sources import is_fetched
from traindx_tools.withdrawn import WITHDRAWN

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = "traindx.toml"
READ_AT_MOST = 2**16
"""Bytes: settings and reasons. Deep dotted keys take a parser of TOML quadratic time."""
MOST_BUDGET = 3600.0
"""Seconds that the file may ask for; `--budget` has no such limit."""
MOST_DOTS = 200
"""In one line; a reason may be long."""
LOCK_SECONDS = 20.0
_FOLDERS_ABOVE = 20
_KEYS = ("entry", "budget", "lines", "names", "ignore")
_IGNORE_KEYS = ("rule", "because", "path")


@dataclass(frozen=True)
class ProjectFile:
    """What stands in the file; everything empty where there is none."""

    path: Path | None = None
    entry: tuple[str, ...] = ()
    """Paths, absolute."""
    budget: float | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[SetAside, ...] = ()
    lines: tuple[LineForm, ...] = ()

    def asked(self, asked: Asked) -> Asked:
        """What was asked, with what the file adds: an entry point where none was named, what is set aside."""
        entry = asked.entry if asked.entry or asked.everything else self.entry
        return replace(asked, entry=entry, aside=(*asked.aside, *self.ignored))


NO_FILE = ProjectFile()


def read_project_file(folder: Path) -> ProjectFile:
    """The file that counts for what lies in a folder. Raises BadUsage, which names the file, the key and what to do."""
    path = find(folder)
    return NO_FILE if path is None else _read(path)


def find(folder: Path) -> Path | None:
    """The nearest `traindx.toml`: in the folder or above it, up to the repository's top."""
    at = home_of(folder)
    for place in (at, *at.parents)[:_FOLDERS_ABOVE]:
        if os.path.isfile(place / NAME):  # False also where it may not look
            return place / NAME
        if os.path.exists(place / ".git"):
            return None
    return None


def home_of(folder: Path) -> Path:
    """The project's folder, absolute: of a run that was fetched to a temporary place the current one."""
    return Path.cwd() if is_fetched(folder) else Path(os.path.abspath(folder))


def remember(folder: Path, aside: SetAside) -> Path:
    """Writes down what a person disagrees with, at the end of the file that counts, or of a new one in the folder.

    Nothing is written where it stands there already. Raises BadUsage for a file that is not as expected.
    """
    path = Path(os.path.realpath(find(folder) or home_of(folder) / NAME))  # a link stays one
    if os.path.lexists(path) and not path.is_file():
        raise BadUsage(f"{path} is no file: settings of a project cannot stand there")
    rows = [("rule", aside.name), ("because", aside.because), *([("path", aside.path)] if aside.path else [])]
    more = "[[ignore]]\n" + "".join(f"{key} = {_quoted(value)}\n" for key, value in rows)
    try:
        with FileLock(_lock_of(path), timeout=LOCK_SECONDS):
            _added(path, aside, more)
    except Timeout as error:
        raise UnreadableInput(f"{path} is being written by another process: try again") from error
    except OSError as error:
        raise UnreadableInput(f"{path} cannot be written: {error.strerror}. Add this to it yourself:\n{more}"
                              ) from error
    return path


def _lock_of(path: Path) -> str:
    """Who writes to this file at a time; beside other temporary files, so that the project keeps its own alone."""
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:24]
    return os.path.join(tempfile.gettempdir(), f"traindx-{os.getuid()}-{name}.lock")


def _added(path: Path, aside: SetAside, more: str) -> None:
    """The entry at the end of the file, in the way its lines end."""
    known = _read(path) if path.exists() else NO_FILE
    if any((k.name, k.because, k.path) == (aside.name, aside.because, aside.path) for k in known.ignored):
        return
    before = path.read_bytes().decode("utf-8") if path.exists() else ""
    if re.search(r"^\s*ignore\s*=", before, re.MULTILINE):
        raise BadUsage(f"{_shown(path)} holds `ignore = ...` in one line, which cannot be added to: write its entries "
                       "as tables ([[ignore]]), or remove it where it is empty")
    end = "\r\n" if "\r\n" in before else "\n"
    text = before + ("" if not before or before.endswith("\n") else end) + (end if before else "")
    text += more.replace("\n", end)
    made = path.with_name(f".{NAME}.{os.getpid()}")
    try:
        made.write_bytes(text.encode("utf-8"))
        os.replace(made, path)
    except OSError:
        made.unlink(missing_ok=True)
        raise


def checked(name: str, because: str, path: str = "", source: str = "") -> SetAside:
    """What is set aside. Raises BadUsage where the name is unknown or the reason is missing."""
    known = {*explained_rules(), *load_catalog(), *WITHDRAWN}
    rule, dash, number = name.rpartition("-")
    if dash and number.isdigit() and rule in known:
        name = rule  # L102-1, the first finding of L102: as a report prints it
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise BadUsage(f"{source}: there is no rule and no failure mode {name[:80]!r}.{hint} `traindx explain --list` "
                       "shows all")
    if not because.strip():
        raise BadUsage(f"{source}: {name} is set aside without a reason. Say why, so that the next person can judge "
                       "it: --because TEXT, or because = \"...\"")
    if path and name in load_catalog():
        raise BadUsage(f"{source}: {name} is a failure mode and has no files: leave `path` out, or name a rule")
    return SetAside(name, " ".join(because.split()), path, source)


def _quoted(text: str) -> str:
    """A basic string of TOML: as JSON has it, and DEL, which JSON leaves alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(path: Path) -> ProjectFile:
    try:
        if path.stat().st_size > READ_AT_MOST:
            raise BadUsage(f"{path} is larger than {READ_AT_MOST // 2**10} KiB: it holds settings and reasons only")
        text = path.read_bytes().decode("utf-8-sig")  # Notepad begins a file with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"{path} cannot be read: {error}. Correct it, or move it away") from error
    return _parsed(path, text)


def _parsed(path: Path, text: str) -> ProjectFile:
    try:
        if max((row.count(".") for row in text.splitlines()), default=0) > MOST_DOTS:
            raise ValueError(f"a line with more than {MOST_DOTS} dots")
        table = tomllib.loads(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"{path} is not valid TOML: {error or 'nested too deeply'}") from error
    shown = _shown(path)
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise BadUsage(f"{shown}: there is no setting {unknown[0]!r}. There are: {', '.join(_KEYS)}. What a language "
                       "model may cost stands in [tool.traindx] of pyproject.toml")
    return ProjectFile(path, _entry(path, table.get("entry", []), shown), _budget(table.get("budget"), shown),
                       _names(table.get("names", {}), shown), _ignored(table.get("ignore", []), shown),
                       _lines(table.get("lines", []), shown))


def _shown(path: Path) -> str:
    seen = os.path.relpath(path)
    return str(path) if seen.startswith(os.pardir) else seen


def _entry(path: Path, given: Any, source: str) -> tuple[str, ...]:
    files = [given] if isinstance(given, str) else given
    if not isinstance(files, list) or not all(isinstance(f, str) for f in files):
        raise BadUsage(f"{source}: entry is {str(given)[:80]!r}, expected a list of Python files")
    found = tuple(os.path.normpath(path.parent / f) for f in files)
    for name, file in zip(files, found, strict=True):
        if not os.path.isfile(file):
            raise BadUsage(f"{source}: entry names {name[:80]!r}, which is not there (from {path.parent})")
        if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(path.parent)):
            raise BadUsage(f"{source}: entry names {name[:80]!r}, outside of the file's folder: --entry takes it")
    return found


def _budget(given: Any, source: str) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= MOST_BUDGET:
        raise BadUsage(f"{source}: budget is {str(given)[:80]!r}, expected seconds from 0 to {MOST_BUDGET:g}; --budget "
                       "takes more")
    return float(given)


def _names(given: Any, source: str) -> Mapping[str, str]:
    if not isinstance(given, dict) or not all(isinstance(v, str) and v.strip() and k.strip() for k, v in given.items()):
        raise BadUsage(f'{source}: [names] holds lines such as Verlust = "loss": what the log calls it, and what it is')
    return {k.strip(): v.strip() for k, v in given.items()}


def _lines(given: Any, source: str) -> tuple[LineForm, ...]:
    if not isinstance(given, list) or not all(isinstance(g, str) for g in given):
        raise BadUsage(f'{source}: lines is a list of examples such as "{{step}} | {{loss}} | {{lr}}"')
    try:
        return tuple(replace(f, optional=True) for f in parse_forms(given))
    except UnreadableInput as refused:
        raise BadUsage(f"{source}: {refused}") from refused


def _ignored(given: Any, source: str) -> tuple[SetAside, ...]:
    if not isinstance(given, list) or not all(isinstance(g, dict) for g in given):
        raise BadUsage(f"{source}: ignore is a list of tables: [[ignore]], then rule and because")
    return tuple(_one(g, source) for g in given)


def _one(given: Mapping[str, Any], source: str) -> SetAside:
    no_text = [key for key, value in given.items() if not isinstance(value, str)]
    odd: Sequence[str] = sorted(set(given) - set(_IGNORE_KEYS)) or no_text
    if odd or "rule" not in given:
        raise BadUsage(f"{source}: [[ignore]] has {odd[0] if odd else 'no rule'!r}; expected texts: "
                       f"{', '.join(_IGNORE_KEYS)}")
    return checked(given["rule"], given.get("because", ""), given.get("path", ""), source)
