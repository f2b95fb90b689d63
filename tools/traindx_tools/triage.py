"""Findings in, ranked hypotheses out: arithmetic that a person can follow.

Every failure mode starts from the same prior log-odds. Each finding that its file names adds or takes what findings of
that kind were worth where it was measured (`catalog/precision.py`), once. Modes compete for what was seen
(`competition.py`); some mass always stays on the unknown.

Text suspects, the run convicts. The confidence is capped by the best evidence: by how it was seen (ran 0.97, derived
0.85, guessed 0.55) and by how near it is to the cause (the cause 0.97, a sign 0.85, a companion 0.55). Text alone
stays below 0.70 unless something of this run agrees with it, or, up to 0.80, the person's own words. An effect stays
below 0.70 whatever was seen: it asks for its cause. Below 0.70 the honest answer is "needs more data".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from traindx_tools.catalog.catalog import FailureMode
from traindx_tools.catalog.fitting import Circumstances, fitted
from traindx_tools.catalog.observations import shows
from traindx_tools.catalog.precision import BASE_RATE, PRIOR, load_precision
from traindx_tools.causal_order import causes_first
from traindx_tools.competition import Candidate, rivals_of, same_fact, share
from traindx_tools.finding import Bearing, Finding, Severity, Strength
from traindx_tools.ordering import WEAK, levelled, place_in_order
from traindx_tools.preconditions import grounded_first, impossible
from traindx_tools.symptom.kinds import cap_for
from traindx_tools.symptom.parse import parse
from traindx_tools.symptom.stated import StatedSymptom
from traindx_tools.symptoms import observed_symptoms
from traindx_tools.weighing import Hypothesis as Hypothesis
from traindx_tools.weighing import Weighed as Weighed
from traindx_tools.weighing import (
    described,
    explains_error,
    matched_sides,
    nearest_first,
    netted,
    of_one_rank,
    onset,
    place_of,
)

CONFIDENT = 0.70
"""At or above: a diagnosis. Below: more data is needed (requirement E9)."""

BELOW = 0.69
"""The most that a suspicion may claim: text with which nothing of this run agrees, or an effect without its cause."""

STATED = 0.80
"""The most that text may claim with which only the person's words agree."""

REFUTED = 0.30
"""The most that text may claim which the run refutes: text suspects, the run convicts, and acquits."""

SUSPECTED = 0.40
"""From here on the first hypothesis is named in the verdict, as what it is: likelier than any other, and not shown."""

FEWEST = 5
"""Values below which nothing can be called healthy: two points are no curve."""
FEWEST_ALONE = 10
"""The same where the log is all that was read: most rules of curves ask for more points than that."""

LOG_ALONE = (" A log without a fault is not yet a run without one: a wrong target, a leak or a frozen layer can look "
             "like this. Have the code read too: put its path behind that of the log.")
"""What is said of a healthy log where no code was read."""

SLOW = "slow"
"""The symptom of modes that cost time and change no number."""

MOST_SHOWN = 5
"""How many hypotheses are shown at most; at least three are, filled from the look-alikes of the first."""


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


def timeline(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings above INFO, the earliest first; of two at one place the worse first."""
    matter = [f for f in findings if f.severity is not Severity.INFO]
    return tuple(sorted(matter, key=lambda f: (onset(f), -f.severity.rank, f.rule)))


def _supported(mode: FailureMode, pro: Sequence[Weighed], seen: frozenset[str]) -> bool:
    """Whether findings make a hypothesis: neither a remark (INFO) alone does, nor a guess, unless the person saw it
    too.

    Slowness explains slowness and nothing else: a mode that only makes a run slow is no cause of what a person
    describes in other words, and, where nothing is described, a cause only if it was found to do harm (MEDIUM).
    """
    if set(mode.symptoms) == {SLOW} and SLOW not in seen:
        return not seen and any(w.finding.severity.rank >= Severity.MEDIUM.rank for w in pro)
    if pro and seen & set(mode.symptoms):
        return True
    serious = [w for w in pro if w.finding.severity is not Severity.INFO]
    return any(w.strength is not Strength.GUESSED for w in serious)


def _has_a_place(mode: FailureMode, pro: Sequence[Weighed], domains: frozenset[str] | None) -> bool:
    """Whether a mode of a special part can be: the run has that part, or more than a general rule speaks for it."""
    if not mode.domain or domains is None or mode.domain in domains:
        return True
    return any((w.finding.rule[0] != "L" and w.role != "hint") or w.finding.rule.startswith("L6") for w in pro)


def _candidates(findings: Sequence[Finding], modes: Mapping[str, FailureMode], words: str,
                domains: frozenset[str] | None) -> list[Candidate]:
    """Every mode that a finding speaks for, with what speaks for the effects that it causes."""
    weighed = {k: netted(*matched_sides(m, findings, words)) for k, m in modes.items()}
    return [Candidate(m, tuple(weighed[k][0]), tuple(weighed[k][1]), _through(m, weighed))
            for k, m in modes.items() if weighed[k][0] and _has_a_place(m, weighed[k][0], domains)]


def _through(mode: FailureMode, weighed: Mapping[str, tuple[list[Weighed], list[Weighed]]]) -> tuple[Weighed, ...]:
    """What speaks for the effects of a mode and not for itself: all of it predicted, together worth one hint."""
    own = {id(w.finding) for side in weighed[mode.id] for w in side}
    told: dict[int, Weighed] = {}
    for w in (w for effect in mode.causes if effect in weighed for w in weighed[effect][0]):
        if of_one_rank(w.finding) and not explains_error(weighed[mode.id][0]):
            continue
        if w.in_run and id(w.finding) not in own:
            hint = 0.0 if told else load_precision().weight(w.finding.rule, "hint", w.finding.bearing)
            told.setdefault(id(w.finding), Weighed(w.finding, hint, Bearing.COMPANION, "an effect of it"))
    return tuple(told.values())


@dataclass(frozen=True)
class Said:
    """What a person said, for the weighing: the kinds of symptoms named, and those of them that the record shows."""

    kinds: frozenset[str]
    stated: tuple[StatedSymptom, ...]
    measured: frozenset[str]


def agrees(mode: FailureMode, weighed: Iterable[Weighed], findings: Iterable[Finding], said: Said) -> bool:
    """Whether something of this run agrees with a mode: it speaks for it, or shows one of its symptoms."""
    if any(w.in_run and w.finding.severity is not Severity.INFO for w in weighed) or said.measured & set(mode.symptoms):
        return True
    return any(f.strength is Strength.RAN and f.severity is not Severity.INFO and shows(f) & set(mode.symptoms)
               for f in findings)  # fmt: skip


def _acquitted(found: Candidate) -> bool:
    """Whether the run refutes what only text suggests."""
    refuted = any(w.in_run and w.role == "refutes" for w in found.con)
    return refuted and not any(w.in_run and w.bearing is Bearing.CAUSE for w in found.pro)


def _restates(found: Candidate, said: Said) -> bool:
    """Whether a mode says no more than the person did, in their words."""
    return any(p.search(s.said) for p in found.mode.restated for s in said.stated if not s.asked)


def _limit(found: Candidate, findings: Sequence[Finding], said: Said) -> tuple[float, str]:
    """The most that a hypothesis may claim, and why where that is less than its evidence carries."""
    cap = max((w.cap for w in (*found.pro, *found.through)), default=Bearing.COMPANION.cap)
    if _acquitted(found):
        return min(cap, REFUTED), "the run refutes what the code suggests"
    if found.mode.effect:
        return min(cap, BELOW), "this is what is seen; it has a cause of its own"
    if _restates(found, said):
        return min(cap, BELOW), "this is what you describe yourself; why it is so was not seen"
    if agrees(found.mode, (*found.pro, *found.through), findings, said):
        return cap, ""
    if said.kinds & set(found.mode.symptoms):
        return min(cap, STATED), "read in the code; of the run only your words agree with it"
    return min(cap, BELOW), "read in the code; nothing of this run agrees with it yet"


def _hypothesis(found: Candidate, others: Sequence[Candidate], findings: Sequence[Finding],
                said: Said) -> Hypothesis:
    rivals = rivals_of(found, others)
    sure = share(found.score, rivals)
    limit, why = _limit(found, findings, said)
    mode, claim, issue, mechanism = described(found.mode, found.pro)
    return Hypothesis(mode, found.score, min(sure, limit), (*found.pro, *found.through), found.con, claim, issue,
                      mechanism, place_of(found.pro), rivals, why if limit < CONFIDENT or sure > limit else "",
                      sum(found.accounts_for(f) for f in findings if f.severity is not Severity.INFO))


def _held_to(found: Hypothesis, stated: Sequence[StatedSymptom]) -> Hypothesis:
    """The hypothesis, held below a diagnosis where it cannot be the cause of anything that was stated."""
    cap = cap_for(found.mode.symptoms, stated)
    if found.confidence <= cap:
        return found
    return replace(found, confidence=cap, held="seen as well: it does not explain what you describe")


def _look_alikes(first: Hypothesis, taken: set[str], modes: Mapping[str, FailureMode],
                 found: Mapping[str, Hypothesis], most: float) -> Iterable[Hypothesis]:
    """Modes that look like the first hypothesis, and then its closest rivals: what must be ruled out too.

    `most`: the confidence of the last one with evidence of its own, which none of these exceeds.
    """
    near = [x.mode for x in first.mode.look_alikes if x.mode in modes]
    rivals = sorted((m for m in modes.values() if set(m.symptoms) & set(first.mode.symptoms)),
                    key=lambda m: (-len(set(m.symptoms) & set(first.mode.symptoms)), m.effect, m.id))
    for key in [*near, *(m.id for m in rivals)]:
        if key not in taken:
            taken.add(key)
            rest = min(most, BASE_RATE * (1 - first.confidence))
            yield found[key] if key in found else _unsupported(modes[key], rest)


def _unsupported(mode: FailureMode, confidence: float) -> Hypothesis:
    told, claim, issue, mechanism = described(mode, ())
    return Hypothesis(told, PRIOR, confidence, (), (), claim, issue, mechanism, None)


def _seen_itself(pro: Sequence[Weighed]) -> bool:
    """Whether something shows the cause itself or a sign of it, whatever its ground."""
    return any(w.role in ("cause", "sign") for w in pro)


def _answers(found: Hypothesis, stated: Sequence[StatedSymptom]) -> bool:
    """Whether it is likely enough to stand before what explains nothing of what the person describes."""
    return found.confidence >= WEAK and cap_for(found.mode.symptoms, stated) == 1.0


def _each_fact_once(ordered: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Without those that are another name of a fact that a surer one has told."""
    kept: list[Hypothesis] = []
    for h in ordered:
        own = [w.finding for w in h.speaks_for]
        if not any(same_fact(h.mode, own, k.mode, (w.finding for w in k.speaks_for)) for k in kept):
            kept.append(h)
    return kept


def rank(findings: Sequence[Finding], modes: Mapping[str, FailureMode], symptom: str = "",
         domains: frozenset[str] | None = None, measured: frozenset[str] = frozenset(),
         grounds: frozenset[str] | None = None) -> tuple[Hypothesis, ...]:
    """All hypotheses that a finding speaks for, the most likely first, filled up to three with look-alikes.

    `domains`: the special parts that the run has (see `domains.py`); None where nobody looked. `measured`: kinds of
    symptoms that the person states and the record shows (see `symptom.shown`). `grounds`: preconditions that something
    of the run shows (see `preconditions.py`); None where nobody looked.
    """
    said = Said(observed_symptoms(symptom), tuple(parse(symptom)), measured)
    candidates = [c for c in _candidates(findings, modes, symptom, domains)
                  if not impossible(c.mode.id, grounds) or _seen_itself(c.pro)]
    found = {c.mode.id: _held_to(_hypothesis(c, candidates, findings, said), said.stated) for c in candidates
             if _supported(c.mode, c.pro, said.kinds)}
    ordered = causes_first(sorted(found.values(), key=lambda h: (not _answers(h, said.stated), *place_in_order(h))))
    if not ordered:
        return ()
    ordered = _each_fact_once(grounded_first(nearest_first([*levelled(ordered)]), grounds))
    told = {h.mode.id for h in ordered}
    modes = {k: m for k, m in modes.items() if k in told or k not in found}
    shown = ordered[:MOST_SHOWN]
    here = {k: m for k, m in modes.items()
            if k in found or (_has_a_place(m, (), domains) and not impossible(k, grounds))}
    spare = iter(_look_alikes(shown[0], {h.mode.id for h in shown}, here, found, shown[-1].confidence))
    while len(shown) < 3 and (extra := next(spare, None)) is not None:
        shown.append(extra)
    return tuple(shown)


def fitting(verdict: Verdict, here: Circumstances) -> Verdict:
    """The verdict with the checks of each hypothesis that can tell something of this run."""
    told = tuple(replace(h, mode=fitted(h.mode, [(w.finding, w.bearing) for w in h.speaks_for], here))
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
        idle = (f.bearing is Bearing.SIGN and bool(causes)
                and all(refuted.keys() >= set(m.symptoms) for m in causes))  # fmt: skip
        seen = "; ".join(dict.fromkeys(refuted[s] for m in causes for s in m.symptoms)) if idle else ""
        told.append(replace(f, severity=Severity.INFO, statement=f"{f.statement}; {seen}") if idle else f)
    return tuple(told)


def _explains(anomalies: Sequence[Finding], symptom: str) -> bool:
    """Whether a person's symptom stands beside something minor that may explain it."""
    return bool(anomalies) and bool(observed_symptoms(symptom))


def _open(hypotheses: Sequence[Hypothesis]) -> str:
    """What the first hypothesis lacks, where it is more than evidence of its own kind."""
    first = hypotheses[0] if hypotheses else None
    if first is None:
        return ""
    if first.confidence < SUSPECTED:
        return ""
    if first.mode.effect:
        return f" What is seen is an effect ({first.claim}): its cause is not shown by this evidence."
    where = f" at {first.location.code}" if first.location is not None and first.location.code else ""
    why = first.held or "findings of this kind were not right often enough where it was measured"
    return f" Suspected ({first.confidence:.2f}): {first.claim}{where}; {why}."


def judge(findings: Sequence[Finding], modes: Mapping[str, FailureMode], symptom: str = "", *, records: int = 0,
          unseen: Sequence[str] = (), unjudged: Sequence[str] = (), strangers: Sequence[str] = (),
          domains: frozenset[str] | None = None, measured: frozenset[str] = frozenset(),
          grounds: frozenset[str] | None = None) -> Verdict:
    """The verdict over a run.

    `records`: how many metric values were read (a run of which nothing was read is not healthy). `unseen`: what the
    person states and what was read neither explains nor refutes, in words (see `symptom.left_open`). `unjudged`: what
    was not there to be judged at all, in words (see `symptoms.blind_spots`). `strangers`: names that were read and that
    no rule knows, where nothing else was. `domains`, `measured`, `grounds`: as for
    `rank`.
    """
    anomalies = timeline(findings)
    serious = [f for f in anomalies if f.severity.rank >= Severity.MEDIUM.rank]
    looks = bool(serious) or _explains(anomalies, symptom)
    hypotheses = rank(list(findings), modes, symptom, domains, measured, grounds) if looks else ()
    if hypotheses and hypotheses[0].confidence >= CONFIDENT:
        return Verdict("diagnosis_complete", hypotheses, anomalies, hypotheses[0].issue)
    if serious:
        worst = max(serious, key=lambda f: f.severity.rank)  # the earliest of them
        reason = (f"Something is wrong ({worst.statement.rstrip('.')}), but no cause reaches "
                  f"{100 * CONFIDENT:.0f} %.{_open(hypotheses)}")
        return Verdict("needs_more_data", hypotheses, anomalies, reason)
    if hypotheses:
        reason = f"What you describe has no certain cause on this evidence.{_open(hypotheses)}"
        return Verdict("needs_more_data", hypotheses, anomalies, reason)
    if strangers and records == 0:
        told = ", ".join(strangers[:6]) + (f" and {len(strangers) - 6} more" if len(strangers) > 6 else "")
        return Verdict("needs_more_data", (), anomalies, f"No rule knows the names that were read ({told}), so nothing "
                       "was judged: give the code that prints them, or say what they stand for "
                       f"(--name '{strangers[0]}=loss').")
    if records == 0:
        return Verdict("needs_more_data", (), anomalies, "No metrics and no errors were found in what was given.")
    alone = any("code" in what for what in unjudged)
    if records < (FEWEST_ALONE if alone else FEWEST):
        beside = ", and no code" if alone and records >= FEWEST else ""
        return Verdict("needs_more_data", (), anomalies, f"Only {records} value{'s were' if records > 1 else ' was'} "
                       f"read{beside}: too few to call a run healthy.")
    if unseen:
        reason = f"No rule saw a fault, but what you describe is not explained: {'; '.join(unseen)}."
        ranked = rank(list(findings), modes, symptom, domains, measured, grounds)
        return Verdict("needs_more_data", ranked, anomalies, reason)
    told = f"No rule saw a fault in the {records:,} values that were read."
    if unjudged:
        told += f" Not judged: {'; '.join(unjudged)}."
    if alone:
        told += LOG_ALONE
    return Verdict("healthy", (), anomalies, told)
