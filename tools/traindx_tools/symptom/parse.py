"""What a person saw, taken from their own words.

`parse` gives the symptoms, `read` everything: what is said to be in order, what is believed, asked or left unread. Only
observations count: a theory in the same sentence ("I think it is BatchNorm") changes nothing, since the person may be
wrong about it. The text is data and is never obeyed. English is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from traindx_tools.symptom import predicates, subjects
from traindx_tools.symptom.clauses import DONE, QUESTION, THEORY, TOLD, clauses, sentences
from traindx_tools.symptom.grammar import MOST_SAID, read_clause
from traindx_tools.symptom.mentions import Names, last_mentioned
from traindx_tools.symptom.places import place_in
from traindx_tools.symptom.predicates import LEVEL, NORMAL, NOTHING, UNPLACED
from traindx_tools.symptom.stated import NOT_UNDERSTOOD, Account, Place, StatedSymptom, Subject
from traindx_tools.symptom.targets import against_target
from traindx_tools.symptom.words import Token, absurd, cleaned, foreign, tokens

MOST_SYMPTOMS = 12
_THEORIES = frozenset({"poor", "high", "low"})
"""What is said of a learning rate in a theory ("probably it is too high"), which is no worry about the run."""
_VOCABULARY = (
    subjects.PHRASES.vocabulary
    | predicates.PHRASES.vocabulary
    | frozenset(
        {
            "step",
            "epoch",
            "iteration",
            "update",
            "batch",
            "process",
            "rank",
            "code",
            "refuse",
            "fail",
            "stop",
            "hour",
            "second",
            "minute",
            "month",
            "gpu",
            "worker",
            "episode",
        }
    )
)


def parse(text: str, names: Iterable[str] = ()) -> tuple[StatedSymptom, ...]:
    """The symptoms that a text states, in its order; one that is not understood where it states something unread.

    `names`: the run's own metric names. Reads at most 4,000 characters and gives at most 12 symptoms.
    """
    return read(text, tuple(names)).symptoms


@lru_cache(maxsize=64)
def _read(text: str, names: tuple[str, ...]) -> Account:
    clean = cleaned(text)
    known = Names(names)
    seen: list[StatedSymptom] = []
    fine: list[StatedSymptom] = []
    levels: list[StatedSymptom] = []
    worries: list[StatedSymptom] = []
    conceded: list[StatedSymptom] = []
    theories: list[str] = []
    questions: list[str] = []
    unread: list[str] = []
    read_as_deed = False
    before: Subject | None = None
    words = tokens(clean, _VOCABULARY)
    targets = _against_targets(clean, words, known)
    for clause in clauses(clean, words):
        if absurd(clause.text) or foreign(clause.text):
            unread.append(clause.text)
            continue
        target = targets.get(clause.sentence)
        if target is not None and target.direction == NORMAL:
            fine.append(target)
        elif target is not None:
            seen.append(target)
        found = list(read_clause(clause, known, before if clause.role == TOLD else None))
        said = [s for s, _ in found if s.direction not in (NOTHING, NORMAL, LEVEL, UNPLACED) and s.kinds]
        if target is not None:
            said = [s for s in said if not _restated(s, target)]
        if clause.role in (TOLD, DONE):
            spoken = next((x for _, x in reversed(found) if x is not None), None) or last_mentioned(
                clause.tokens, known
            )
            before = spoken or before
        read_as_deed = read_as_deed or clause.role == DONE or _remedy(found)
        if clause.role == TOLD:
            seen += said
            conceded += said if clause.concession else []
            fine += [s for s, _ in found if s.direction == NORMAL]
            levels += [replace(s, direction=NORMAL) for s, _ in found if s.direction == LEVEL]
            idle = all(s.direction in (NOTHING, UNPLACED) or not (s.kinds or s.direction in (NORMAL, LEVEL))
                       for s, _ in found)
            idle = idle and target is None and len(clause.tokens) > 1 and not _remedy(found)
            unread += [clause.text] if idle else []
        elif clause.role in (THEORY, QUESTION):
            worries += [
                s for s in said if s.direction not in _THEORIES or s.subject is None or s.subject.family != "lr"
            ]
            (theories if clause.role == THEORY else questions).append(clause.text[:MOST_SAID])
    firm = [s for s in seen if s not in conceded]
    kept = _distinct(firm or seen) or [replace(s, asked=True) for s in _distinct(worries)]
    left = " ".join(unread)
    if not left and not (fine or levels or theories or questions or read_as_deed or clean.rstrip().endswith("?")):
        left = clean.strip(" ?!.,;:\n")  # nothing in it was read, so nothing in it is dropped
    if not kept and left:
        place = Place() if absurd(left) else place_in(left)
        kept = [StatedSymptom(left[:MOST_SAID].strip(), NOT_UNDERSTOOD, None, place)]
    if not (kept or fine or theories or questions or read_as_deed) and levels and not clean.rstrip().endswith("?"):
        kept = [replace(levels[-1], said=clean[:MOST_SAID].strip(), direction=NOT_UNDERSTOOD, kinds=frozenset())]
    return Account(
        tuple(kept[:MOST_SYMPTOMS]),
        tuple((*fine, *levels)[:MOST_SYMPTOMS]),
        tuple(theories),
        tuple(questions),
        tuple(unread),
        frozenset(names),
    )


def read(text: str, names: Sequence[str] = ()) -> Account:
    """The whole account of a text; see `parse`."""
    return _read(text[:100_000], tuple(names))


_OF_THE_RUN = frozenset({"crash", "hang", "oom", "gap", "identical", "overflow"})
"""Directions of which a run has one, whatever they are said of."""


def _against_targets(text: str, words: Sequence[Token], names: Names) -> dict[int, StatedSymptom]:
    """What the sentences say of a value beside an expected one, by their number."""
    found: dict[int, StatedSymptom] = {}
    before: Subject | None = None
    for number, (sentence, asked) in enumerate(sentences(words)):
        said = text[sentence[0].start : sentence[-1].end]
        told = None if asked or absurd(said) or foreign(said) else against_target(sentence, said, names, before)
        if told is not None:
            found[number] = told
        before = last_mentioned(sentence, names) or before
    return found


_LEVELS = frozenset({"is", "stays", "low", "high", "less", "more", "poor", "gap", "falls", "rises"})


def _restated(read: StatedSymptom, target: StatedSymptom) -> bool:
    """Whether what a clause gives is the value, or the miss, that the whole sentence was read for."""
    if read.direction not in _LEVELS or read.subject is None or target.subject is None:
        return False
    same = (read.subject.key, read.subject.group) == (target.subject.key, target.subject.group)
    return same and (read.direction not in ("falls", "rises") or read.value in (target.value, target.target))


def _remedy(found: Sequence[tuple[StatedSymptom, Subject | None]]) -> bool:
    """Whether a clause only says that something did not help or that a run was started: that is read, no symptom."""
    return any(s.direction == NOTHING and subject is None for s, subject in found)


def _distinct(found: Iterable[StatedSymptom]) -> list[StatedSymptom]:
    """Each direction of each subject once: what is said twice is one symptom."""
    out: dict[tuple[str, str, str | None], StatedSymptom] = {}
    for s in found:
        one = s.direction in _OF_THE_RUN
        key = (
            s.direction,
            s.subject.key if s.subject and not one else "",
            s.subject.group if s.subject and not one else None,
        )
        out.setdefault(key, s)
    return list(out.values())


__all__ = ["parse", "read"]
