"""Stated symptoms, looked up in what was read and answered, and what follows from the answers for the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from traindx_tools.finding import Finding
from traindx_tools.on_logs.run import Run
from traindx_tools.symptom.answer import NOT_SEEN, NOT_UNDERSTOOD, SEEN, SymptomAnswer
from traindx_tools.symptom.curves import on_series
from traindx_tools.symptom.events import by_finding, in_events, not_recorded
from traindx_tools.symptom.expected import reason_for
from traindx_tools.symptom.kinds import fits
from traindx_tools.symptom.parse import parse
from traindx_tools.symptom.stated import StatedSymptom


@dataclass(frozen=True)
class Cause:
    """A hypothesis as far as it matters here: the mode's id, its symptoms and whether it is sure enough."""

    id: str
    symptoms: tuple[str, ...]
    claim: str = ""


def look_up(symptom: StatedSymptom, run: Run, findings: Sequence[Finding] = ()) -> SymptomAnswer:
    """The answer to one stated symptom: from curves, from errors and notes, from findings, else what would show it."""
    if not symptom.understood and symptom.value is not None:
        return SymptomAnswer(
            symptom,
            NOT_UNDERSTOOD,
            f'"{symptom.said}" gives a value, and not what it should be.',
            question='What should it be, or what is wrong with it ("usually 0.99", "below the bar 0.995", "it falls")?',
        )
    if not symptom.understood:
        return SymptomAnswer(
            symptom,
            NOT_UNDERSTOOD,
            f'I do not understand "{symptom.said}" as an observation.',
            question="Which metric or output is it, and what does it do (rises, stays at a value, is "
            "NaN, is garbled ...), since when?",
        )
    answer = in_events(symptom, run, findings) or on_series(symptom, run)
    elsewhere = answer is not None and answer.answer == NOT_SEEN and "not_finite" in answer.values
    if answer is None or (answer.answer == NOT_SEEN and not answer.refuted and not elsewhere):
        answer = by_finding(symptom, findings) or answer
    answer = answer or not_recorded(symptom, run)
    if (answer.answer == SEEN or elsewhere) and not answer.expected:
        return replace(answer, expected=reason_for(answer, run))
    if answer.answer == NOT_SEEN and not answer.refuted and not answer.question:
        return replace(answer, question="Where do you see it: in which file, plot or output, and at which step?")
    return answer


def answers_to(text: str, run: Run, findings: Sequence[Finding] = ()) -> tuple[SymptomAnswer, ...]:
    """The answers to every symptom that a text states; empty where it states none."""
    names = tuple(dict.fromkeys(s.original for s in run.series))[:500]
    return tuple(look_up(s, run, findings) for s in parse(text, names))


def explained(answers: Iterable[SymptomAnswer], causes: Sequence[Cause]) -> tuple[SymptomAnswer, ...]:
    """The answers, each with the first of the sure causes that predicts what was stated."""
    return tuple(replace(a, explained_by=_explains(a, causes)) for a in answers)


def _explains(answer: SymptomAnswer, causes: Sequence[Cause]) -> str | None:
    if answer.refuted or answer.answer == NOT_UNDERSTOOD:
        return None
    stated = [replace(answer.symptom, asked=False)]
    return next((c.id for c in causes if fits(c.symptoms, stated) == "explains"), None)


def shown(answers: Iterable[SymptomAnswer]) -> frozenset[str]:
    """The kinds (`catalog.SYMPTOMS`) that were stated and measured in this run: what of it agrees with a suspicion."""
    return frozenset(k for a in answers if a.answer == SEEN and not a.expected for k in a.symptom.kinds)


def left_open(answers: Iterable[SymptomAnswer]) -> tuple[str, ...]:
    """What is still unexplained, one short sentence each: while there is one, no run is healthy."""
    words = {SEEN: "seen", NOT_SEEN: "not seen", NOT_UNDERSTOOD: "not understood"}
    return tuple(
        f'"{a.symptom.said[:80]}" ({words[a.answer]}: {a.statement.rstrip(".")})' for a in answers if a.is_open
    )
