"""A text as clauses: what is told, what is believed, what is asked, what somebody did.

Concession and contrast divide ("no NaN, but the samples are garbage" is two statements). A theory, a question and a
remedy are no observations; they are kept apart, so that nothing is read out of them as if it had been seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.symptom.words import Token

TOLD, THEORY, QUESTION, DONE = "told", "theory", "question", "done"
MOST_TOKENS = 120
"""A longer sentence is read in parts of so many words, so that the time grows with the text and not with its square."""

_DIVIDE = frozenset(
    [
        "but",
        "yet",
        "although",
        "though",
        "while",
        "whereas",
        "however",
        "because",
        "since",
        "despite",
        "nevertheless",
        "nonetheless",
        "otherwise",
        "whenever",
        "unless",
    ]
)
"""Words that begin a statement of its own."""
_CONCEDES = frozenset({"although", "though", "despite"})
_CAUSES = frozenset({"as", "because", "due", "owing"})
_THEORY = re.compile(
    r"\b(?:i|we|you|they|he|she|others?|people|some(?:one|body)|colleagues?|friends?|advis[eo]rs?|supervisors?|"
    r"colleague is)\b(?: \w+){0,2} (?:thinks?|thought|guess\w*|suspect\w*|assum\w*|believ\w*|suppos\w*|says?|said|"
    r"sure|wonder\w*|blame[sd]?|feels?|claim\w*|insist\w*|argue[sd]?)\b|^\W*(?:i )?(?:think|guess|suspect|assume)\b|"
    r"\b(?:probably|maybe|perhaps|presumably|possibly|likely)\b|"
    r"\b(?:must|might|may|could) (?:be|have|lose|also)\b|"
    r"\bsuggests?\b|\bas if\b|\blooks? like (?:a |an |over|extreme|heavy|under)\w*|\bis sure that\b|\bsurely\b|"
    r"\bmy (?:guess|theory|suspicion)\b|\bbut clipping is\b",
    re.IGNORECASE,
)
_DEEDS = (
    r"clip\w*|tri(?:ed|es|y)|lower\w*|use[sd]?|using|pass\w*|halv\w*|check\w*|restor\w*|cach\w*|add\w*|set|rais\w*|"
    r"expect\w*|double\w*|freeze|froze|train\w*|drop\w*|plan\w*|clamp\w*|accumulat\w*|over ?fit\w*|reduc\w*|increas\w*|"
    r"appl\w*|port\w*|fine ?tun\w*|switch\w*|chang\w*|run|started|followed|resum\w*|validat\w*|load\w*|want\w*|need\w*|"
    r"have \d+|know"
)
"""What somebody did or has: no observation of the run."""
_REMEDIES = r"more|a|an|another|adding|changing|raising|lowering|making|annealing|increasing|reducing|training|using"
_IN_VAIN = r"(?:did|do|does|changed?|changes|made|makes?|gave|gives|cured|help\w*|has no|had no)"
_DONE = re.compile(
    rf"^\W*(?:and |then |so |in |with )?(?:i|we)(?: have| am| already| also| even| do| did| just| now| only)* "
    rf"(?:{_DEEDS})\b|"
    rf"^\W*(?:{_REMEDIES})\b.* {_IN_VAIN}\b.*(?:not|nothing|no|same|worse|only|sooner|stronger|any)\b",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"^\W*(?:so |and )?(?:why|what makes|how can|how come|what could (?:make|cause)|what causes)\b", re.IGNORECASE
)
_ASKS = re.compile(
    r"^\W*(?:so |and |or |but )?(?:is|are|was|were|do|does|did|has|have|should|shall|can|could|would|will|"
    r"must|how|what|which|where|who|when|am|any)\b",
    re.IGNORECASE,
)
_BELIEVES = re.compile(r"\b(?:i|we) (?:think|guess|suspect\w*|assum\w*|believ\w*|suppos\w*)\b", re.IGNORECASE)
_ASKS_AT_END = re.compile(
    r"[,;:\u2013-]\s+(?=(?:is|are|do|does|did|has|have|should|could|can|was|were|must|which|how) )", re.IGNORECASE
)


@dataclass(frozen=True)
class Clause:
    """Tokens of one statement. `role`: TOLD, THEORY, QUESTION or DONE; `sentence` counts sentences from 0."""

    tokens: tuple[Token, ...]
    text: str
    role: str
    sentence: int
    concession: bool = False


def clauses(text: str, words: Sequence[Token]) -> Iterator[Clause]:
    """The clauses of a cleaned text, from left to right."""
    for number, (sentence, asked) in enumerate(sentences(words)):
        believed = False
        for part, opener in _apart(text, _parts(sentence), asked):
            said = text[part[0].start : part[-1].end]
            role = _role(said, opener, asked)
            believed = (role == THEORY and bool(_BELIEVES.search(said))) or (believed and opener in ("", "and"))
            yield Clause(tuple(part), said, THEORY if believed and role == TOLD else role, number, opener in _CONCEDES)


def _apart(text: str, parts: Iterator[tuple[list[Token], str]], asked: bool) -> Iterator[tuple[list[Token], str]]:
    """The parts, with a theory that begins in the middle of one apart: "memory grows, I think it is the loader"."""
    for part, opener in parts:
        said = text[part[0].start : part[-1].end]
        found = None if asked or opener in _CAUSES or _DONE.search(said) else _THEORY.search(said)
        cut = next((i for i, w in enumerate(part) if found and w.start >= part[0].start + found.start()), 0)
        if cut:
            yield part[:cut], opener
        yield part[cut:], "" if cut else opener


def _role(said: str, opener: str, asked: bool) -> str:
    if asked and _WHY.search(said):
        return TOLD  # "why is it stuck?" says that it is stuck
    if asked:
        return QUESTION
    if opener in _CAUSES:
        return THEORY
    if _DONE.search(said):
        return DONE
    return THEORY if _THEORY.search(said) else TOLD


def sentences(words: Sequence[Token]) -> Iterator[tuple[list[Token], bool]]:
    """Sentences, each with whether it ends in a question mark; a question after a comma or dash is cut off."""
    part: list[Token] = []
    for w in words:
        if w.kind == "mark" and w.base in ".;!?\n":
            if part:
                yield from _cut(part, w.base == "?")
            part = []
            continue
        if len(part) == MOST_TOKENS:
            yield part, False
            part = []
        part.append(w)
    if part:
        yield from _cut(part, False)


def _cut(part: list[Token], asked: bool) -> Iterator[tuple[list[Token], bool]]:
    """A question that follows a statement in the same sentence, apart from it."""
    if asked:
        for i in range(len(part) - 2, 0, -1):
            rest = part[i + 1 :]
            if part[i].kind == "mark" and rest and _ASKS.match(rest[0].text) and len(rest) > 2:
                yield part[:i], bool(_ASKS.match(part[0].text) or _WHY.match(part[0].text))
                yield rest, True
                return
        last = max(
            (i for i, w in enumerate(part) if w.kind == "mark" and w.base in (":", ",", "-", "--", "\u2013", "\u2014")),
            default=-1,
        )
        if 0 < last < len(part) - 1 and len(part) - last <= 7 and not _ASKS.match(part[0].text):
            yield part[:last], False
            yield part[last + 1 :], True
            return
    yield part, asked


def _parts(sentence: Sequence[Token]) -> Iterator[tuple[list[Token], str]]:
    """A sentence at its colons, dashes and words of contrast; each part with the word that began it."""
    part: list[Token] = []
    opener = ""
    for i, w in enumerate(sentence):
        divides = w.kind == "mark" and w.base in (":", "--", "-", "–", "—", "(", ")") and not _logarithm(w, part)
        if w.kind == "mark" and w.base == ",":
            divides = _begins_anew(sentence, i + 1) or (opener in _CONCEDES and bool(part))
            divides = divides or (_after_belief(part) and i + 1 < len(sentence) and sentence[i + 1].base == "and")
        divides = divides or _goes_on(sentence, i, part) or (w.base in ("as", "and") and _begins_anew(sentence, i))
        contrast = w.kind == "word" and w.base in _DIVIDE and not (w.base == "since" and _counts(sentence, i))
        before = part
        if (divides or contrast) and part:
            yield part, opener
            part = []
        if contrast:
            opener = w.base
        elif divides:
            opener = (
                "as"
                if w.base == "as"
                else ""
                if w.base != "," or opener in _CONCEDES
                else "then"
                if _after_belief(before)
                else "and"
            )
        else:
            part.append(w)
    if part:
        yield part, opener


def _after_belief(part: Sequence[Token]) -> bool:
    """Whether somebody has just said what they believe: ", and the loss is NaN" behind it is told again."""
    return bool(_BELIEVES.search(" ".join(t.text for t in part)))


def _logarithm(mark: Token, part: Sequence[Token]) -> bool:
    """Whether a bracket is one of "ln(10)"."""
    bases = [t.base for t in part]
    return bool(bases) and ((mark.base == "(" and bases[-1] in ("ln", "log")) or (mark.base == ")" and "(" in bases))


_ANEW = re.compile(
    r"(?:and |but |so |which |it |this |that )*(?:i|we|others?|a (?:\w+ )?colleague|probably|maybe|perhaps|"
    r"presumably|as if|looks? like|must be|could it|is it)\b",
    re.IGNORECASE,
)


def _begins_anew(sentence: Sequence[Token], i: int) -> bool:
    """Whether somebody speaks for themselves from here on: "..., I guess the learning rate", "... as if it"."""
    return bool(_ANEW.match(" ".join(t.text for t in sentence[i : i + 6])))


_OF_ITS_OWN = frozenset({"the", "my", "our", "its", "nothing", "everything", "training", "it", "all"})


def _goes_on(sentence: Sequence[Token], i: int, part: Sequence[Token]) -> bool:
    """Whether "and" ends what somebody did: "I train with X and the loss is -1"."""
    return (
        sentence[i].base == "and"
        and bool(part)
        and part[0].base in ("i", "we")
        and i + 1 < len(sentence)
        and sentence[i + 1].base in _OF_ITS_OWN
    )


def _counts(sentence: Sequence[Token], i: int) -> bool:
    """Whether "since" names a time ("since step 600") and no reason."""
    following = [t.base for t in sentence[i + 1 : i + 4]]
    return any(t in ("step", "epoch", "iteration", "about", "yesterday", "resume", "last", "when") for t in following)
