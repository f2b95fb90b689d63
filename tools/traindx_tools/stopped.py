"""From an exception in a log to the setting that caused it: the traceback, the code and the configuration together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from traindx_tools.finding import Finding
from traindx_tools.on_code.project import Project
from traindx_tools.on_logs.run import ErrorEvent
from traindx_tools.on_settings.observe import OF_TOOLS
from traindx_tools.on_settings.passed import passed_settings
from traindx_tools.on_settings.rules import s103_stops_the_program
from traindx_tools.on_settings.seen import Handed, SettingsSeen, Stopped
from traindx_tools.on_settings.written import ENDINGS, SettingsFile, read

MOST_FILES = 50
"""Configuration files that are read: where there are more, which one the run read is not known."""
MOST_ERRORS = 20


def by_settings(errors: Iterable[ErrorEvent], projects: Sequence[Project], code: Sequence[Path],
                named: Iterable[str], root: Path) -> Iterator[Finding]:
    """Findings S103. `code`: the files of the run, beside which configurations are looked for; `named`: paths that were
    given or found; `root`: the folder from which they are shown. Nothing is yielded where no exception passed through
    the run's own code."""
    ended = [s for s in map(_stopped, list(errors)[:MOST_ERRORS]) if s is not None and s.own]
    if not ended or not projects:
        return
    handed = [Handed(p.file, p.line, p.end_line, p.callee, p.argument, p.keys) for p in passed_settings(projects)]
    files = list(_configurations(code, named, root)) if handed else []
    if files:
        yield from s103_stops_the_program.check(SettingsSeen(files, handed=handed, stopped=ended))


def _stopped(error: ErrorEvent) -> Stopped | None:
    if error.kind != "exception" or not error.frames:
        return None
    own = tuple((f.file, f.line) for f in reversed(error.frames) if not f.library)
    return Stopped(error.type, error.message, own, error.frames[-1].code)


def _configurations(code: Sequence[Path], named: Iterable[str], root: Path) -> Iterator[SettingsFile]:
    with suppress(ImportError):  # the reader takes what is there, and imports nothing in a training process
        import yaml  # noqa: F401
    folders = dict.fromkeys(os.path.dirname(os.path.abspath(f)) for f in code)
    beside = [os.path.join(d, n) for d in folders for n in _names(d)]
    given = [os.path.abspath(n) for n in named if "://" not in n and n != "-"]
    paths = dict.fromkeys(p for p in (*given, *beside) if p.endswith(ENDINGS) and os.path.basename(p) not in OF_TOOLS)
    for path in list(paths)[:MOST_FILES]:
        file = read(path)
        if file is not None:
            yield replace(file, path=os.path.relpath(path, root) if Path(path).is_relative_to(root) else path)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
