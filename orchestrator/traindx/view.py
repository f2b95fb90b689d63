"""What every face shows of a diagnosis, in the order in which a person reads it; the faces only lay it out.
The input is plain: the result JSON, the run that was read, the Gate 4 diagnosis. Nothing here decides anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from traindx.along import Along, along_of
from traindx.course import amount_of, course_of
from traindx.model import Attempt, Decision, Diagnosis
from traindx.named_places import NamedPlaces
from traindx.safe_text import line as clip
from traindx_tools.artifact import LostLines
from traindx_tools.experiments.verdict import SAID
from traindx_tools.finding import Finding
from traindx_tools.on_logs.run import Run
from traindx_tools.preconditions import NOTHING_SHOWS
from traindx_tools.scope.model import in_words
from traindx_tools.scope.runs import in_sentences
from traindx_tools.triage import CONFIDENT, MOST_SHOWN, SUSPECTED, timeline
from traindx_tools.weighing import onset

VERDICTS = {
    "diagnosis_complete": "Cause found",
    "needs_more_data": "Needs more data",
    "healthy": "Nothing wrong found",
}
NOTHING_ELSE = "Nothing else found"
"""Where a person set aside what was seen: that is no run without a fault."""
ANSWERS = {"seen": "seen", "not_seen": "not seen in what was read", "not_understood": "not understood"}
BESIDE = "seen as well: a fault of its own beside the first, not instead of it"
APART = "no rival of the first: it would be a fault beside it, and its share is counted by itself"
"""Said of a hypothesis whose confidence does not go off the first one's."""
TIE = 1.32
"""Times the odds of another hypothesis up to which both are equal: one more judgement moves a weight by that."""

EXPERIMENTS = ("X101", "X102", "X103", "X104")


@dataclass(frozen=True)
class ReadRow:
    """An artifact that was looked at: its path, what it is, and what became of it."""

    path: str
    what: str
    note: str = ""


@dataclass(frozen=True)
class Moment:
    """One line of the timeline."""

    when: str
    severity: str
    id: str
    title: str
    statement: str


@dataclass(frozen=True)
class Experiment:
    """One change and its verdict. `controls` and `changes` are what the runs of each side showed, in their order."""

    id: str
    number: str
    change: str
    outcome: str
    verdict: str
    why: str
    controls: str
    changes: str
    better: bool


class Story(Protocol):
    """Of a session: where it stands, what was decided and what was tried."""

    @property
    def status(self) -> str: ...
    @property
    def next_step(self) -> str: ...
    @property
    def decision(self) -> Decision | None: ...
    @property
    def attempts(self) -> Sequence[Attempt]: ...
    @property
    def tests(self) -> Sequence[str]: ...
    @property
    def revised(self) -> str: ...


@dataclass(frozen=True, eq=False)
class View:
    """A diagnosis as it is shown. `files` are the artifacts that were written, by name."""

    result: Mapping[str, Any]
    run: Run | None = None
    diagnosis: Diagnosis | None = None
    reason: str = ""
    notes: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return str(self.result["status"])

    @property
    def verdict(self) -> str:
        """What it came to, in a few words: what the person stated and the log shows is not called missing data."""
        if self.status == "healthy" and any(a["findings"] for a in self.result.get("set_aside", ())):
            return NOTHING_ELSE
        if not self.confirmed:
            return VERDICTS.get(self.status, self.status)
        read = "what was read" if self.run is not None and any(
            a.format in ("python", "notebook") for a in self.run.artifacts) else "the log"
        return f"What you describe is there; its cause is not in {read}"

    @property
    def confirmed(self) -> bool:
        """Whether what the person stated was seen, and no cause of it is likelier than not to be looked at first."""
        seen = any(t["answer"] == "seen" and not (t.get("explained_by") or t.get("expected") or t.get("refuted"))
                   for t in self.result.get("symptom_answer", ()))
        first = next(iter(self.hypotheses), None)
        likely = first is not None and bool(first.get("for")) and float(first["confidence"]) >= SUSPECTED
        return self.status == "needs_more_data" and seen and not likely

    @property
    def marked(self) -> Sequence[str]:
        """What the picture of a run without a fault marks: remarks of the log's rules, the earliest first."""
        remarks = [f for _, f in self.findings if f.rule[0] == "L" and self.status == "healthy"]
        return tuple(dict.fromkeys(self.named(f.statement) for f in sorted(remarks, key=onset)))

    @property
    def along(self) -> Sequence[Along]:
        """What goes along with anomalies; the sentence where no timeline tells it."""
        return along_of(f for _, f in self.findings)

    @property
    def cause(self) -> Mapping[str, Any] | None:
        """The first root cause, else the first hypothesis; None for a healthy run."""
        if self.status == "healthy":
            return None
        ranked = [*self.result.get("root_causes", ()), *self.result.get("hypotheses", ())]
        return ranked[0] if ranked else None

    @property
    def headline(self) -> str:
        """The cause in one sentence; where none is sure, why."""
        if self.status == "diagnosis_complete" and self.cause is not None:
            return str(self.cause["issue"])
        return self.reason or self.verdict

    def split(self, issue: str) -> tuple[str, str]:
        """The claim and the finding's statement that triage appended to it after a colon; ("...", "") without one."""
        for _, finding in self.findings:
            claim, found, rest = issue.partition(": " + finding.statement.rstrip("."))
            if found:
                return claim, found.removeprefix(": ") + rest
        return issue, ""

    @property
    def confidence(self) -> float | None:
        return None if self.cause is None else float(self.cause["confidence"])

    @property
    def threshold(self) -> float:
        """The confidence from which a cause is called one."""
        return CONFIDENT

    @cached_property
    def findings(self) -> list[tuple[str, Finding]]:
        """Every finding with its id, the worst first."""
        named = [(str(f.get("id", f["rule"])), Finding.from_json(f)) for f in self.result.get("findings", ())]
        return sorted(named, key=lambda n: (-n[1].severity.rank, n[1].rule))

    @property
    def pictured(self) -> bool:
        """Whether the curves were drawn for this report."""
        return "loss_visualization" in self.files

    @property
    def files_judged(self) -> list[tuple[str, Finding]]:
        """What data files and weights hold that is wrong, the worst first."""
        return [(name, f) for name, f in self.findings if f.rule[0] in "DW"]

    @property
    def experiments(self) -> list[Experiment]:
        """The experiments that were made, in their order."""
        made = [_experiment(name, f) for name, f in self.findings if f.rule in EXPERIMENTS]
        return sorted(made, key=lambda e: e.number)

    @cached_property
    def read(self) -> list[ReadRow]:
        """Every artifact; those that hold nothing of use last."""
        if self.run is None:
            return []
        rows = [ReadRow(a.path, _what(a.format, a.rows), a.note) for a in self.run.artifacts]
        return sorted(rows, key=lambda r: r.what == _what("unknown", 0))

    @property
    def lost(self) -> tuple[str, LostLines] | None:
        """The log of which most lines with numbers were used for nothing, and these lines."""
        found = [] if self.run is None else [(a.path, a.lost) for a in self.run.artifacts if a.lost is not None]
        return max(found, key=lambda f: f[1].count, default=None)

    @property
    def amount(self) -> str:
        """How much was read, in one line."""
        return amount_of(self.run) if self.run is not None else ""

    @property
    def course(self) -> str:
        """Of a healthy run, how far it goes and where it ends; "" of another one."""
        return course_of(self.run) if self.run is not None and self.status == "healthy" else ""

    @cached_property
    def timeline(self) -> list[Moment]:
        """The anomalies, earliest first; what has no time (code, errors without a step) after them."""
        ids = {id(f): name for name, f in self.findings}
        return [Moment(_when(f), f.severity.value, ids[id(f)], f.title, f.statement)
                for f in timeline(f for _, f in self.findings)]

    @property
    def hypotheses(self) -> Sequence[Mapping[str, Any]]:
        return tuple(self.result.get("hypotheses", ()))

    @property
    def supported(self) -> Sequence[Mapping[str, Any]]:
        """The hypotheses that a person has to look at: the first, and the others that evidence speaks for."""
        ranked = self.hypotheses
        return tuple(h for i, h in enumerate(ranked) if i == 0 or h.get("for"))

    @property
    def no_order(self) -> str:
        """That nothing stands out, in words; "" where something does."""
        return (f"nothing stands out: {'at least ' * (len(self.tied) >= MOST_SHOWN)}{len(self.tied)} causes are about "
                "as likely as each other, the usual ones first") if self.tied else ""

    @cached_property
    def tied(self) -> Sequence[Mapping[str, Any]]:
        """Hypotheses as likely as the likeliest as far as the measured weights can tell; () where one stands out.

        An order by 6, 5 and 5 % would look like a ranking, and says nothing; 27, 15 and 12 % is one.
        """
        ranked = [h for h in self.supported if h.get("for")]
        if self.status != "needs_more_data" or len(ranked) < 2 or float(ranked[0]["confidence"]) >= SUSPECTED:
            return ()
        least = max(_odds(h) for h in ranked) / TIE
        near = [h for h in ranked if _odds(h) >= least]
        return sorted(near, key=lambda h: -float(h["confidence"])) if len(near) > 1 else ()

    @property
    def in_order(self) -> Sequence[Mapping[str, Any]]:
        """`supported` as it is shown: where nothing stands out, those about as likely come first, the rest below."""
        return (*self.tied, *(h for h in self.supported if not any(h is t for t in self.tied)))

    def beside(self, hypothesis: Mapping[str, Any]) -> str:
        """What is said of a hypothesis whose confidence and the first one's are more than 1 together; "" elsewhere.

        Rivals share 1 between them and the unknown: what is more than that together are two causes that may both hold.
        """
        first = self.hypotheses[0]
        if hypothesis is first or float(hypothesis["confidence"]) + float(first["confidence"]) <= 1.001:
            return ""
        return BESIDE if float(hypothesis["confidence"]) >= CONFIDENT else APART

    @staticmethod
    def unshown(hypothesis: Mapping[str, Any]) -> str:
        """What of its precondition nothing that was read shows, and what would show it; "" where it needs none."""
        return next((str(t) for t in hypothesis.get("rule_out", ())[:1] if str(t).startswith(NOTHING_SHOWS)), "")

    @property
    def described(self) -> Sequence[Mapping[str, Any]]:
        """What became of each symptom that the person stated; `became` says it in words."""
        return [{**told, "became": _became(told)} for told in self.result.get("symptom_answer", ())]

    def named(self, text: str) -> str:
        """The text with places as a person in the workspace says them."""
        return self._places.told(text)

    @cached_property
    def _places(self) -> NamedPlaces:
        return NamedPlaces.of(a.path for a in self.run.artifacts) if self.run is not None else NamedPlaces(())

    def explained_by_first(self, told: Mapping[str, Any]) -> bool:
        """Whether the first cause predicts a stated symptom."""
        causes = self.result.get("root_causes", ())
        return bool(told.get("explained_by")) and bool(causes) and causes[0]["failure_mode"] == told["explained_by"]

    def in_words(self, told: Mapping[str, Any]) -> str:
        """The failure mode that predicts a stated symptom, as a sentence, its id in brackets."""
        from traindx_tools.catalog.catalog import load_catalog

        name = str(told["explained_by"])
        mode = load_catalog().get(name)
        return f"{mode.claim} [{name}]" if mode is not None else name

    @property
    def wanted(self) -> Sequence[str]:
        """What more would settle it, in words."""
        told = self.result.get("analysis_artifacts", {}).get("wanted")
        return str(told).split("; ") if told else ()

    @property
    def next_checks(self) -> Sequence[str]:
        return tuple(self.result.get("next_checks", ()))

    @property
    def comparison(self) -> Mapping[str, Any] | None:
        """This run beside one that works; None where none was given."""
        found: Mapping[str, Any] | None = self.result.get("comparison")
        return found

    @property
    def scope(self) -> list[str]:
        """Which files and which run were judged, and what lies beside them, in sentences."""
        runs = in_sentences(self.result.get("runs") or (), int(self.result.get("judged_run") or 1), clip)
        return [*(in_words(self.result["scope"]) if self.result.get("scope") else []), *runs]

    @staticmethod
    def pictures_of(prefix: str, pictures: Mapping[str, str]) -> dict[str, str]:
        """The pictures whose name begins so."""
        return {name: url for name, url in pictures.items() if name.startswith(prefix)}

    @staticmethod
    def others(pictures: Mapping[str, str], *placed: Mapping[str, str]) -> dict[str, str]:
        """The pictures that have no section of their own."""
        return {name: url for name, url in pictures.items() if not any(name in p for p in placed)}

    @property
    def remarks(self) -> list[str]:
        """What a person should know about the analysis itself."""
        missing = self.result.get("analysis_artifacts", {}).get("missing_artifacts")
        beside = {f"{row.path}: {row.note}" for row in self.read}  # said in the table
        cut = self.run.artifacts if self.run is not None else ()  # no verdict knows what follows there
        told = [f"{a.path}: {a.in_part}" for a in cut if a.in_part] + [n for n in self.notes if n not in beside]
        told += [f"{row.path}: {row.note}" for row in self.read if (
            "files were looked at" in row.note or "too many different names" in row.note)]
        return [*([f"not given or not readable: {missing}"] if missing else []), *told]


def _odds(hypothesis: Mapping[str, Any]) -> float:
    sure = min(float(hypothesis["confidence"]), 0.999)
    return sure / (1 - sure)


def _became(told: Mapping[str, Any]) -> str:
    """What became of a stated symptom, in words: seen and explained, seen, refuted by the record, not understood."""
    if told.get("explained_by"):
        return f"{ANSWERS[told['answer']]}; {told['explained_by']} would cause it"
    if told.get("expected"):
        return f"{ANSWERS[told['answer']]}, and to be expected: {told['expected']}"
    if told.get("refuted"):
        return "not so in what was recorded"
    return ANSWERS[told["answer"]] + (", unexplained" if told["answer"] == "seen" else "")


def percent(share: float) -> str:
    """A confidence as a person reads it: what is not nothing is not called 0 %, what is no cause not rounded to one."""
    if 0 <= share < 0.01:
        return "< 1 %"
    return f"{min(100 * share, 100 * CONFIDENT - 1) if share < CONFIDENT else 100 * share:.0f} %"


def _experiment(name: str, finding: Finding) -> Experiment:
    told = finding.measured
    number, change = str(told.get("experiment", "")), str(told.get("change", ""))
    why = finding.statement.removeprefix(f"{number}: ").removeprefix(f"{change} ").partition(": ")[2]
    return Experiment(name, number, change, str(told.get("outcome", "")), SAID.get(str(told.get("verdict")), ""),
                      why or finding.statement, _runs(told.get("controls")), _runs(told.get("changes")),
                      told.get("verdict") == "removes" or told.get("better") is True)


def _runs(shown: object) -> str:
    """The numbers of runs: an infinite one is an event that did not come."""
    values = shown if isinstance(shown, (tuple, list)) else ()
    return ", ".join("none" if isinstance(v, float) and math.isinf(v) else f"{v:.4g}" for v in values) or "not run"


def _what(kind: str, rows: int) -> str:
    if kind == "unknown":
        return "nothing of use found"
    return kind.replace("_", " ") + (f", {rows:,} row{'s' * (rows != 1)}" if rows else "")


def _when(finding: Finding) -> str:
    where = finding.where
    if where.step is not None and where.unit != "line":
        until = "" if where.end_step in (None, where.step) else f"–{where.end_step:,.10g}"
        return f"{where.unit} {where.step:,.10g}{until}"
    if finding.rule[0] == "L" and where.line is not None:
        return f"log line {where.line:,}"
    if where.code is not None:
        return where.code.replace("\\", "/").rsplit("/", 1)[-1]  # the statement and the finding name the whole path
    return where.module or (f"rank {where.rank}" if where.rank is not None else str(where.file or ""))
