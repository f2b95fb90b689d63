"""Findings in, ranked hypotheses out: arithmetic that a person can follow.

Every failure mode starts from its prior log-odds. Each finding that its file names adds or takes the weight written
there, once. Modes that share a symptom compete for it, and "unknown" always takes part with log-odds 0:

    confidence(m) = exp(s_m) / (1 + sum of exp(s_n) over m and its competitors n)

Two modes that were each seen directly do not compete: a script can have two faults, and neither is argued away by the
other. Two that rest on one and the same finding always do: one fact has one cause.

The result is capped by the best evidence: direct 0.97, circumstantial 0.90, pattern 0.70. Below 0.70 the honest answer
is "needs more data". A person's description of the symptom counts as a weak hint about what was seen, never as a cause.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from traindx_tools.catalog.catalog import FailureMode, Speaks
from traindx_tools.catalog.fitting import Circumstances, fitted
from traindx_tools.finding import Finding, Location, Severity, Strength
from traindx_tools.phrases import fill
from traindx_tools.symptoms import observed_symptoms

CONFIDENT = 0.70
"""At or above: a diagnosis. Below: more data is needed (requirement E9: 70 to 90 % is circumstantial)."""

PROVEN = 0.95
"""From here on a cause counts as proven: of several, the one that explains the worst that was seen comes first."""

FEWEST = 5
"""Values below which nothing can be called healthy: two points are no curve."""

SYMPTOM_HINT = 0.4
"""Log-odds added to a mode when the person saw one of its symptoms."""

EARLIEST_BONUS = 0.5
"""Log-odds added to a mode that explains the earliest anomaly when later ones follow: causes come first."""

LOG_ALONE = (" A log without a fault is not yet a run without one: a wrong target, a leak or a frozen layer can look "
             "like this. Have the code read too: `traindx diagnose LOG train.py`.")
"""What is said of a healthy log where no code was read."""

SLOW = "slow"
"""The symptom of modes that cost time and change no number."""

MOST_SHOWN = 5
"""How many hypotheses are shown at most; at least three are, filled from the look-alikes of the first."""


@dataclass(frozen=True)
class Weighed:
    """A finding and what it does to a hypothesis: `weight` in log-odds, positive for, negative against."""

    finding: Finding
    weight: float
    strength: Strength
    note: str = ""


@dataclass(frozen=True)
class Hypothesis:
    """A failure mode, weighed against the findings of this run."""

    mode: FailureMode
    score: float
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

    @property
    def strength(self) -> Strength:
        """The strength of the best finding for it; pattern where nothing speaks for it."""
        return max((w.strength for w in self.speaks_for), key=lambda s: s.cap, default=Strength.PATTERN)

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


@dataclass(frozen=True)
class Verdict:
    """What triage concludes.

    `status`: "diagnosis_complete", "needs_more_data" or "healthy". `anomalies` are the findings that matter, the
    earliest first. `reason` says in one sentence why the status is what it is.
    """

    status: str
    hypotheses: tuple[Hypothesis, ...]
    anomalies: tuple[Finding, ...]
    reason: str

    @property
    def causes(self) -> tuple[Hypothesis, ...]:
        """The hypotheses that are confident enough to be called causes."""
        return tuple(h for h in self.hypotheses if h.confidence >= CONFIDENT)


def onset(finding: Finding) -> float:
    """Where in the run it starts; code and errors without a step come last. For ordering only."""
    return finding.where.step if finding.where.step is not None else math.inf


def timeline(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings above INFO, the earliest first; of two at one place the worse first."""
    matter = [f for f in findings if f.severity is not Severity.INFO]
    return tuple(sorted(matter, key=lambda f: (onset(f), -f.severity.rank, f.rule)))


def _match(entries: Iterable[Speaks], findings: Sequence[Finding], sign: int, words: str) -> list[Weighed]:
    out = []
    rules = frozenset(f.rule for f in findings)
    for entry in entries:
        matched = [f for f in findings if entry.matches(f)] if entry.counts(rules, words) else []
        if matched:
            best = max(matched, key=lambda f: (entry.strength_of(f).cap, f.severity.rank, -onset(f)))
            out.append(Weighed(best, sign * entry.weight, entry.strength_of(best), entry.note))
    return sorted(out, key=lambda w: (w.strength.cap, abs(w.weight)), reverse=True)


def _netted(pro: Sequence[Weighed], con: Sequence[Weighed]) -> tuple[list[Weighed], list[Weighed]]:
    """Both sides, with every finding on one of them alone: where it speaks for and against, the difference counts."""
    both = {id(w.finding) for w in pro} & {id(w.finding) for w in con}
    out: list[Weighed] = [w for w in (*pro, *con) if id(w.finding) not in both]
    for key in both:
        mine = [w for w in (*pro, *con) if id(w.finding) == key]
        total = sum(w.weight for w in mine)
        told = [w for w in mine if w.weight * total > 0]
        if told:
            notes = ["; ".join(dict.fromkeys(w.note for w in side if w.note)) for side in (
                told, [w for w in mine if w not in told])]
            out.append(Weighed(mine[0].finding, total, max((w.strength for w in told), key=lambda s: s.cap),
                               ", but ".join(n for n in notes if n)))
    out.sort(key=lambda w: (w.strength.cap, abs(w.weight)), reverse=True)
    return [w for w in out if w.weight > 0], [w for w in out if w.weight < 0]


def _first_anomaly(findings: Sequence[Finding]) -> Finding | None:
    """The earliest serious anomaly with a step, where a later one follows it; else None."""
    placed = [f for f in timeline(findings) if f.where.step is not None and f.severity.rank >= Severity.MEDIUM.rank]
    if len(placed) < 2 or onset(placed[-1]) == onset(placed[0]):
        return None
    return placed[0]


def _score(mode: FailureMode, pro: Sequence[Weighed], con: Sequence[Weighed], seen: frozenset[str],
           first: Finding | None) -> float:
    score = mode.prior + sum(w.weight for w in (*pro, *con))
    if seen.intersection(mode.symptoms):
        score += SYMPTOM_HINT
    if first is not None and any(w.finding is first for w in pro):
        score += EARLIEST_BONUS
    return score


def compete(one: FailureMode, lead: Weighed, other: FailureMode, others: Weighed) -> bool:
    """Whether two modes are rivals; each is carried by its strongest finding."""
    if lead.finding is others.finding:
        return True
    both_seen = lead.strength is Strength.DIRECT and others.strength is Strength.DIRECT
    return bool(set(one.symptoms) & set(other.symptoms)) and not both_seen


def _confidence(mode: FailureMode, scores: Mapping[str, float], modes: Mapping[str, FailureMode],
                pro: Mapping[str, Sequence[Weighed]]) -> float:
    rivals = [s for k, s in scores.items()
              if k != mode.id and compete(mode, pro[mode.id][0], modes[k], pro[k][0])]
    top = max(0.0, scores[mode.id], *rivals)
    total = math.exp(-top) + math.exp(scores[mode.id] - top) + sum(math.exp(s - top) for s in rivals)
    return math.exp(scores[mode.id] - top) / total


def _location(pro: Sequence[Weighed]) -> Location | None:
    """The place to look at: a line of code named by the strongest finding that names one, else the log."""
    in_code = [w.finding.where for w in pro if w.finding.rule[0] in "CTJ" and w.finding.where.code]
    frames = [_frame(w.finding) for w in pro]
    places = [*in_code, *(f for f in frames if f), *(w.finding.where for w in pro)]
    return places[0] if places else None


def _frame(finding: Finding) -> Location | None:
    file, line = finding.measured.get("file"), finding.measured.get("line")
    if finding.rule.startswith("L5") and isinstance(file, str) and isinstance(line, int):
        return Location(file=file, line=line)
    return None


def _hypothesis(mode: FailureMode, score: float, confidence: float, pro: Sequence[Weighed],
                con: Sequence[Weighed]) -> Hypothesis:
    mode = mode.in_case(w.finding for w in pro)
    measured = {k: v for w in reversed(pro) for k, v in w.finding.measured.items()}
    claim = fill(mode.claim, measured).rstrip(".")
    issue = f"{claim}: {pro[0].finding.statement}" if pro else f"{claim}."
    cap = max((w.strength.cap for w in pro), default=Strength.PATTERN.cap)
    return Hypothesis(mode, score, min(confidence, cap), tuple(pro), tuple(con), claim, issue,
                      fill(mode.mechanism, measured), _location(pro))


def _supported(mode: FailureMode, pro: Sequence[Weighed], seen: frozenset[str]) -> bool:
    """A remark (INFO) alone makes no hypothesis, unless the person saw a symptom of the mode.

    Slowness explains slowness and nothing else: a mode that only makes a run slow is no cause of what a person
    describes in other words, and, where nothing is described, a cause only if it was found to do harm (MEDIUM).
    """
    if set(mode.symptoms) == {SLOW} and SLOW not in seen:
        return not seen and any(w.finding.severity.rank >= Severity.MEDIUM.rank for w in pro)
    if any(w.finding.severity is not Severity.INFO for w in pro):
        return True
    return bool(pro) and bool(seen.intersection(mode.symptoms))


def _look_alikes(first: Hypothesis, taken: set[str], modes: Mapping[str, FailureMode],
                 found: Mapping[str, Hypothesis], most: float) -> Iterable[Hypothesis]:
    """Modes that look like the first hypothesis, and then its closest rivals by prior: what must be ruled out too.

    `most`: the confidence of the last one with evidence of its own, which none of these exceeds.
    """
    near = [x.mode for x in first.mode.look_alikes if x.mode in modes]
    rivals = sorted((m for m in modes.values() if set(m.symptoms) & set(first.mode.symptoms)),
                    key=lambda m: (-len(set(m.symptoms) & set(first.mode.symptoms)), -m.prior, m.id))
    for key in [*near, *(m.id for m in rivals)]:
        if key not in taken:
            taken.add(key)
            yield found[key] if key in found else _hypothesis(
                modes[key], modes[key].prior,
                min(most, 1 / (1 + math.exp(-modes[key].prior)) * (1 - first.confidence)), (), ())


def _has_a_place(mode: FailureMode, pro: Sequence[Weighed], domains: frozenset[str] | None) -> bool:
    """Whether a mode of a special part can be: the run has that part, or more than a general rule speaks for it."""
    if not mode.domain or domains is None or mode.domain in domains:
        return True
    return any(w.finding.rule[0] != "L" or w.finding.rule.startswith("L6") for w in pro)


def rank(findings: Sequence[Finding], modes: Mapping[str, FailureMode], symptom: str = "",
         domains: frozenset[str] | None = None) -> tuple[Hypothesis, ...]:
    """All hypotheses that a finding speaks for, the most likely first, filled up to three with look-alikes.

    `domains`: the special parts that the run has (see `domains.py`); None where nobody looked.
    """
    seen, first = observed_symptoms(symptom), _first_anomaly(findings)
    weighed = {k: _netted(_match(m.speaks_for, findings, +1, symptom), _match(m.speaks_against, findings, -1, symptom))
               for k, m in modes.items()}
    modes = {k: m for k, m in modes.items() if _has_a_place(m, weighed[k][0], domains)}
    pro, con = {k: weighed[k][0] for k in modes}, {k: weighed[k][1] for k in modes}
    scores = {k: _score(m, pro[k], con[k], seen, first) for k, m in modes.items() if _supported(m, pro[k], seen)}
    found = {k: _hypothesis(modes[k], s, _confidence(modes[k], scores, modes, pro), pro[k], con[k])
             for k, s in scores.items()}
    ordered = sorted(found.values(), key=lambda h: (-min(h.confidence, PROVEN), -h.seen, -h.confidence, -h.score,
                                                    h.mode.id))
    if not ordered:
        return ()
    shown = ordered[:MOST_SHOWN]
    spare = iter(_look_alikes(shown[0], {h.mode.id for h in shown}, modes, found, shown[-1].confidence))
    while len(shown) < 3 and (extra := next(spare, None)) is not None:
        shown.append(extra)
    return tuple(shown)


def fitting(verdict: Verdict, here: Circumstances) -> Verdict:
    """The verdict with the checks of each hypothesis that can tell something of this run."""
    told = tuple(replace(h, mode=fitted(h.mode, [(w.finding, w.strength) for w in h.speaks_for], here))
                 for h in verdict.hypotheses)  # fmt: skip
    return replace(verdict, hypotheses=told)


def without_effect(findings: Sequence[Finding], modes: Mapping[str, FailureMode], refuted: Mapping[str, str]
                   ) -> tuple[Finding, ...]:
    """The findings, with what code only suggests made a remark where the recording shows that nothing came of it.

    `refuted`: symptoms that the recording would show and does not, each with the observation in words ("the loss is
    finite in all 48 records"). A division by a count that may be 0 is no cause of anything in a run without a NaN.
    """
    told: list[Finding] = []
    for f in findings:
        causes = [m for m in modes.values() if any(e.matches(f) for e in m.speaks_for)] if f.rule[0] == "C" else []
        idle = (f.strength is Strength.CIRCUMSTANTIAL and bool(causes)
                and all(refuted.keys() >= set(m.symptoms) for m in causes))  # fmt: skip
        seen = "; ".join(dict.fromkeys(refuted[s] for m in causes for s in m.symptoms)) if idle else ""
        told.append(replace(f, severity=Severity.INFO, statement=f"{f.statement}; {seen}") if idle else f)
    return tuple(told)


def _explains(anomalies: Sequence[Finding], symptom: str) -> bool:
    """Whether a person's symptom stands beside something minor that may explain it."""
    return bool(anomalies) and bool(observed_symptoms(symptom))


def judge(findings: Sequence[Finding], modes: Mapping[str, FailureMode], symptom: str = "", *, records: int = 0,
          unseen: Sequence[str] = (), unjudged: Sequence[str] = (), strangers: Sequence[str] = (),
          domains: frozenset[str] | None = None) -> Verdict:
    """The verdict over a run.

    `records`: how many metric values were read (a run of which nothing was read is not healthy). `unseen`: symptoms the
    person names that these artifacts could not show, such as garbled samples where only losses are logged. `unjudged`:
    what was not there to be judged at all, in words (see `symptoms.blind_spots`). `strangers`: names that
    were read and that no rule knows, where nothing else was. `domains`: as for `rank`.
    """
    anomalies = timeline(findings)
    serious = [f for f in anomalies if f.severity.rank >= Severity.MEDIUM.rank]
    hypotheses = rank(list(findings), modes, symptom, domains) if serious or _explains(anomalies, symptom) else ()
    if hypotheses and hypotheses[0].confidence >= CONFIDENT:
        return Verdict("diagnosis_complete", hypotheses, anomalies, hypotheses[0].issue)
    if serious:
        reason = (f"Something is wrong ({serious[0].statement.rstrip('.')}), but no cause reaches a confidence of "
                  f"{CONFIDENT:.2f} on this evidence.")
        return Verdict("needs_more_data", hypotheses, anomalies, reason)
    if strangers and records == 0:
        told = ", ".join(strangers[:6]) + (f" and {len(strangers) - 6} more" if len(strangers) > 6 else "")
        return Verdict("needs_more_data", (), anomalies, f"No rule knows the names that were read ({told}), so nothing "
                       "was judged: give the code that prints them, or say what they stand for "
                       f"(--name '{strangers[0]}=loss').")
    if records == 0:
        return Verdict("needs_more_data", (), anomalies, "No metrics and no errors were found in what was given.")
    if records < FEWEST:
        return Verdict("needs_more_data", (), anomalies,
                       f"Only {records} values were read: too few to call a run healthy.")
    if unseen:
        reason = f"Nothing wrong in the metrics, but they cannot show what you describe ({', '.join(unseen)})."
        return Verdict("needs_more_data", rank(list(findings), modes, symptom, domains), anomalies, reason)
    told = f"{records} values were checked and no rule saw a fault worth a diagnosis."
    if unjudged:
        told += f" Not judged: {'; '.join(unjudged)}."
    if any("code" in what for what in unjudged):
        told += LOG_ALONE
    return Verdict("healthy", (), anomalies, told)
