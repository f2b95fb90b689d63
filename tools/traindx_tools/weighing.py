"""A finding weighed for a failure mode, and the hypothesis that comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from traindx_tools.catalog.catalog import FailureMode, Speaks
from traindx_tools.catalog.experiment_entries import experiment_entries
from traindx_tools.catalog.precision import COUNTER_ROLES, ROLES
from traindx_tools.finding import Bearing, Finding, Location, Severity, Strength
from traindx_tools.phrases import fill


@dataclass(frozen=True)
class Weighed:
    """A finding and what it does to a hypothesis: `weight` in log-odds, positive for, negative against."""

    finding: Finding
    weight: float
    bearing: Bearing
    """How near the finding is to this very cause."""
    note: str = ""
    role: str = ""
    """What it is for the mode: one of `precision.ROLES`, or of `COUNTER_ROLES`."""
    conditions: int = 0
    """How many conditions on the measured values it had to meet."""

    @property
    def strength(self) -> Strength:
        """How it was seen."""
        return self.finding.strength

    @property
    def cap(self) -> float:
        """The most that a hypothesis may claim on it: by how it was seen, by how near it is, and no more than on a
        companion where it is a remark: what its check calls no fault convicts nobody."""
        remark = self.finding.severity is Severity.INFO
        return min(self.strength.cap, self.bearing.cap, Bearing.COMPANION.cap if remark else 1.0)

    @property
    def in_run(self) -> bool:
        """Whether it was seen in the run and not only in a text."""
        return self.strength is Strength.RAN


@dataclass(frozen=True)
class Hypothesis:
    """A failure mode, weighed against the findings of this run."""

    mode: FailureMode
    score: float
    """Log-odds: the prior and everything that was found."""
    confidence: float
    speaks_for: tuple[Weighed, ...]
    speaks_against: tuple[Weighed, ...]
    claim: str
    """The cause in one clause."""
    issue: str
    """One sentence: the cause in this run, with the values and the place."""
    mechanism: str
    location: Location | None
    """The best place known: the faulty line of code, else the user's frame, else the place in the log."""
    rivals: Mapping[str, float] = field(default_factory=dict)
    """What each competing mode weighs beside exp(score); "" is the unknown."""
    held: str = ""
    """Why the confidence is not what the evidence would give, in words; empty where it is."""
    explained: int = 0
    """How many observations of the run it accounts for."""
    unshown: str = ""
    """What of its precondition nothing that was read shows, and what would show it, in words; empty where it is."""

    @property
    def strength(self) -> Strength:
        """How the best finding for it was seen; guessed where nothing speaks for it."""
        return max((w.strength for w in self.speaks_for), key=lambda s: s.cap, default=Strength.GUESSED)

    @property
    def proven(self) -> bool:
        """Whether the cause itself was seen in the run."""
        return any(w.in_run and w.bearing is Bearing.CAUSE and w.finding.severity is not Severity.INFO
                   for w in self.speaks_for)  # fmt: skip

    @property
    def strongest(self) -> Finding | None:
        """The finding that carries the hypothesis."""
        return self.speaks_for[0].finding if self.speaks_for else None

    @property
    def seen(self) -> int:
        """The rank of the worst that was seen in the run, at a step, and that it explains; 0 for code alone."""
        return max((w.finding.severity.rank for w in self.speaks_for if w.finding.where.step is not None), default=0)

    @property
    def severity(self) -> Severity:
        """The worst of what was found for it, never more than the mode's own severity allows."""
        found = [w.finding.severity for w in self.speaks_for]
        return min([self.mode.severity, max(found, key=lambda s: s.rank)] if found else [self.mode.severity],
                   key=lambda s: s.rank)


def matched(entries: Iterable[Speaks], findings: Sequence[Finding], words: str) -> list[Weighed]:
    """The best finding for each entry of a mode that applies, the nearest and heaviest first."""
    out = []
    rules = frozenset(f.rule for f in findings)
    for entry in entries:
        found = [f for f in findings if entry.matches(f)] if entry.counts(rules, words) else []
        if found:
            best = max(found, key=lambda f: (min(f.strength.cap, entry.bearing_of(f).cap), f.severity.rank, -onset(f)))
            out.append(Weighed(best, entry.weight_of(best), entry.bearing_of(best), entry.note, entry.role,
                               len(entry.when)))
    return sorted(out, key=_telling)


def matched_sides(mode: FailureMode, findings: Sequence[Finding], words: str) -> tuple[list[Weighed], list[Weighed]]:
    """What speaks for a mode and what against it: the entries of its file, and those of experiments."""
    pro, con = experiment_entries(mode.id) if any(f.rule[0] == "X" for f in findings) else ((), ())
    return matched((*mode.speaks_for, *pro), findings, words), matched((*mode.speaks_against, *con), findings, words)


def _telling(weighed: Weighed) -> tuple[int, float, float]:
    """The order of what speaks for or against a mode: what is nearest to it first, then what carries and weighs
    most."""
    roles = (*ROLES, *COUNTER_ROLES)
    return (roles.index(weighed.role) if weighed.role in roles else len(roles), -weighed.cap, -abs(weighed.weight))


def netted(pro: Sequence[Weighed], con: Sequence[Weighed]) -> tuple[list[Weighed], list[Weighed]]:
    """Both sides, with every finding on one of them alone: where it speaks for and against, the difference counts.

    A finding that speaks for a mode twice counts once, with what weighs most.
    """
    both = {id(w.finding) for w in pro} & {id(w.finding) for w in con}
    single: dict[int, Weighed] = {}
    for w in pro:
        if id(w.finding) not in both and (id(w.finding) not in single or single[id(w.finding)].weight < w.weight):
            single[id(w.finding)] = w
    out = [*single.values(), *(w for w in con if id(w.finding) not in both)]
    for key in both:
        mine = [w for w in (*pro, *con) if id(w.finding) == key]
        total = sum(w.weight for w in mine)
        told = [w for w in mine if w.weight * total > 0]
        if told:
            notes = ["; ".join(dict.fromkeys(w.note for w in side if w.note)) for side in (
                told, [w for w in mine if w not in told])]
            out.append(Weighed(mine[0].finding, total, max((w.bearing for w in told), key=lambda b: b.cap),
                               ", but ".join(n for n in notes if n), told[0].role))
    out.sort(key=_telling)
    return [w for w in out if w.weight >= 0], [w for w in out if w.weight < 0]


def onset(finding: Finding) -> float:
    """Where in the run it starts; code and errors without a step come last. For ordering only."""
    return finding.where.step if finding.where.step is not None else float("inf")


def described(mode: FailureMode, pro: Sequence[Weighed]) -> tuple[FailureMode, str, str, str]:
    """The mode in the form that the findings show; its claim, issue and mechanism with their values in them."""
    mode = mode.in_case(w.finding for w in pro)
    measured = {k: v for w in reversed(pro) for k, v in w.finding.measured.items()}
    claim = fill(mode.claim, measured).rstrip(".")
    issue = f"{claim}: {told_by(pro).finding.statement}" if pro else f"{claim}."
    return mode, claim, issue, fill(mode.mechanism, measured)


def told_by(pro: Sequence[Weighed]) -> Weighed:
    """What says the cause: of equal bearing a place in the program before an experiment, whose numbers prove it."""
    return next((w for w in pro if w.bearing is pro[0].bearing and w.finding.rule[0] != "X"), pro[0])


def place_of(pro: Sequence[Weighed]) -> Location | None:
    """The place to look at: a line of code named by the strongest finding that names one, else the log."""
    in_code = [w.finding.where for w in pro if w.finding.rule[0] in "CTJS" and w.finding.where.code]
    frames = [_frame(w.finding) for w in pro]
    places = [*in_code, *(f for f in frames if f), *(w.finding.where for w in pro)]
    return places[0] if places else None


def _frame(finding: Finding) -> Location | None:
    file, line = finding.measured.get("file"), finding.measured.get("line")
    if finding.rule.startswith("L5") and isinstance(file, str) and isinstance(line, int):
        cell = finding.measured.get("cell")
        return Location(file=file, line=line, cell=cell if isinstance(cell, int) else None)
    return None


def of_one_rank(finding: Finding) -> bool:
    """Whether a finding says that one rank failed first: which, and by what error, and not why."""
    return finding.rule == "R201"


def explains_error(speaks_for: Iterable[Weighed]) -> bool:
    """Whether an error's own message speaks for a cause: an index out of range is none of a memory that grows."""
    return any(w.finding.rule.startswith("L5") and w.weight > 0.0 for w in speaks_for)


def nearest_first(ordered: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses, where a finding is the cause of one and nothing but a hint of another with the other behind it.

    Only of findings that show a cause themselves: what shows a sign of one hints at many as well. The other is no surer
    than the one: it rests on the same finding, and says less of it.
    """
    causes = {id(w.finding): h for h in reversed(ordered) for w in h.speaks_for
              if w.role == "cause" and w.bearing is Bearing.CAUSE}
    out = [h for h in ordered if _stands_on(h, causes) is None]
    for h in ordered:
        first = _stands_on(h, causes)
        if first is not None:
            held = replace(h, confidence=min(h.confidence, first.confidence))
            at = out.index(first) + 1
            while at < len(out) and out[at].confidence >= held.confidence:
                at += 1
            out.insert(at, held)
    return out


def _stands_on(found: Hypothesis, causes: Mapping[int, Hypothesis]) -> Hypothesis | None:
    """The hypothesis whose cause is all that hints at this one, None where something else speaks for it."""
    firsts = {h.mode.id: h for w in found.speaks_for for h in [causes.get(id(w.finding))] if h is not None}
    rests = found.speaks_for and all(
        w.role not in ("cause", "sign") and id(w.finding) in causes for w in found.speaks_for)
    return next(iter(firsts.values())) if rests and found.mode.id not in firsts else None
