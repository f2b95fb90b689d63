"""A value beside the one that was expected: "val_acc 0.764, 0.90 expected", "acc=0.31 (paper: 0.76)", "62% not 75".

Such a sentence has no verb that a table of predicates could read. It has a metric, a value and, marked by a word or a
sign, a second value that it should have been. Which way it misses is arithmetic; whether that is bad is a fact of the
metric: less of a score, more of a loss or of a time. Where no metric is named, a share that falls short is a score's:
nobody complains that an error rate is too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindx_tools.symptom.grammar import MOST_SAID
from traindx_tools.symptom.kinds import kinds_of
from traindx_tools.symptom.meaning import GOOD_WAY
from traindx_tools.symptom.mentions import Mention, Names, mentions
from traindx_tools.symptom.places import against_in, place_in
from traindx_tools.symptom.predicates import NORMAL
from traindx_tools.symptom.stated import Against, StatedSymptom, Subject
from traindx_tools.symptom.subjects import JUDGED_BY_VALUE
from traindx_tools.symptom.values import value_after
from traindx_tools.symptom.words import Token

_FIRM_BEFORE = frozenset({
    "expected", "expect", "expecting", "target", "goal", "aim", "should", "supposed", "hoped", "short", "far",
    "needs", "wanted", "used", "usually", "normally", "typically", "generally", "ordinarily", "yesterday", "bar",
    "last week",
})  # fmt: skip
"""Words before a value that is wanted, whether or not the one that came is named: "val_acc should be 0.9"."""
_BEFORE = frozenset({
    "instead", "rather", "vs", "versus", "against", "paper", "baseline", "reference", "original", "others", "reported",
    "published", "sota", "leaderboard", "repo", "repository", "tutorial", "compared", "previously", "earlier",
    "colleague", "they", "not", "<", ">", "elsewhere",
})  # fmt: skip
"""Words and signs before it where the value that came stands beside it."""
_FIRM_BEHIND = frozenset({"expected", "wanted", "needed", "hoped", "usually", "normally", "typically", "yesterday",
                          "last week"})  # fmt: skip
_BEHIND = frozenset({"reported", "published", "paper", "reference", "baseline", "normal", "usual", "target", "goal",
                     "original", "tutorial", "leaderboard", "elsewhere", "before"})  # fmt: skip
_EARLIER = frozenset({"last", "previous", "past"})
_TIMES = frozenset({"week", "month", "night", "year", "quarter", "time", "release", "version"})
"""An earlier time, "last week": what a metric was then is what it should be now."""
_GATES = frozenset({"threshold", "minimum", "cutoff", "gate", "requirement"})
_MISSES = frozenset({"below", "under", "miss", "reach", "meet", "short", "fail", "beat", "clear", "pass"})
"""A value of a gate is the expected one where something misses it: "accuracy at threshold 0.5" is none."""
_SIDE_BY_SIDE = frozenset({"vs", "versus", "against", "compared", "not", "<", ">"})
"""Marks that say "the one beside the other" of anything: they count between two neighbouring values of one metric."""
_LINKS = frozenset({
    "be", "of", "at", "to", "about", "around", "least", "over", "above", "below", "under", "a", "an", "the", "reach",
    "get", "give", "have", "=", ":", "~", "was", "is", "only", "some", "roughly", "from", "still", "stay", "end",
    "show", "report", "stand",
})  # fmt: skip
"""Words that lead from a metric, or from a mark, to its value."""
_COMES = frozenset({"get", "got", "have", "reach", "be", "only", "is", "now", "today", "tonight", "currently"})
"""Words right before the value that came, where it stands apart from its metric."""
_NEAR = 3
"""Words between two values that stand side by side at most."""
_FAR = 7
"""Words between a value and what marks it at most."""
_OF_TIME = frozenset({"second", "s", "ms", "minute", "hour", "h", "min"})
_POINTS_BELOW = frozenset({"below", "lower", "under", "worse", "short", "less", "behind"})
_OTHERS = frozenset({"others", "before", "run"})


@dataclass(frozen=True)
class _Number:
    """A value at a token; `wanted`: whether it is the expected one; `firm`: whether that stands without the other."""

    at: int
    value: float
    share: bool
    wanted: bool = False
    firm: bool = False
    beside: bool = False


def against_target(words: Sequence[Token], text: str, names: Names, before: Subject | None) -> StatedSymptom | None:
    """What a sentence says of a value and the expected one; None where it holds no expected value.

    `before`: the subject of the sentence before. A value that is as good as expected or better gives a statement of
    direction NORMAL. Values that belong to two metrics or splits are a comparison of those, which the grammar reads.
    """
    every = mentions(words, names, before)
    found = [f for f in every if f.subject.family not in ("run", "setting")]
    short = _points_short(words, text, found)
    if short is not None:
        return short
    numbers = [n for i in range(len(words)) if (n := _number(words, i, every)) is not None]
    target = next((n for n in numbers if n.wanted), None)
    if target is None:
        return None
    came = _that_came(target, numbers, words, found)
    if came is None and not target.firm:
        return None
    value, expected = _one_scale(came, target)
    subject = _subject(words, found, came, target) or before or _of_its_course(came, value, expected)
    if subject is None or subject.family not in JUDGED_BY_VALUE:
        return None
    low = (value is None and _upwards(subject.family)) or (value is not None and value < expected)
    direction = "low" if low else "high"
    good = value is not None and (value == expected or subject.family in GOOD_WAY[direction])
    if value is None and _marked_off(words, target):
        return None
    return _made(words, text, subject, NORMAL if good else direction, value, expected)


def _made(words: Sequence[Token], text: str, subject: Subject, direction: str, value: float | None,
          expected: float | None) -> StatedSymptom:
    told = against_in(text)
    said = told if told.kind in _OTHERS else Against("value", "")
    made = StatedSymptom(text[:MOST_SAID], direction, subject, place_in(text), value, "at" if value is not None else "",
                         said, target=expected)
    return replace(made, kinds=kinds_of(made))


def _number(words: Sequence[Token], i: int, found: Sequence[Mention]) -> _Number | None:
    """The value at a token and how it is marked; None for what counts steps, names a metric ("top 1") or is none."""
    named = any(f.start <= i < f.end and f.subject.family != "run" for f in found)
    of = _owner(words, i, found)
    setting = of is not None and of.family == "setting" and of.words.lower() not in _FIRM_BEFORE
    if words[i].kind != "number" or words[i].number is None or named or setting:
        return None
    value, _ = value_after(words, i, i + 1)
    following = words[i + 1].base if i + 1 < len(words) else ""
    if value is None and following in _OF_TIME and any(f.subject.family == "time" for f in found):
        value = words[i].number
    if value is None:
        return None
    mark = _before(words, i)
    behind = _behind(words, i)
    firm = (mark in _FIRM_BEFORE and _leads_on(words, i, found)) or behind in _FIRM_BEHIND
    return _Number(i, value, words[i].text.endswith("%"), bool(mark or behind), firm, mark in _SIDE_BY_SIDE)


def _owner(words: Sequence[Token], i: int, found: Sequence[Mention]) -> Subject | None:
    """What a value is one of by the word order: the subject right before it, or right behind it."""
    before = [f for f in found if f.end <= i and all(w.base in _LINKS for w in words[f.end : i])]
    behind = [f for f in found if f.start == i + 1]
    return next((f.subject for f in (*reversed(before), *behind)), None)


def _leads_on(words: Sequence[Token], i: int, found: Sequence[Mention]) -> bool:
    """Whether nothing but small words and the metric stand between a mark and its value: "should be about 0.9"."""
    for j in range(i - 1, -1, -1):
        if _mark(words[j], _FIRM_BEFORE) or _earlier(words, j) or _gate(words, j):
            return True
        if words[j].base not in _LINKS and not any(f.start <= j < f.end for f in found):
            return False
    return False


def _before(words: Sequence[Token], i: int) -> str:
    """The word that marks a value from before it, "" where none does before another value or the end of a part."""
    for j in range(i - 1, max(i - 1 - _FAR, -1), -1):
        w = words[j]
        if w.kind == "number" or (w.base in (",", ";", "but", "and", "or", "got", "get", "is") and _ends(words, j)):
            return ""
        mark = _mark(w, _FIRM_BEFORE | _BEFORE) or _earlier(words, j) or _gate(words, j)
        if mark:
            if mark == "bar" and any(w.base == ":" for w in words[j:i]) and words[i - 1].base != ":":
                return ""  # "failed its bar: val_acc 0.96": what is said of it, and not the bar
            return "" if mark in ("far", "short") and not _from(words, j) else mark
    return ""


def _earlier(words: Sequence[Token], j: int) -> str:
    """ "last week" where an earlier time is named here by two words, else ""."""
    pair = [w.text.lower() for w in words[max(j - 1, 0) : j + 1]]
    return "last week" if len(pair) == 2 and pair[0] in _EARLIER and pair[1] in _TIMES else ""


def _gate(words: Sequence[Token], j: int) -> str:
    """ "bar" where a gate stands here that something misses, else ""."""
    if words[j].base not in _GATES:
        return ""
    return "bar" if any(w.base in _MISSES for w in words[max(j - _FAR, 0) : j]) else ""


def _mark(word: Token, marks: frozenset[str]) -> str:
    """The mark that a word is, as it stands or in its base form; "" where it is none."""
    return next((w for w in (word.text.lower(), word.base) if w in marks), "")


def _ends(words: Sequence[Token], j: int) -> bool:
    """Whether what stands here parts a value from a mark before it: "others get 0.75" does not."""
    if words[j].base not in ("get", "got", "is", "be"):
        return True
    return not (j and _mark(words[j - 1], _BEFORE | _FIRM_BEFORE))


def _from(words: Sequence[Token], j: int) -> bool:
    return j + 1 < len(words) and words[j + 1].base in ("from", "of")


def _behind(words: Sequence[Token], i: int) -> str:
    """The word that marks a value from behind it: "0.90 expected", "76.1 in the paper"."""
    for j in range(i + 1, min(i + 1 + _FAR, len(words))):
        w = words[j]
        if w.kind in ("number", "mark") or w.base in ("but", "and", "instead", "rather", "where", "while", "vs"):
            return ""
        mark = _mark(w, _FIRM_BEHIND | _BEHIND) or _earlier(words, j)
        if mark:
            return "" if _next_is_a_value(words, j) else mark
    return ""


def _next_is_a_value(words: Sequence[Token], j: int) -> bool:
    """Whether a mark belongs to the value behind it: "0.76 target=0.9"."""
    after = [w for w in words[j + 1 : j + 4] if w.base not in ("=", ":", "be", "is", "of")]
    return bool(after) and after[0].kind == "number"


def _that_came(target: _Number, numbers: Sequence[_Number], words: Sequence[Token],
               found: Sequence[Mention]) -> _Number | None:
    """The value that came: the last before the expected one, else the first behind it."""
    others = [n for n in numbers if not n.wanted]
    came = next((n for n in reversed(others) if n.at < target.at), next(iter(others), None))
    if came is None:
        return None
    if not _is_of_a_metric(came, target, words, found):
        return None
    low, high = sorted((came.at, target.at))
    if target.beside and (high - low - 1 > _NEAR or any(low < f.start < high for f in found)):
        return None
    keys = {(f.subject.key, f.subject.group) for f in found if f.start < high}
    return came if len({k for k, _ in keys}) < 2 and len({g for _, g in keys}) < 2 else None


def _is_of_a_metric(came: _Number, target: _Number, words: Sequence[Token], found: Sequence[Mention]) -> bool:
    """Whether the value that came is one of a metric, or stands right beside the expected one."""
    if _owner(words, came.at, found) is not None or abs(came.at - target.at) <= _NEAR + 1:
        return True
    return not any(f.subject.family in JUDGED_BY_VALUE for f in found) or any(
        w.base in _COMES for w in words[max(came.at - 2, 0) : came.at])


def _marked_off(words: Sequence[Token], target: _Number) -> bool:
    """Whether an expected value alone is a plan or a wish of the future ("I want to reach 0.9"), and no observation."""
    return any(w.base in ("i", "we", "want", "will", "would", "could", "if") for w in words[: target.at])


def _one_scale(came: _Number | None, target: _Number) -> tuple[float | None, float]:
    """Both values as they compare: "62% instead of 75" are 0.62 and 0.75."""
    if came is None or came.share == target.share:
        return (None if came is None else came.value), target.value
    if came.share:
        return came.value, target.value / 100 if target.value > 1.5 else target.value
    return came.value / 100 if came.value > 1.5 else came.value, target.value


def _subject(words: Sequence[Token], found: Sequence[Mention], came: _Number | None, target: _Number
             ) -> Subject | None:
    """The metric that stands nearest to the values."""
    ats = [n.at for n in (came, target) if n is not None]
    near = sorted((f for f in found if f.subject.family in JUDGED_BY_VALUE),
                  key=lambda f: min(abs(f.start - at) for at in ats))
    return near[0].subject if near else None


def _of_its_course(came: _Number | None, value: float | None, expected: float) -> Subject | None:
    """A score where nothing is named and a share falls short of another."""
    if came is None or value is None or not (0 <= value < expected <= 1):
        return None
    return Subject("accuracy", "score", "the result")


def _upwards(family: str) -> bool:
    return family in GOOD_WAY["high"]


def _points_short(words: Sequence[Token], text: str, found: Sequence[Mention]) -> StatedSymptom | None:
    """ "10 points below the paper": how far it falls short, without either value."""
    at = next((i for i, w in enumerate(words) if (w.kind == "number" and w.text.endswith("%"))
               or (w.base == "point" and i and words[i - 1].kind == "number")), None)
    if at is None or against_in(text).kind not in _OTHERS:
        return None
    if not any(w.base in _POINTS_BELOW for w in words[at + 1 : at + 4]):
        return None
    named = [f.subject for f in found if f.subject.family == "score"]
    return _made(words, text, named[0] if named else Subject("accuracy", "score", "the result"), "low", None, None)
