"""What each decision of a review does, in sentences: what is changed where, which command is run, how long, what then.

Said before the decision, from the session's own terms: nothing here decides or runs anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from traindx.diffs import changed_lines
from traindx.journal import read_journal
from traindx.model import Diagnosis, Fix, Verify
from traindx.place_words import one_and_also
from traindx.session_folder import Opening, SessionFolder, opening_of
from traindx.session_result import SessionResult
from traindx.steps.baseline import REPEAT_SECONDS, RUNS_AT_MOST
from traindx.typed_commands import workspace_option
from traindx.verify import runs_needed, shown
from traindx_tools.errors import TraindxError


@dataclass(frozen=True)
class Plan:
    """Sentences for each choice of the form."""

    options: Mapping[str, tuple[str, ...]]
    """By the letter of the option."""
    revise: str
    reject: str


def plan_of(result: SessionResult) -> Plan | None:
    """The plan of a session that waits at the gate; None where it cannot be read."""
    folder = SessionFolder(Path(result.folder))
    try:
        opening = opening_of(read_journal(folder.journal))
    except (TraindxError, OSError):
        return None
    if result.diagnosis is None:
        return None
    resumed = f"traindx resume {result.session}{workspace_option(result.workspace)}"
    options: dict[str, tuple[str, ...]] = {
        fix.option: (*_changes(fix, folder, resumed), *_verified(opening, folder, resumed))
        for fix in result.diagnosis.options}
    return Plan(options, revise="Nothing is changed. The instruments look again with your comment, and present a "
                                "diagnosis anew.",
                reject=_rejected(result.diagnosis))


def _rejected(d: Diagnosis) -> str:
    return (f"Nothing is changed. The cause above ({_title(d)}) is not proposed again in this session, and "
            "another one is looked for; where you name one, the experiment that would test it is shown.")


def _title(d: Diagnosis) -> str:
    from traindx_tools.catalog.catalog import load_catalog

    mode = load_catalog().get(d.failure_mode)
    return mode.title if mode is not None else d.failure_mode


def _changes(fix: Fix, folder: SessionFolder, resumed: str) -> Iterator[str]:
    where = one_and_also(fix.told)
    if fix.instructions or not fix.edits:
        yield (f"Changes nothing by itself: the session waits until you made the change at {where or 'the code'}. Then "
               f"type {resumed}")
        return
    lines = sum(max(map(len, changed_lines(e))) for e in fix.edits)
    yield f"Changes {lines} line{'s' if lines > 1 else ''} at {where} in {folder.workspace}, as the diff above shows."


def _verified(opening: Opening, folder: SessionFolder, resumed: str) -> Iterator[str]:
    how = opening.verify
    if how is None or how.command is None:
        yield ("Nothing is run: there is no command that verifies it. Run your training yourself, then type "
               f"{resumed} --passed or --failed (--failed takes the change back, "
               "--undo too and without a strike), or give one with --verify 'CMD'.")
        return
    command = shown(how.command)
    if not opening.allow_run:
        yield f"`{command}` would verify it, and is not run without your consent: {resumed} --run"
        return
    times = runs_needed(how, opening.symptom.reproducible)
    yield (f"Then runs `{command}` in {folder.workspace}: {_unfixed(how)}{_times(times)} with the change. Each run may "
           f"take {_minutes(how.timeout)} at most{_took(folder)}.")
    yield "Where it fails or shows no effect, the change is taken back and counts as one strike."


def _unfixed(how: Verify) -> str:
    if how.baseline_run:
        return f"{', '.join(how.baseline_run)} stands for the unfixed code, then "
    if not how.baseline:
        return ""
    return (f"first on the unfixed code in a copy (again, up to {RUNS_AT_MOST} times, where that takes no more than "
            f"{REPEAT_SECONDS:g} s in all), then ")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 120 else f"{seconds:g} s"


def _took(folder: SessionFolder) -> str:
    """How long a trial of the change took, where one ran through."""
    for file in sorted((folder.path / "evidence" / "trials").glob("*/changed/result.json")):
        try:
            seen = json.loads(file.read_text(encoding="utf-8"))
            if seen["exit_code"] == 0:
                return f"; a trial of the change took {float(seen['seconds']):.0f} s"
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return ""
