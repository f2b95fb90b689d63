"""Everything the instruments can say of artifacts on disk: read, judge, audit, weigh. Read-only, seconds, no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from traindx_tools import on_data
from traindx_tools.artifact import Artifact
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.catalog.fitting import Circumstances
from traindx_tools.code_among import code_files, each_once, named_code, stays
from traindx_tools.code_audit import audit
from traindx_tools.code_audit.renaming import without_names
from traindx_tools.domains import domains_of
from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding
from traindx_tools.live.reading import LiveRun, read_files
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import NOT_PARSED
from traindx_tools.on_data.quoting import without_quoted
from traindx_tools.on_logs.artifacts import WEIGHTS, discover, first_files
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.each_run import OneRun, each_run, run_of_each_file
from traindx_tools.on_logs.judge import judge_events, judge_run
from traindx_tools.on_logs.programs_apart import files_of_programs, told_by_program
from traindx_tools.on_logs.readers.line_forms import LineForm
from traindx_tools.on_logs.readers.live_records import FORMAT as LIVE
from traindx_tools.on_logs.readers.recorder import keeping
from traindx_tools.on_logs.reading import MEMORY_SNAPSHOT, Reading, joined, of_rank, read_parts, require_something
from traindx_tools.on_logs.roles import is_known
from traindx_tools.on_logs.run import Run
from traindx_tools.on_logs.runs_by_folder import files_of_folders, not_of_others, told_by_folder
from traindx_tools.on_logs.several_runs import files_apart, told_apart
from traindx_tools.on_ranks.logs import ManyRanks, examine_ranks
from traindx_tools.on_torch.cuda_memory import findings_of, read_memory_snapshot
from traindx_tools.on_weights import OfRun, of_run
from traindx_tools.preconditions import DATA_JUDGED, shown_by
from traindx_tools.scope import NOTHING_ASKED, UNKNOWN, Asked, Scope
from traindx_tools.scope.cells import NO_NOTEBOOKS, Notebooks
from traindx_tools.scope.runs import JudgedRun, choose
from traindx_tools.scope.since_written import UNCHANGED, SinceWritten
from traindx_tools.scope.sources import outside, scope_of
from traindx_tools.set_aside import SetAside, beside_what_is_set_aside, counted, in_words, left, modes_left
from traindx_tools.shown_paths import inside, prefixes_of, short
from traindx_tools.sources import resolved
from traindx_tools.stopped import by_settings
from traindx_tools.symptom import Cause, SymptomAnswer, answers_to, explained, left_open, shown
from traindx_tools.symptom.looked_at import looked_at
from traindx_tools.symptoms import blind_spots, observed_symptoms
from traindx_tools.triage import FEWEST, Verdict, fitting, judge, without_effect

NAMING = frozenset({"yaml", "toml", "json", "free_text", "shell"})
"""Formats of files in which the names of checkpoints are looked for, beside the code."""
UNREAD = (*NOT_PARSED, "not read", "refused")
"""How a note about a file begins whose code was not judged at all."""
MOST_FILES = 100_000
"""Files looked at in a folder of which most may be logs of the ranks of one job."""
MOST_NOTES = 8
"""Files of ranks that could not be read whole, told one by one."""
MOST_VALUES = 2_000_000
"""Values of one file that are kept while it is judged: of more, all that stand out and an even share of the rest."""
MOST_CODE_FILES = 400
"""Python files beside a log that are read at most; a larger tree is audited with `traindx audit`."""


@dataclass(frozen=True, eq=False)
class Examination:
    """What was read, what was seen in it and what follows."""

    paths: tuple[str, ...]
    symptom: str
    run: Run
    code: tuple[Path, ...]
    """The Python files that were audited."""
    findings: tuple[Finding, ...]
    verdict: Verdict
    notes: tuple[str, ...]
    scope: Scope = UNKNOWN
    """Which files belong to the run, and which lie beside it."""
    runs: tuple[JudgedRun, ...] = ()
    """Every run that was read, each judged by itself; `findings` and `verdict` are those of one of them."""
    which: int = 1
    """The number of that one."""
    prefixes: tuple[str, ...] = ()
    """The root as a path may begin with it; what is told of places is told without it."""
    aside: tuple[tuple[SetAside, int], ...] = ()
    """What a person set aside, each with the number of findings that it kept from being told."""
    ranks: ManyRanks | None = None
    """What the logs of the ranks of one job say together, where they are of several."""
    grounds: frozenset[str] | None = None
    """The preconditions of failure modes that something of the run shows; None where nobody looked."""
    data: tuple[str, ...] = ()
    """The data files that were read, as they were found."""
    watched: bool = False
    """Whether instruments ran elsewhere, on a new run of it."""

    def __repr__(self) -> str:
        first = "".join(f", {h.mode.id} at {h.confidence:.2f}" for h in self.verdict.hypotheses[:1])
        return (f"<Examination of {', '.join(self.paths[:3])}: {self.verdict.status}{first}, "
                f"{len(self.findings)} findings, {self.records:,} values>")

    def joined(self, more: Sequence[Finding], records: int = 0) -> Examination:
        """With findings of instruments that ran elsewhere, all weighed anew in one triage."""
        aside = tuple(a for a, _ in self.aside)
        both = {(f.rule, str(f.where), f.statement): f for f in (*self.findings, *left(more, aside))}
        verdict = self._judged(tuple(both.values()), self.records + records)
        gone = tuple((a, before + now) for (a, before), (_, now) in zip(self.aside, counted(more, aside), strict=True))
        return replace(self, findings=tuple(both.values()), verdict=verdict, aside=gone)

    def without(self, dropped: Sequence[Finding]) -> Examination:
        """Without findings that are not of this program, the rest weighed anew."""
        gone = {id(f) for f in dropped}
        findings = tuple(f for f in self.findings if id(f) not in gone)
        return replace(self, findings=findings, verdict=self._judged(findings, self.records))

    def _judged(self, findings: tuple[Finding, ...], records: int) -> Verdict:
        return _verdict(findings, self.run, self.code, self.symptom, records, self.scope.blind,
                        tuple(a for a, _ in self.aside), self.grounds)

    @cached_property
    def symptom_answers(self) -> tuple[SymptomAnswer, ...]:
        """The answer to each symptom that was stated, with the sure cause that predicts it."""
        sure = self.verdict.causes if self.verdict.status == "diagnosis_complete" else ()
        causes = [Cause(h.mode.id, h.mode.symptoms) for h in sure]
        code = bool(self.code) and not self.scope.blind
        return tuple(replace(a, where=inside(a.where, self.prefixes), statement=inside(a.statement, self.prefixes),
                             looked=looked_at(a, self.run, code, self.watched))
                     for a in explained(answers_to(self.symptom, self.run, self.findings), causes))

    @cached_property
    def records(self) -> int:
        """How many metric values were read."""
        return sum(len(s) for s in self.run.series)


def _verdict(findings: Sequence[Finding], run: Run, code: Sequence[Path], symptom: str, records: int,
             blind: tuple[Path, str] | None = None, aside: Sequence[SetAside] = (),
             grounds: frozenset[str] | None = None) -> Verdict:
    recorded = frozenset(s.name for s in run.series) | frozenset(s.group for s in run.series)
    strangers = tuple(dict.fromkeys(s.original for s in run.series))
    if any(map(is_known, run.series)):
        strangers = ()
    elif strangers:
        records -= sum(len(s) for s in run.series)
    answers = answers_to(symptom, run, findings)
    verdict = judge(findings, modes_left(load_catalog(), aside), symptom, records=records, strangers=strangers,
                    unseen=left_open(answers), measured=shown(answers), domains=domains_of(run, code, symptom),
                    grounds=grounds,
                    unjudged=blind_spots(recorded, bool(code) and blind is None))
    if blind is not None and verdict.status == "healthy":
        return replace(verdict, status="needs_more_data", reason=_of_unread_code(records, *blind))
    lost = sum(a.lost.count for a in run.artifacts if a.lost is not None)
    if verdict.status == "needs_more_data" and not (run.series or findings) and lost:
        return replace(verdict, reason=f"{lost:,} lines hold numbers, and none of these was taken for a metric: "
                       "nothing says what they stand for.")
    return fitting(verdict, Circumstances.of(code, findings, (e.message for e in run.errors)))


def _of_unread_code(records: int, file: Path, why: str) -> str:
    return (f"No rule saw a fault in {records} values, but the code that was to be judged was not: {file.name} was "
            f"{why}. Give the file that ran, or correct it (`python -m py_compile {file.name}` shows the place).")


def _refuted(run: Run, symptom: str) -> dict[str, str]:
    """Symptoms that the recording would show and does not, and how: a loss that is finite from beginning to end."""
    loss = main_loss(run)
    if loss is None or len(loss) < FEWEST or run.errors or "nonfinite" in observed_symptoms(symptom):
        return {}
    finite = all(s.finite.all() for s in run.series if s.group == loss.group and "loss" in s.name)
    return {"nonfinite": f"{loss} is finite in all {len(loss)} records"} if finite else {}


def _started_with(live: LiveRun, root: Path) -> tuple[Path, ...]:
    """The script of a recorded process and the Python files beside it, where they lie below the root."""
    beside = [p for script in live.scripts(root) for p in (script, *sorted(script.parent.glob("*.py")))]
    return tuple(p for p in dict.fromkeys(beside) if stays(p))


def _of_the_course(rule: str) -> bool:
    """Whether a rule judges how a loss moves: what goes through `backward` (policies, penalties) need not fall."""
    return rule.startswith(("L2", "L106", "L107", "L108"))


def _memory_snapshots(artifacts: Sequence[Artifact]) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Findings of CUDA memory snapshots among the artifacts; why one could not be read, by its path."""
    read, unread = [], {}
    for path in (a.path for a in artifacts if a.format == MEMORY_SNAPSHOT):
        try:
            read.append((path, read_memory_snapshot(path)))
        except UnreadableInput as error:
            if len(artifacts) == 1:  # silence would be taken for health
                raise
            unread[path] = str(error).removeprefix(f"{path}: ")
    return findings_of(read), unread


def _weights(reading: Reading, code: Sequence[Path], root: Path, projects: Sequence[Project]) -> OfRun:
    """What the checkpoints hold that were given, and those that code, configurations and logs name."""
    read = [a for p in reading.parts for a in p.artifacts]
    texts = [a.path for a in read if a.format in NAMING and "://" not in a.path and a.path != "-"]
    beside = [a.path for a in (*read, *reading.found.left_out)]
    return of_run((a.path for a in read if a.format == WEIGHTS), [*code, *texts], root, code=projects, beside=beside)


def _each_error_once(run: Run) -> Run:
    """Without the errors of a live record that a log of the same run tells as well."""
    live = frozenset(a.path for a in run.artifacts if a.format == LIVE)
    logged = {(e.type.rpartition(".")[2], e.message[:200]) for e in run.errors if e.source not in live}
    kept = tuple(e for e in run.errors
                 if e.source not in live or (e.type.rpartition(".")[2], e.message[:200]) not in logged)
    return replace(run, errors=kept)


def examine(paths: Sequence[str | Path], *, symptom: str = "", stdin: bytes | None = None, root: Path | None = None,
            names: Mapping[str, str] | None = None, lines: Sequence[str | LineForm] = (), asked: Asked = NOTHING_ASKED,
            cluster: str | None = None) -> Examination:
    """Reads the artifacts and weighs every failure mode against what is seen in them.

    `paths`: files, folders, globs, fsspec URLs or "-" (then `stdin` holds the bytes). `root`: the folder that paths in
    statements are shown from. `names`, `lines`: what the log's own names and lines mean (see `read_run`). `asked`:
    which files are said to be the run's own. Only these are judged, see `traindx_tools.scope`. `cluster`: the address
    of a Ray cluster that reads the logs of the ranks of a job, in place of processes here. Raises UnreadableInput;
    BadUsage for an entry point that is no Python file.
    """
    with keeping(MOST_VALUES):
        return _examined(resolved(paths), symptom, stdin, root, names, lines, asked, cluster)


def _examined(paths: Sequence[str | Path], symptom: str, stdin: bytes | None, root: Path | None,
              names: Mapping[str, str] | None, lines: Sequence[str | LineForm], asked: Asked,
              cluster: str | None) -> Examination:
    reading, ranks = _read(paths, stdin, names, lines, cluster)
    artifacts = tuple(a for p in reading.parts for a in p.artifacts)
    live = read_files(a.path for a in artifacts if a.format == LIVE)
    base = (root or Path.cwd()).resolve()
    books = Notebooks.beside(s.local for s in reading.sources)
    told = tuple(map(books.of_code, live.seen_from(base)))
    given = code_files(paths, artifacts) if asked.code is None else asked.code
    near = each_once([*given, *(() if given else _started_with(live, base))])
    scope = scope_of(reading, near, paths, asked, live, base)
    files = each_once([*scope.judged, *named_code(told, base)])[:MOST_CODE_FILES]
    code = audit(files)
    scope = scope.without_unread({n.path: n.note for n in code.notes if n.note.startswith(UNREAD)})
    books = Notebooks.read([*files, *(b.path for b in books.books)])  # of two with one cell, the judged one is named
    memory, unread = _memory_snapshots(artifacts)
    own = reading.without(outside(scope, asked.older))
    data = on_data.of_run(reading.parts, files, base, read=live.data_files(base), numbered=live.numbered)
    weights = _weights(own, files, base, code.projects)
    if all(a.note.startswith("not read") for a in data.artifacts) and not weights.read:
        unparsed = {n.path: n.note for n in code.notes}
        require_something([*(replace(a, note=unparsed.get(a.path, a.note)) for a in artifacts),
                           *reading.found.left_out], reading.found)
    together = ranks.findings if ranks is not None else ()
    errors = tuple(e for p in own.parts for e in p.errors)
    since = SinceWritten.of(files, errors)
    wrong = by_settings(errors, code.projects, files, (a.path for a in artifacts), base)
    seen = (*without_names(code.findings, files), *told, *memory, *data.findings, *weights.findings, *wrong)
    every = _EveryRun(files, tuple(map(books.of_code, seen)), together, symptom, prefixes_of(base), unread, scope.blind,
                      asked.aside, ranks=ranks, books=books, since=since,
                      looked=frozenset({DATA_JUDGED} if data.judged_whole else ()))
    runs, apart = every.of(own)
    chosen = choose(runs, asked.which, symptom)
    named = (Artifact(w, WEIGHTS, note="named by the run") for w in weights.named)
    shown, read = every.shown, (*data.among(chosen.run.artifacts), *named)
    notes = (*(in_words(a, n) for a, n in chosen.aside), shown(apart),
             *(f"{shown(a.path)}: {a.note}" for a in (*read, *code.notes) if a.note),
             *map(shown, (*since.told(errors), *weights.notes)), *dict.fromkeys((*every.failures, *data.notes)),
             *map(shown, _of_ranks(ranks)))
    run = replace(chosen.run, artifacts=tuple(replace(a, path=shown(a.path)) for a in read))
    return Examination(tuple(str(p) for p in paths), symptom, run, files, chosen.findings, chosen.verdict,
                       tuple(n for n in notes if n), scope, runs, chosen.one.number, every.prefixes,
                       chosen.aside, ranks, chosen.grounds, tuple(a.path for a in data.artifacts if not a.note))


def _read(paths: Sequence[str | Path], stdin: bytes | None, names: Mapping[str, str] | None,
          lines: Sequence[str | LineForm], cluster: str | None) -> tuple[Reading, ManyRanks | None]:
    """What the files tell; logs of many ranks are compared first, and few of them are read whole."""
    found = discover(paths, stdin=stdin, most=MOST_FILES)
    ranks = examine_ranks(found.sources, cluster=cluster)
    if ranks is not None:
        found.sources = [s for s in found.sources if s.name not in ranks.aside]
    reading = without_quoted(read_parts(paths, names=names, lines=lines, found=first_files(found), data=True))
    numbers = ranks.rank_of_file if ranks is not None else {}
    return replace(reading, parts=tuple(of_rank(p, numbers[s.name]) if s.name in numbers else p
                                        for s, p in zip(reading.sources, reading.parts, strict=True))), ranks


def _of_ranks(ranks: ManyRanks | None) -> tuple[str, ...]:
    """What a person should know of how the logs of the ranks were read."""
    if ranks is None:
        return ()
    aside = f"; {len(ranks.aside):,} of their files were read for this alone" if ranks.aside else ""
    return (f"{len(ranks.job.last.ranks):,} ranks were compared (`traindx hang` shows how each ended){aside}",
            *ranks.job.notes[:MOST_NOTES])


@dataclass(frozen=True)
class _EveryRun:
    """Judges each run that was read by itself, together with what was seen elsewhere."""

    code: tuple[Path, ...]
    seen: tuple[Finding, ...]
    """Findings of the code, of a live process and of memory snapshots: they hold for every run."""
    together: tuple[Finding, ...]
    """What the logs of the ranks of a job say together: it holds for the run of that job."""
    symptom: str
    prefixes: tuple[str, ...]
    unread: Mapping[str, str]
    blind: tuple[Path, str] | None = None
    """The file without which the run's code cannot be judged, where it could not be read, and why."""
    aside: tuple[SetAside, ...] = ()
    failures: list[str] = field(default_factory=list)
    ranks: ManyRanks | None = None
    books: Notebooks = NO_NOTEBOOKS
    since: SinceWritten = UNCHANGED
    looked: frozenset[str] = frozenset()
    """What was looked at whole (`preconditions.DATA_JUDGED`)."""

    def of(self, reading: Reading) -> tuple[tuple[JudgedRun, ...], str]:
        """The runs, and a sentence for a person where files are those of several."""
        job = frozenset(self.ranks.job.sources) if self.ranks is not None else frozenset()
        if apart := files_of_folders(reading.sources, reading.parts, job):
            return self._of_files(reading, apart, job, told_by_folder)
        if programs := files_of_programs(reading.sources, reading.parts, job):
            return self._of_files(reading, tuple(programs), job, lambda _: told_by_program(programs))
        if self.ranks is not None and self.ranks.mixed:  # lines of ranks in turn: no restart of a single run
            return (self.judged(OneRun(1, 1, reading)),), ""
        runs = tuple(map(self.judged, each_run(reading)))
        if self.ranks is not None:
            return runs, ""
        several = files_apart(runs[0].run) if len(runs) == 1 else ()
        if not several:
            return runs, ""
        return (tuple(map(self.judged, run_of_each_file(reading, several))),
                told_apart(several, str(runs[0].run.loss)))

    def _of_files(self, reading: Reading, files: Sequence[str], job: frozenset[str],
                  told: Callable[[Sequence[str]], str]) -> tuple[tuple[JudgedRun, ...], str]:
        """Runs with files of their own, each with the restarts of its log; the ranks of a job are one of them."""
        each: list[tuple[OneRun, bool]] = []
        for one in run_of_each_file(reading, files, job):
            of_job = any(s.name in job for s in one.reading.sources)
            within = () if of_job else each_run(one.reading)
            each += [(w, False) for w in within] if len(within) > 1 else [(one, of_job)]
        every = [one.file for one, _ in each]
        runs = tuple(replace(self, seen=not_of_others(self.seen, one.file, every)).judged(
            replace(one, number=k, of=len(each)), of_job=of_job) for k, (one, of_job) in enumerate(each, 1))
        return runs, told(list(dict.fromkeys(r.one.file for r in runs)))

    def judged(self, one: OneRun, *, of_job: bool = True) -> JudgedRun:
        """One run: its log by the log rules, then all that was seen in one triage."""
        run = self.since.of_run(self.books.of_run(_each_error_once(joined(one.reading, self.code))))
        live = frozenset(a.path for a in run.artifacts if a.format == LIVE)
        on_logs = (f for f in judge_run(run, self.failures)
                   if (f.source not in live or not _of_the_course(f.rule)) and not self._of_all_ranks(f))
        events = judge_events(run, one.reading.sources, self.failures)
        told = map(self.books.of_log, (*on_logs, *events))
        findings = tuple(short(f, self.prefixes) for f in (*told, *self.seen, *(self.together if of_job else ())))
        run = replace(run, artifacts=tuple(replace(a, note=self.unread.get(a.path, a.note)) for a in run.artifacts))
        findings = without_effect(findings, load_catalog(), _refuted(run, self.symptom))
        gone, findings = counted(findings, self.aside), left(findings, self.aside)
        grounds = shown_by(run, self.code, self.symptom, one.reading.sources) | self.looked
        verdict = _verdict(findings, run, self.code, self.symptom, sum(len(s) for s in run.series), self.blind,
                           self.aside, grounds)
        verdict = beside_what_is_set_aside(verdict, gone)
        cells = self.books.cells(one.file, one.start, one.end) if one.file else ""
        return JudgedRun(replace(one, file=self.shown(one.file), cells=cells), run, findings, verdict, gone, grounds)

    def _of_all_ranks(self, finding: Finding) -> bool:
        """Whether a rule that counts ranks spoke of few files out of many: the comparison of all of them says it."""
        return self.ranks is not None and finding.rule in ("L701", "L702") and (
            self.ranks.mixed or bool(self.ranks.aside))

    def shown(self, text: str) -> str:
        """A text with paths as seen from the root."""
        return inside(text, self.prefixes)
