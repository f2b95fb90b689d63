"""Whose a predicate is: the nearest subject that it can be said of, and those that "and" joins to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traindx_tools.symptom.mentions import PREPOSITIONS, SMALL, Mention
from traindx_tools.symptom.predicates import Predicate
from traindx_tools.symptom.stated import Subject
from traindx_tools.symptom.subjects import SPLITS
from traindx_tools.symptom.words import SKIPPED, Hit, Token

_JOINS = frozenset({"and", "or", "nor", ",", "the", "its", "both", "a", "as", "well"})


def owned(
    hit: Hit[Predicate], found: Sequence[Mention], floor: int, words: Sequence[Token], carried: Subject | None
) -> tuple[Predicate, list[Subject]]:
    """Of what a phrase can mean the first that its subject allows: a job that hangs, a loss that hangs at 2."""
    options = [(p, _subjects_of(p, hit, found, floor, words, carried)) for p in (hit.entry, *hit.others)]
    return next(
        ((p, s) for p, s in options if s and _near(s, found, floor, hit)),
        next(((p, s) for p, s in options if s), options[-1] if options[-1][0].alone else options[0]),
    )


def _near(chosen: Sequence[Subject], found: Sequence[Mention], floor: int, hit: Hit[Predicate]) -> bool:
    return any(f.subject is s and floor <= f.start <= hit.end + 3 for s in chosen for f in found)


def fits(predicate: Predicate, subject: Subject | None) -> bool:
    """Whether it can be said of the subject; a split of the data is a score and a run in one."""
    if not predicate.only or subject is None:
        return not predicate.only
    return subject.family in predicate.only or (subject.key == "split" and bool({"run", "score"} & set(predicate.only)))


def _subjects_of(
    predicate: Predicate,
    hit: Hit[Predicate],
    found: Sequence[Mention],
    floor: int,
    words: Sequence[Token],
    carried: Subject | None,
) -> list[Subject]:
    """The nearest fitting subject before the predicate, then the carried one, then the nearest after it."""
    fitting = [f for f in found if fits(predicate, f.subject)]
    near = [f for f in fitting if floor <= f.start and f.end <= hit.start]
    right = [f for f in fitting if hit.end <= f.start <= hit.end + 3 and not _marked(words, hit.end, f.start)]
    free = [f for f in near if not f.governed]
    others = [f for f in found if floor <= f.start and f.end <= hit.start and not f.governed and f not in fitting]
    if others and (not near or (near[-1].end <= others[-1].start and _marked(words, near[-1].end, others[-1].start))):
        return []  # it is said of something else: "loss is logged, the seed and the data are the same"
    for group in ([f for f in free if f.subject.family not in ("run", "setting")], free):
        if group:
            return _joined(group, words, near)
    if _stranger(words, floor, hit.start, near):
        return []  # "the teacher gets no gradient": no table knows what a teacher is
    if near and carried is None:
        return [near[-1].subject]
    if right and (carried is None or not _verbal(hit)):
        return [right[0].subject]
    if carried is not None and fits(predicate, carried):
        return [carried]
    if near or right:
        return [(near[-1:] or right[:1])[0].subject]
    left = [f for f in fitting if f.end <= hit.start]
    return [left[-1].subject] if left else []


def _stranger(words: Sequence[Token], start: int, end: int, near: Sequence[Mention]) -> bool:
    """Whether a noun that no table knows stands before the predicate as its subject: behind an article, free."""
    known = [f.start for f in near]
    for i in range(start, end - 1):
        if words[i].base in ("the", "a", "an", "my", "our") and (i == 0 or words[i - 1].base not in PREPOSITIONS):
            inside = words[i + 1 : end]
            if inside and inside[0].kind == "word" and not any(i < k <= i + 3 for k in known):
                return inside[0].base not in SMALL and inside[0].base not in SKIPPED
    return False


def _verbal(hit: Hit[Predicate]) -> bool:
    """Whether a predicate is a verb, whose subject stands before it; nouns and adjectives may have theirs behind."""
    return hit.entry.direction in (
        "rises",
        "falls",
        "stays",
        "is",
        "jumps",
        "oscillates",
        "still",
        "crash",
        "hang",
        "less",
        "more",
        "better",
        "worse",
    )


def _marked(words: Sequence[Token], start: int, end: int) -> bool:
    return any(w.kind == "mark" or w.base in ("and", "but") for w in words[start:end])


def _joined(group: Sequence[Mention], words: Sequence[Token], near: Sequence[Mention]) -> list[Subject]:
    """The last subject and those that "and" joins to it: "loss and grad_norm are zero"."""
    chosen = [group[-1]]
    for f in reversed(group[:-1]):
        between = words[f.end : chosen[0].start]
        if not between or not all(w.base in _JOINS or w.base in SPLITS for w in between):
            break
        chosen.insert(0, f)
    split = next((f.subject.group for f in near if f.subject.family == "run" and f.subject.group), None)
    return [replace(f.subject, group=split) if f.subject.group is None and split else f.subject for f in chosen]


def pronoun(predicate: Predicate, words: Sequence[Token], end: int) -> list[Subject]:
    """The run as a whole, where "it" does something that can be said of a run and nothing else was spoken of."""
    said = [w.text for w in words[:end] if w.base in ("it", "this", "everything")]
    return [Subject("run", "run", said[0])] if said and "run" in predicate.only else []


def by_its_value(predicate: Predicate, words: Sequence[Token], hit: Hit[Predicate],
                 found: Sequence[Mention]) -> list[Subject]:
    """What "our small BERT stays at loss 1.4", "the probe is at 22 %" and "... at chance" are said of.

    The owner is a thing that no table knows; what stands at its value tells which quantity is meant. A percentage and
    a level of chance are those of a score, unless another quantity stands beside them ("22 % of the memory").
    """
    if "score" not in predicate.only or any(
            f.end <= hit.start and not f.governed and f.subject.family not in ("run", "setting") for f in found):
        return []
    group = next((SPLITS[w.base] for w in words[:hit.start] if w.base in SPLITS), None)
    if "chance" in hit.phrase.split() or predicate.direction == "worse":
        return [Subject("accuracy", "score", hit.phrase, group)]
    after = words[hit.end : hit.end + 7]
    at = next((i for i, w in enumerate(after) if w.kind == "number" or w.base in ("chance", "random")), None)
    if at is None or any(w.kind == "mark" for w in after[:at]):
        return []
    place = hit.end + at
    named = [f for f in found if hit.end <= f.start and f.end <= place and fits(predicate, f.subject)]
    if named:
        return [named[-1].subject]
    level = after[at].kind == "word" or words[place].text.rstrip().endswith("%")
    of = place + 1 < len(words) and words[place + 1].base == "of"
    beside = of and any(place < f.start <= place + 4 for f in found)
    return [Subject("accuracy", "score", words[place].text, group)] if level and not beside else []


_DENIED = frozenset({"not", "never", "no", "do"})
_THERE = (
    SKIPPED
    | SMALL
    | {"too", "there", "be", "i", "we", "see", "get", "have", "notice", "observe", "sudden", "big", "huge"}
)


def the_loss(
    predicate: Predicate, words: Sequence[Token], hit: Hit[Predicate], found: Sequence[Mention]
) -> list[Subject]:
    """What "spike at step 370" and "plateau" are said of where nothing is named: the curve that everybody watches."""
    before = [w.base for w in words[: hit.start]]
    denied = bool(_DENIED.intersection(before))
    direction = predicate.denied if denied else predicate.direction
    here = [f for f in found if f.start < hit.end or not _marked(words, hit.end, f.start)]
    named = any(f.subject.family != "setting" for f in here) or not all(w in _THERE | _DENIED for w in before)
    of = hit.end < len(words) and words[hit.end].base in ("in", "of")
    if direction not in ("spikes", "jumps", "still", "slow", "hang") or named or of:
        return []
    whole = direction in ("still", "slow", "hang")
    return [Subject("run", "run", hit.phrase) if whole else Subject("loss", "loss", "loss")]
