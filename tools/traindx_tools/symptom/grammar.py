"""Words in, observations out: subjects, predicates, negation, values, places.

A clause is read from left to right. Every predicate of the tables takes the nearest subject before it, or the one of
the predicate before where it has none of its own, or the nearest after it ("a bump in the loss"). What a table says of
a predicate decides whether that pair means anything; where it means nothing, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from traindx_tools.symptom import predicates
from traindx_tools.symptom.clauses import Clause
from traindx_tools.symptom.kinds import kinds_of
from traindx_tools.symptom.meaning import Read, meant
from traindx_tools.symptom.mentions import Mention, Names, mentions
from traindx_tools.symptom.owners import by_its_value, fits, owned, pronoun, the_loss
from traindx_tools.symptom.places import against_in, named_level, place_in
from traindx_tools.symptom.predicates import NORMAL, NOTHING, Predicate
from traindx_tools.symptom.stated import Place, StatedSymptom, Subject
from traindx_tools.symptom.subjects import JUDGED_BY_VALUE, SPLITS
from traindx_tools.symptom.values import RELATIONS, value_after
from traindx_tools.symptom.words import Hit, Token

_ERROR = Predicate("crash", NORMAL, (), alone=True)
_IS = Predicate("is", "other", tuple(JUDGED_BY_VALUE))
_STILL = Predicate("still", NORMAL, ("loss", "score", "run", "reward", "own"))
_BESIDE = "beside"
"""The phrase of a value that stands before its metric, without a verb: "0.31 acc"."""
_FORMED = ("error", "exception")
MOST_SAID = 200
_AFTER = frozenset(
    [
        "for",
        "in",
        "on",
        "at",
        "as",
        "from",
        "to",
        "of",
        "with",
        "and",
        "or",
        "but",
        "every",
        "each",
        "again",
        "then",
        "until",
        "since",
        "before",
        "after",
        "when",
        "while",
        "than",
        "across",
        "over",
        "throughout",
        "now",
        "whatever",
        "between",
    ]
)
_ADJECTIVES = frozenset(
    [
        "same",
        "constant",
        "identical",
        "low",
        "tiny",
        "small",
        "lower",
        "smaller",
        "large",
        "larger",
        "big",
        "bigger",
        "high",
        "higher",
        "huge",
        "bad",
        "poor",
        "good",
        "fine",
        "normal",
        "right",
        "great",
        "perfect",
        "wrong",
        "broken",
        "weird",
        "strange",
        "random",
        "weak",
        "ordinary",
        "stable",
        "better",
        "worse",
        "worst",
        "slow",
        "slower",
        "best",
    ]
)
_CATENATIVES = frozenset(
    {
        "refuse",
        "fail",
        "seem",
        "appear",
        "start",
        "begin",
        "continue",
        "tend",
        "go",
        "come",
        "keep",
        "up",
        "down",
        "back",
        "close",
        "stick",
        "drop",
        "fall",
        "jump",
        "climb",
        "glue",
        "sink",
    }
)
_VERBS = frozenset(
    [
        "drop",
        "rise",
        "increase",
        "grow",
        "fall",
        "decrease",
        "learn",
        "train",
        "improve",
        "change",
        "move",
        "stop",
        "reach",
        "get",
        "settle",
        "jump",
        "converge",
        "swing",
        "generalize",
        "update",
    ]
)
_LOOSELY = frozenset({"close", "nearly", "almost", "practically", "near", "tiny", "essentially", "virtually"})
_LEVELS = frozenset({"chance", "at chance", "near chance", "below chance", "guess", "at random", "coin flip"})
_EMPTY = frozenset({
    "be", "show", "read", "print", "report", "equal", "become", "turn", "log", "display", "be about", "reach",
    "go to", "drop to", "fall to", "reached", "tell", "come out at", "end up at", "start at", "start near",
    "begin at", "stay", "remain", "sit", "stick", "keep at", "hover"})  # fmt: skip


def read_clause(clause: Clause, names: Names, before: Subject | None) -> Iterator[tuple[StatedSymptom, Subject | None]]:
    """The observations of a clause; `before`: the subject of the clause before, for "... and then it is NaN"."""
    words = clause.tokens
    before = _elsewhere(before, words)
    found = mentions(words, names, before)
    hits = _hits(words, found)
    reads: list[Read] = []
    for i, hit in enumerate(hits):
        floor = hits[i - 1].end if i else 0
        carried = reads[-1].subject if reads and reads[-1].subject is not None else before
        reads += _read_one(hit, floor, words, found, carried, hits)
    for read in _merged(reads):
        yield _symptom(clause, read), read.subject


def _hits(words: Sequence[Token], found: Sequence[Mention]) -> list[Hit[Predicate]]:
    """The predicates of a clause from left to right, without those that say nothing where they stand."""
    taken = frozenset(i for f in found for i in range(f.start, f.end))
    hits = [h for h in predicates.PHRASES.find(words) if not _covered(h, taken) and not _idle(h, words, found)]
    hits += [
        Hit(_ERROR, i, i + 1, w.base)
        for i, w in enumerate(words)
        if w.kind == "word" and w.text.lower().endswith(_FORMED) and w.text.lower() not in _FORMED
    ]
    hits += [Hit(_STILL, len(words), len(words), "not")] if not hits and _ends_denied(words) else []
    hits += [Hit(_IS, f.end, f.end, "is") for f in found if _valued(f, words, hits)]
    hits += [Hit(_IS, f.start - 1, f.start - 1, _BESIDE) for f in found if not hits and _value_before(f, words)]
    return _without_links(sorted(hits, key=lambda h: h.start), words)


def _without_links(hits: Sequence[Hit[Predicate]], words: Sequence[Token]) -> list[Hit[Predicate]]:
    """Without the verbs that only lead to what is said: "is" in "is NaN", "stays" in "stays flat"."""
    kept: list[Hit[Predicate]] = []
    for i, hit in enumerate(hits):
        end = hits[i + 1].start if i + 1 < len(hits) else len(words)
        value, relation = value_after(words, hit.end, min(end, hit.end + 9))
        telling = (
            value is not None
            or relation in ("above", "below")
            or named_level(" ".join(w.text for w in words[hit.end : end]))
            or any(w in ("above", "below", "under") for w in hit.phrase.split())
        )
        behind = bool(kept) and hit.start - kept[-1].end <= 1 and kept[-1].entry.direction not in ("is", NORMAL)
        if hit.phrase in ("above", "below", "under") and behind:
            continue  # "stuck above 0.8": a relation, no comparison
        if hit.entry.direction not in ("is", "stays") or telling:
            kept.append(hit)
    return kept


def _idle(hit: Hit[Predicate], words: Sequence[Token], found: Sequence[Mention]) -> bool:
    """Whether a predicate says nothing here: "the same script", or what something is there for ("learns to drop")."""
    following = words[hit.end] if hit.end < len(words) else None
    if (
        hit.phrase in _ADJECTIVES
        and following is not None
        and following.kind == "word"
        and (
            (following.base not in _AFTER and not any(f.start - 2 <= hit.end <= f.start for f in found))
            or (hit.phrase in ("same", "constant", "identical") and following.base not in _AFTER)
        )
    ):
        return True
    owner = next((f.subject for f in found if f.start == hit.end), None)
    if owner is not None and owner.family in ("lr", "setting") and not fits(hit.entry, owner):
        return True  # "the peak learning rate"
    back = words[max(hit.start - 2, 0) : hit.start]
    if back and back[-1].base in ("than", "beat"):
        return True
    return (
        len(back) == 2 and back[1].base == "to" and back[0].base not in _CATENATIVES and hit.phrase.split()[0] in _VERBS
    )


def _ends_denied(words: Sequence[Token]) -> bool:
    """Whether a clause only denies what the one before said: "... while validation is not"."""
    return len(words) > 2 and words[-1].base == "not" and words[-2].base in ("be", "do", "have", "can", "will")


def _valued(found: Mention, words: Sequence[Token], hits: Sequence[Hit[Predicate]]) -> bool:
    """Whether a number stands right behind a subject: "train 0.98 but validation 0.3", "loss = 2.3"."""
    end = found.end + (found.end < len(words) and words[found.end].base in ("=", "at", "of", "~", "<", ">"))
    told = end < len(words) and words[end].kind == "number" and found.subject.family in JUDGED_BY_VALUE
    return told and not found.governed and not any(h.start <= found.end < h.end for h in hits)


def _elsewhere(before: Subject | None, words: Sequence[Token]) -> Subject | None:
    """What was spoken of, on the data that this clause names: "train accuracy is 99 %, but on held-out days it is 42".
    """
    named = {SPLITS[b.base] for a, b in pairwise(words) if b.base in SPLITS and a.base in _ON_DATA}
    if before is None or before.group is None or len(named) != 1:
        return before
    bare = " ".join(w for w in before.words.split() if w.lower() not in SPLITS)
    return replace(before, group=named.pop(), words=bare or before.words)


_ON_DATA = frozenset({"on", "in", "for", "at", "the"})


def _value_before(found: Mention, words: Sequence[Token]) -> bool:
    """Whether a share or a decimal fraction stands right before a metric: "only 0.31 acc"; a whole number counts."""
    value = words[found.start - 1] if found.start else None
    told = value is not None and value.number is not None and (value.text.endswith("%") or "." in value.text)
    return told and not found.governed and found.subject.family in ("loss", "score")


def _covered(hit: Hit[Predicate], taken: frozenset[int]) -> bool:
    """Whether the words of a predicate are those of a subject: "train" in "train loss" says nothing."""
    return all(i in taken for i in range(hit.start, hit.end))


def _read_one(
    hit: Hit[Predicate],
    floor: int,
    words: Sequence[Token],
    found: Sequence[Mention],
    carried: Subject | None,
    hits: Sequence[Hit[Predicate]],
) -> Iterator[Read]:
    """A predicate with its subjects, its negation and its value; one for each of several subjects."""
    predicate, owners = owned(hit, found, floor, words, carried)
    owners = owners or [f.subject for f in found if predicate.alone and f.start < hit.end and hit.start < f.end]
    owners = [f.subject for f in found if f.start == hit.end + 1] if hit.phrase == _BESIDE else owners
    owners = owners or pronoun(predicate, words, hit.start)
    owners = owners or by_its_value(predicate, words, hit, found) or the_loss(predicate, words, hit, found)
    ends = min([h.start for h in hits if h.start >= hit.end and h is not hit] or [len(words)])
    value, relation = value_after(words, hit.end, min(max(ends, hit.end + 1), hit.end + 9))
    direction = _direction(predicate, _denial(words, hit, floor))
    base = Read(
        predicate,
        None,
        direction,
        value,
        _bound(hit) or relation,
        hit.phrase,
        True,
        any(w.base in _LOOSELY for w in words[hit.end : ends]),
        _around(words, hit, floor, ends),
        _lead(words, hits),
        level=named_level(" ".join(w.text for w in words[hit.end : ends])),
    )
    if value is None and direction != "stays":
        base = replace(base, relation="")
    said: Sequence[Subject | None] = owners or (None,)
    for subject in said:
        yield replace(base, subject=subject, after=not any(f.subject is subject and f.start >= hit.end for f in found))


def _direction(predicate: Predicate, denial: str) -> str:
    """The direction with its negation: what does not fall stands still, "no increase" is in order."""
    if denial == "instead":
        return NOTHING
    if denial == "no" and predicate.direction in ("rises", "falls"):
        return NORMAL
    return predicate.denied if denial else predicate.direction


def _bound(hit: Hit[Predicate]) -> str:
    """The relation that the phrase itself names: "get below"."""
    return next((RELATIONS[w] for w in hit.phrase.split() if w in ("above", "below", "under")), "")


def _around(words: Sequence[Token], hit: Hit[Predicate], floor: int, ends: int) -> str:
    """The words from the comma or "and" before a predicate to the one behind it."""

    def parts(i: int) -> bool:
        return words[i].base in (",", "and") and not (i + 1 < len(words) and words[i + 1].kind == "number")

    stop = next((i for i in range(hit.end, ends) if parts(i)), ends)
    begin = max([i + 1 for i in range(floor, hit.start) if parts(i)] or [floor])
    return " ".join(w.text for w in words[begin:stop])


def _lead(words: Sequence[Token], hits: Sequence[Hit[Predicate]]) -> str:
    """The words before the first predicate; the whole clause where there is one predicate alone."""
    return " ".join(w.text for w in (words if len(hits) == 1 else words[: hits[0].start]))


def _denial(words: Sequence[Token], hit: Hit[Predicate], floor: int) -> str:
    """The word of negation that stands before the predicate with nothing but small words between, else ""."""
    inside = hit.phrase.split()
    if inside[0] in predicates.NEGATIONS:
        return ""
    if any(w.base in ("not", "never") for w in words[hit.start : hit.end]):
        return "" if any(x in ("not", "never") for x in inside) else "not"
    for i in range(hit.start - 1, max(hit.start - 6, floor - 1, -1), -1):
        w = words[i]
        if w.kind == "mark" or w.base in ("and", "or", "then"):
            return ""
        if w.base in ("without", "no") and hit.start - i > 2:
            return ""  # "without accumulation it is stable"
        if w.base in predicates.NEGATIONS:
            return "" if w.base == "not" and i + 1 < len(words) and words[i + 1].base == "only" else w.base
    early = any(w.base == "neither" for w in words[: hit.start])
    return "neither" if early and hit.entry.denied == "still" else ""


def _merged(reads: Sequence[Read]) -> list[Read]:
    """Without what says nothing beside another: "stays flat" is flat, "is NaN" is NaN, "stays" alone is nothing."""
    out: list[Read] = []
    for i, r in enumerate(reads):
        following = reads[i + 1] if i + 1 < len(reads) else None
        empty = r.direction in ("stays", "is") and r.value is None
        if empty and r.level and r.subject is not None and r.subject.family in ("loss", "score", "reward"):
            r = replace(r, direction="poor")  # "stays at the variance of the target"
            empty = False
        if empty and (following is not None or r.phrase in _EMPTY) and r.relation not in ("above", "below"):
            continue
        if out and r.phrase.startswith("same") and out[-1].direction == "identical":
            continue  # "predicts the same value" is one symptom
        if out and r.phrase in _LEVELS and out[-1].direction in ("still", "stays", "poor", "falls"):
            continue  # "never rises above chance" is one symptom
        out.append(r)
    return out


def _symptom(clause: Clause, read: Read) -> StatedSymptom:
    against, place = against_in(clause.text), _place(read)
    direction = meant(read, against.kind, place.kind)
    made = StatedSymptom(clause.text[:MOST_SAID], direction, read.subject, place, read.value, read.relation, against)
    return replace(made, kinds=kinds_of(made))


def _place(read: Read) -> Place:
    """The place beside the predicate, else the one that the clause begins with."""
    near = place_in(read.near)
    return near if near.kind else place_in(read.lead)
