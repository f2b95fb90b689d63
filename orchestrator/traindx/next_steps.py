"""What to do after a diagnosis: commands that can be typed as they stand, and in words what no command can fetch.

The commands: a session that fixes and verifies, the checks that settle the first hypotheses, the training under
instruments, a look at the run. Where the code was not given and lies further up, the command names its folder.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from traindx.along import GOES_ALONG
from traindx.in_brief import WORTH_A_LINE
from traindx.log_lines import LOGGED, log_line
from traindx.offered import Ground, beside_here, can_be_typed, seen_from_here, typed, with_words
from traindx.proposal import code_place, measured_of
from traindx_tools.catalog.fitting import Circumstances
from traindx_tools.on_logs.artifacts import in_database
from traindx_tools.on_logs.in_memory import NAME as IN_MEMORY
from traindx_tools.on_logs.roles import is_known
from traindx_tools.scope.model import OTHER_PROGRAMS
from traindx_tools.sources import named

if TYPE_CHECKING:
    from traindx.examined import Examined
    from traindx_tools import triage

UNLIKELY = 0.03
"""Confidence below which a second hypothesis is not worth a command."""

SUSPECTED = 0.5
"""Confidence from which on the first hypothesis says itself what to look at next."""

MOST = 8
"""Commands that are named at most."""

MOST_EXPERIMENTS = 2
"""Experiments among them."""

FOLDERS_UP = 3
"""How far above a log its training code is looked for."""

SCRIPTS = 50
"""Python files of a folder that are looked at for it."""

_OF_SERIES = frozenset({"plot", "log"})
"""Commands that show series of metrics, and refuse a run without any."""

_OF_PATHS = frozenset({*_OF_SERIES, "diagnose", "debug", "experiment", "data", "weights", "hang", "replay"})
"""Commands whose arguments before the first option are paths."""

_FRAMEWORK = re.compile(r"^\s*(?:import|from)\s+(?:torch|jax|flax|tensorflow|keras|lightning|transformers|numpy)\b",
                        re.MULTILINE)


def commands(report: Examined, without: Collection[str] = ()) -> tuple[str, ...]:
    """What can be typed next, the most telling first; nothing about the failure modes in `without`."""
    if report.with_log and not report.made:
        return (report.with_log,)
    left = _left(report, without)
    stands = bool(left) and left[0] is report.seen.verdict.hypotheses[0]
    first = _code(report) if _codeless(report) else _session(report) if stands else ()
    tried = list(islice((*_associated(report), *_experiments(report, without)), MOST_EXPERIMENTS))
    unread = () if report.status == "diagnosis_complete" else _unread(report)
    found = [*unread, *report.extra_checks, *first, *_kept(report), *_instruments(report), *_ranks(report), *tried,
             *_checks(report, without), *_screen(report), *_code(report)]
    if report.status != "diagnosis_complete" or not stands:
        read = any(command.startswith("traindx log ") for command in found)
        found += [look for look in _looks(report, without) if not (read and look.startswith("traindx log "))]
    return tuple(c for c in dict.fromkeys(found) if _works(report, c))[:MOST]


def with_budget(report: Examined, command: str, seconds: int) -> str:
    """The diagnosis once more, with a command that is run and so many seconds of experiments after it."""
    return once_more(report, command, f" --budget {seconds}")


def once_more(report: Examined, command: str, options: str = "") -> str:
    """The diagnosis once more, with a command that is run."""
    subject = report.subject or typed([seen_from_here(report.places.root)])
    return f"traindx diagnose {subject} --run {typed([command])}{options}{with_words(report.seen.symptom)}"


def _works(report: Examined, command: str) -> bool:
    """Whether what a command of ours is given is there: its paths, a series to draw or to print."""
    words = shlex.split(command)
    if words[:1] != ["traindx"]:
        return True
    name, given = words[1], list(takewhile(lambda word: not word.startswith("--"), words[2:]))
    if name in _OF_SERIES and all(s.source == IN_MEMORY for s in report.seen.run.series if len(s)):
        return False
    if "-" in given:
        return name == "diagnose"  # the same input once more, with what its lines mean: the others would wait for it
    return name not in _OF_PATHS or all("://" in word or os.path.exists(word) or glob.glob(word)
                                        or named(word) or in_database(word) for word in given)


def _unread(report: Examined) -> Iterator[str]:
    """The same once more, with what the lines mean of which nothing was used, or the names that no rule knows."""
    lines = [a.lost for a in report.run.artifacts if a.lost is not None]
    lost = max(lines, key=lambda found: found.count, default=None)
    if not report.subject:
        return
    if lost is not None and lost.form:
        yield f"traindx diagnose {report.subject} --line {shlex.quote(lost.form)}"
    series = [s for s in report.seen.run.series if len(s)]
    if series and not any(map(is_known, series)) and report.status == "needs_more_data":
        yield f"traindx diagnose {report.subject} --name {shlex.quote(f'{series[0].original}=loss')}"


def _left(report: Examined, without: Collection[str]) -> list[triage.Hypothesis]:
    """The hypotheses that were not tried or rejected."""
    return [h for h in report.seen.verdict.hypotheses if h.mode.id not in without]


def _codeless(report: Examined) -> bool:
    """Whether a cause was found to which no line of code belongs: a session could propose no fix for it."""
    return (report.status == "diagnosis_complete"
            and code_place(report.seen.verdict.hypotheses[0], report.places) is None)


def _session(report: Examined) -> Iterator[str]:
    """The session that fixes and verifies what was diagnosed."""
    target = _one_path(report)
    if report.status != "diagnosis_complete" or target is None:
        return
    training = _training(report)
    verify = f" --verify {typed([training])}" if training else ""
    yield f"traindx debug {target}{_artifacts(report)}{verify}"


def _artifacts(report: Examined) -> str:
    """The option that names the records of a run that lie elsewhere than the session, which is where it ran."""
    given = [p for p in report.seen.paths if _workspace(p) not in (None, report.places.root)]
    return f" --artifact {typed(given)}" if len(given) == 1 and len(report.seen.paths) == 1 else ""


def _workspace(path: str) -> Path | None:
    """What a session or an experiment with this path takes for its workspace; None where it names nothing."""
    given = Path(path).resolve()
    return given if given.is_dir() else given.parent if given.exists() else None


def _one_path(report: Examined) -> str | None:
    """The one path that a session is about: what was given, else the folder of it all.

    Of a run in a copy, which is gone when the command ends, the folder that was copied.
    """
    root = report.places.root
    if _is_gone(report, root):
        return typed([seen_from_here(report.trial_run.workspace)]) if report.trial_run is not None else None
    given = [p for p in report.seen.paths if p != "-" and os.path.exists(p)]
    inside = [p for p in given if Path(p).resolve().is_relative_to(root)]
    if not inside:
        return typed([seen_from_here(root)]) if report.places.code else None
    alone = len(inside) == 1 == len(given) and _workspace(inside[0]) == root
    return typed([beside_here(inside[0]) if alone else seen_from_here(root)])


def _runs_in(report: Examined) -> Path:
    """The folder that a command of ours would be run in."""
    gone = report.trial_run is not None and _is_gone(report, report.places.root)
    return report.trial_run.workspace if gone and report.trial_run is not None else report.places.root


def _is_gone(report: Examined, path: Path) -> bool:
    """Whether a path lies in the folder of a new run's output."""
    return report.made is not None and path.resolve().is_relative_to(report.made.resolve())


def _checks(report: Examined, without: Collection[str]) -> Iterator[str]:
    """The commands of the first two hypotheses' checks that fit this workspace; none of what is next to excluded."""
    for number, found in enumerate(_left(report, without)[:2]):
        if number and found.confidence < UNLIKELY:
            continue
        measured = measured_of(found)
        for step in (*found.mode.confirm, *found.mode.rule_out):
            command = "" if step.edited else report.command(step.command, measured)
            if can_be_typed(command):
                yield command


def _experiments(report: Examined, without: Collection[str]) -> Iterator[str]:
    """Experiments that would decide the first hypotheses, where it is known how the run is started."""
    from traindx.decidable import commands as of_experiments
    target, training = _one_path(report), _training(report)
    likely = [h.mode.id for h in _left(report, without)[:2] if h.speaks_for and h.confidence >= UNLIKELY]
    if report.status == "needs_more_data" and target is not None and training and likely:
        yield from of_experiments(report, likely, training, target, _runs_in(report))


def _screen(report: Examined) -> Iterator[str]:
    """Everything changed, one at a time, where nothing that was read says what to look at and something can be."""
    from traindx.decidable import can_be_screened
    target, training = _one_path(report), _training(report)
    first = next(iter(report.seen.verdict.hypotheses), None)
    unknown = report.status == "needs_more_data" and (first is None or first.confidence < SUSPECTED)
    if not unknown or target is None or not training or any(f.rule == "X105" for f in report.seen.findings):
        return
    code = Circumstances.of(report.seen.code, ()).code
    if can_be_screened(training, _runs_in(report), code):
        yield f"traindx experiment {target} --run {typed([training])} --screen{with_words(report.seen.symptom)}"


def _associated(report: Examined) -> Iterator[str]:
    """The run without the file that goes along with its anomalies: an association decides nothing, this does."""
    target, training = _one_path(report), _training(report)
    files = [f.measured.get("file") for f in report.seen.findings if f.rule in GOES_ALONG]
    for name in dict.fromkeys(str(f) for f in files if f):
        if target is not None and training:
            change = typed([f"files-left-out:files=*{name}"])
            yield f"traindx experiment {target} --run {typed([training])} --change {change}"


def _training(report: Examined) -> str | None:
    """The command that trains: the one that was agreed to, else, or where that one trained nothing when it was run, the
    one that the folder shows."""
    from traindx.fruitless import fruitless
    from traindx.verify import shown

    agreed = report.trial_run.how.command if report.trial_run is not None and not fruitless(report.remarks) else None
    return shown(agreed) if agreed else report.places.training_command


def _kept(report: Examined) -> Iterator[str]:
    """The step or batch that a run kept when it went wrong, run once more."""
    from traindx.kept import kept_in
    from traindx_tools.live.step_file import ENDING

    if report.status == "healthy":
        return
    kept, training = kept_in(report.places.root, report.seen.paths), _training(report)
    if kept is None or _is_gone(report, kept):
        return
    command = f"traindx replay {typed([seen_from_here(kept)])}"
    if not kept.name.endswith(ENDING):
        yield command
    elif training:
        here = Path.cwd() == report.places.root
        where = "" if here else f" --workspace {typed([seen_from_here(report.places.root)])}"
        yield f"{command} --run {typed([training])}{where}"


def _instruments(report: Examined) -> Iterator[str]:
    """The training once more, in a copy and under instruments: what reading alone did not prove, or did not see."""
    if report.status != "diagnosis_complete" and not report.remarks and _training(report):
        command = report.command("traindx diagnose PATH --run CMD", {})
        if command:
            yield f"{command}{with_words(report.seen.symptom)}"


def _code(report: Examined) -> Iterator[str]:
    """The same artifacts together with the training code that they name, or that lies further up."""
    if report.places.code or report.status == "healthy" or not report.subject:
        return
    found = code_named(report)
    if found is None and report.seen.scope.how == OTHER_PROGRAMS:  # what lies here was looked at: only a person knows
        yield f"traindx diagnose {report.subject} --entry FILE"
        return
    found = found or code_above(report.seen.paths)
    if found is not None and not _is_gone(report, found):
        yield f"traindx diagnose {report.subject} {typed([seen_from_here(found)])}{with_words(report.seen.symptom)}"


def code_named(report: Examined) -> Path | None:
    """The training script that an error or a warning of the log names and that lies on this machine.

    Taken as it is named, or from the folder of the log. It is only named, and read when a person types the command.
    """
    frames = (f.file for e in report.seen.run.errors for f in e.frames if not f.library)
    places = (f.where.file for f in report.seen.findings if f.rule[0] == "L" and f.where.file)
    folders = [Path(p).parent for p in report.seen.paths if p != "-" and "://" not in p]
    for name in dict.fromkeys((*frames, *places)):
        if not name.endswith(".py"):
            continue
        for path in (folder / name for folder in (Path(), *folders)):
            if path.is_file() and _trains(path):
                return path
    return None


def code_above(paths: Iterable[str]) -> Path | None:
    """The nearest folder above the artifacts that holds training code itself.

    At most up to that of its repository, and never above the current directory or, outside of it, the folder that was
    given: what lies further up is another project, or everything that a person has.
    """
    for path in paths:
        if path == "-" or "://" in path or not os.path.exists(path):
            continue
        start, here = Path(path).resolve(), Path.cwd().resolve()
        for folder in list(start.parents)[:FOLDERS_UP]:
            if not folder.is_relative_to(here) and not (folder == start.parent and start.is_file()):
                break
            if folder in (Path.home(), Path(folder.anchor), Path("/tmp")):
                break
            if any(_trains(file) for file in islice(folder.glob("*.py"), SCRIPTS)):
                return folder
            if (folder / ".git").exists():
                break
    return None


def _trains(file: Path) -> bool:
    """Whether a script imports a framework and speaks of a loss. It is read as text, and only its beginning."""
    try:
        with file.open("rb") as script:
            text = script.read(200_000).decode("utf-8", "replace")
    except OSError:
        return False
    return bool(_FRAMEWORK.search(text)) and "loss" in text


def _ranks(report: Examined) -> Iterator[str]:
    """How each rank of a job ended, where the logs are of several."""
    if report.seen.ranks is not None and report.status != "healthy" and report.subject:
        yield f"traindx hang {report.subject}"


def _looks(report: Examined, without: Collection[str]) -> Iterator[str]:
    """What shows the run to a person, and the page of the likeliest cause."""
    if report.seen.records and report.status != "healthy" and report.subject:
        yield f"traindx plot {report.subject}"
    if report.subject and (report.seen.records or report.status == "healthy" or not report.hypotheses):
        yield f"traindx log {report.subject} --format table"
    for found in _left(report, without)[:1]:
        if found.confidence >= WORTH_A_LINE:  # below it the page names no suspect
            yield f"traindx explain {found.mode.id}"


def wanted(report: Examined) -> tuple[str, ...]:
    """What more would settle it and no command can fetch, in words: the code, an error text, what to log."""
    if _codeless(report):
        return (_code_wanted(report),)
    if report.status != "needs_more_data" or report.with_log:
        return ()
    return tuple(_wanted(report, report.ground))


def _code_wanted(report: Examined) -> str:
    """The code that a fix needs, and how to hand it over."""
    if report.places.code:
        return "no line of the code that was read belongs to this cause: give the file that does, or change it by hand"
    return f"the training script, so that the fix names its lines{_with(report, 'PATH/TO/train.py')}"


def _with(report: Examined, more: str) -> str:
    """The command that reads the same once more with something beside it, for the end of a sentence.

    What came through a pipe is gone: it has to be kept in a file first.
    """
    if _in_memory(report):  # a command would read the paths beside it alone
        return "" if more.startswith("--") else f': `diagnose([history, "{more}"])`'
    if report.subject:
        return f": `traindx diagnose {report.subject} {more}`"
    piped = any(str(p) == "-" for p in report.seen.paths)
    return f", with the log in a file: `traindx diagnose LOG {more}`" if piped else ""


def _wanted(report: Examined, ground: Ground) -> Iterator[str]:
    if not (report.seen.records or report.seen.run.errors or report.places.code):
        yield "what the run printed, or the file of its metrics: `traindx diagnose PATH/TO/LOG`"
    if not report.places.code:
        yield f"the training script and its configuration{_with(report, 'PATH/TO/train.py')}"
    names = {s.name for s in report.seen.run.series if len(s)}
    if report.seen.run.errors:
        return
    absent = {name: words for name, words in LOGGED if name not in names}
    if absent:
        line = log_line(ground, absent)
        named = _listed([*absent.values()])
        yield f"{named} in the log, every step or every few steps" + (f": `{line}`" if line else "")
    if names and report.comparison is None:
        yield f"a run of the same kind that went well, to compare{_with(report, '--against GOOD')}"
    if _crashed(report):
        yield "the error message in full, from \"Traceback\" to its last line"


def _in_memory(report: Examined) -> bool:
    return any(s.source == IN_MEMORY for s in report.seen.run.series)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _crashed(report: Examined) -> bool:
    from traindx_tools.symptoms import observed_symptoms

    return "crash" in observed_symptoms(report.seen.symptom)
