"""Words of a text with their places, their base forms, and phrases found among them.

Base forms are looked for in a vocabulary only ("falls", "falling" are "fall" because the tables know "fall"), so a word
that the tables do not know is never bent into one that they do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

MOST_CHARACTERS = 4000
"""What is read of a text at most."""

_TOKEN = re.compile(
    r"(?P<quote>\"[^\"]{0,300}\"|(?<!\w)'[^']{12,300}'(?!\w))"
    r"|(?P<number>(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?![\w.]*[A-Za-z_])\s?%?)"
    r"|(?P<word>[^\W\d_][\w/@.]*\w|[^\W\d_]|\d+[\w/@]+)"
    r"|(?P<mark>[.;:!?,()\n=~<>]|--+|\s-\s|[\u2013\u2014])",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_SHORT_NOT = re.compile(
    r"\b(can|could|do|does|did|is|are|was|were|has|have|had|wo|would|should)n['’]?t\b", re.IGNORECASE
)
_PERCENT = re.compile(r"(?<=\d)\s*(?:percent|per cent|pct)\b", re.IGNORECASE)
_PERCENTS = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)\s?-\s?(\d+(?:\.\d+)?)\s?%")
_VERSUS = re.compile(r"\bvs\.", re.IGNORECASE)
_UNIT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(ms|s|sec|min|h|GB|GiB|MB|MiB)\b")
_HYPHEN = re.compile(r"(?<=[A-Za-z])-(?=[A-Za-z])")

_IRREGULAR: Mapping[str, str] = {
    form: base for base, forms in {
        "be": "is are was were been being am 's 're", "go": "goes went gone going", "fall": "fell fallen",
        "rise": "rose risen", "grow": "grew grown", "keep": "kept", "get": "got gotten", "blow": "blew blown",
        "shoot": "shot", "come": "came", "do": "does did done", "have": "has had having", "freeze": "froze",
        "hang": "hung", "sink": "sank sunk", "die": "dying died", "stand": "stood", "become": "became",
        "find": "found", "learn": "learnt", "swing": "swung", "lie": "lying lay", "break": "broke", "say": "said",
        "throw": "threw thrown", "shrink": "shrank shrunk", "begin": "began begun", "run": "ran", "sit": "sat",
        "think": "thought", "percent": "per_cent pct", "cannot": "can_not", "generalise": "generalize generalizes",
        "overfit": "overfits overfitted overfitting", "nan": "nans", "give": "gave given", "take": "took taken",
        "stick": "sticks", "eat": "ate eaten", "show": "shown", "tell": "told", "beat": "beaten",
    }.items() for form in forms.split()}  # fmt: skip
SKIPPED = frozenset(
    [
        "really",
        "very",
        "quite",
        "so",
        "just",
        "even",
        "still",
        "again",
        "then",
        "also",
        "already",
        "only",
        "all",
        "suddenly",
        "slowly",
        "steadily",
        "completely",
        "totally",
        "always",
        "ever",
        "almost",
        "nearly",
        "exactly",
        "about",
        "around",
        "roughly",
        "some",
        "more",
        "much",
        "far",
        "practically",
        "essentially",
        "simply",
        "constantly",
        "continuously",
        "gradually",
        "quickly",
        "soon",
        "now",
        "both",
        "a",
        "an",
        "the",
        "my",
        "our",
        "its",
        "their",
        "apparently",
        "clearly",
        "mostly",
        "usually",
        "basically",
        "immediately",
        "rapidly",
        "sharply",
        "massively",
        "hugely",
        "slightly",
        "somewhat",
        "rather",
        "linearly",
        "nicely",
        "well",
        "anyway",
        "somehow",
        "actually",
        "permanently",
        "perfectly",
        "monotonically",
        "clearly",
        "very",
        "extremely",
        "heavily",
    ]
)
"""Words that may stand inside a phrase without changing it."""


@dataclass(frozen=True)
class Token:
    """A word, a number, a quotation or a mark. `base` is its base form in lower case."""

    text: str
    base: str
    kind: str
    start: int
    end: int

    @property
    def number(self) -> float | None:
        """The value of a number; percentages as fractions."""
        if self.base == "zero":
            return 0.0
        if self.kind != "number":
            return None
        bare = self.text.rstrip("% \t")
        bare = bare.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+", bare) else bare.replace(",", ".")
        try:
            value = float(bare)
        except ValueError:  # "1.2.3" is a version
            return None
        if not math.isfinite(value):
            return None
        return value / 100 if self.text.rstrip().endswith("%") else value


_OVERLONG = re.compile(
    r"\d{41,}|(?:\d{3},){13,}|\d\s*(?:\^|\*\*)\s*[-+]?\d{4,}|\de\+?0*(?:309|3[1-9]\d|[4-9]\d\d|[1-9]\d{3,})(?!\d)",
    re.IGNORECASE,
)


def absurd(text: str) -> bool:
    """Whether a text holds a number that nothing logs: more than 40 digits, or beyond float64 (1.8e308)."""
    return bool(_OVERLONG.search(text))


def foreign(text: str) -> bool:
    """Whether a quarter of the letters is of no Latin alphabet: no table reads such a text, not even its questions."""
    letters = [c for c in text if c.isalpha()]
    return 4 * sum(ord(c) > 0x24F for c in letters) > len(letters)


def cleaned(text: str) -> str:
    """The text as it is read: bounded, without control characters, short forms written out, hyphens as spaces."""
    text = _CONTROL.sub(" ", text[:MOST_CHARACTERS]).replace("\t", " ").replace("’", "'")
    text = _PERCENTS.sub(r"\1% to \2%", _PERCENT.sub("%", text))
    text = _VERSUS.sub("vs", text)
    text = _UNIT.sub(r"\1 \2", text)
    text = _SHORT_NOT.sub(lambda m: f"{ {'ca': 'can', 'wo': 'will'}.get(m[1].lower(), m[1]) } not", text)
    return _HYPHEN.sub(" ", re.sub(r"\bcannot\b", "can not", text, flags=re.IGNORECASE))


_WHOLE = frozenset(
    [
        "training",
        "learning",
        "testing",
        "its",
        "this",
        "building",
        "during",
        "nothing",
        "anything",
        "something",
        "everything",
        "being",
        "unless",
        "less",
        "loss",
        "validating",
        "clipping",
        "news",
        "as",
        "is",
        "was",
        "has",
        "process",
        "class",
        "bias",
    ]
)
"""Words that only look like another form."""


def base_of(word: str, vocabulary: frozenset[str]) -> str:
    """The base form of a word that the vocabulary knows, else the word in lower case."""
    low = word.lower().removesuffix("'s")
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low in _WHOLE:
        return low
    return next((form for form in _stems(low) if form in vocabulary), low)


def _stems(word: str) -> Iterator[str]:
    """The forms that a word may come from; the word itself is the last."""
    for ending in ("s", "es", "ed", "ing") if len(word) > 3 else ("s",):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1:
            yield stem
            if ending in ("ed", "ing"):
                yield f"{stem}e"
                if len(stem) > 2 and stem[-1] == stem[-2]:
                    yield stem[:-1]
            if stem.endswith("i"):
                yield f"{stem[:-1]}y"
    yield word


def tokens(text: str, vocabulary: frozenset[str]) -> tuple[Token, ...]:
    """The tokens of a cleaned text."""
    out = []
    for m in _TOKEN.finditer(text):
        kind, said = m.lastgroup or "mark", m.group().strip(" ")
        said = said.rstrip(".") if kind == "word" else said
        out.append(
            Token(said, base_of(said, vocabulary) if kind == "word" else said.strip() or "\n", kind, m.start(), m.end())
        )
    return tuple(_joined(out))


def _joined(found: Sequence[Token]) -> Iterator[Token]:
    """With "held out" as one word, as readers of logs take it."""
    i = 0
    while i < len(found):
        first, second = found[i], found[i + 1] if i + 1 < len(found) else None
        if second is not None and first.text.lower() in ("held", "hold") and second.text.lower() == "out":
            yield Token(f"{first.text} {second.text}", "heldout", "word", first.start, second.end)
            i += 1
        else:
            yield first
        i += 1


T = TypeVar("T")


@dataclass(frozen=True)
class Hit(Generic[T]):
    """A phrase of a table, found in tokens `start` to `end` (exclusive). `others`: what else the table says of it."""

    entry: T
    start: int
    end: int
    phrase: str
    others: tuple[T, ...] = ()


class Phrases(Generic[T]):
    """A table of phrases, each with its entry. `#` in a phrase stands for a number, `~` for any one word."""

    def __init__(self, rows: Iterable[tuple[str, T]]) -> None:
        listed = [(tuple(phrase.split()), entry) for phrase, entry in rows]
        known = frozenset(w for parts, _ in listed for w in parts)
        table: dict[tuple[str, ...], list[T]] = {}
        for words, entry in listed:
            table.setdefault(tuple(base_of(w, known) for w in words), []).append(entry)
        self._first: dict[str, list[tuple[tuple[str, ...], tuple[T, ...]]]] = {}
        for parts in sorted(table, key=len, reverse=True):
            self._first.setdefault(parts[0], []).append((parts, tuple(table[parts])))

    @property
    def vocabulary(self) -> frozenset[str]:
        """Every word of the table."""
        return frozenset(w for rows in self._first.values() for parts, _ in rows for w in parts)

    def find(self, words: Sequence[Token]) -> Iterator[Hit[T]]:
        """The phrases in the tokens, from left to right, the longest first; they do not overlap."""
        i = 0
        while i < len(words):
            hit = self._at(words, i)
            if hit is not None:
                yield hit
            i = hit.end if hit is not None else i + 1

    def _at(self, words: Sequence[Token], i: int) -> Hit[T] | None:
        for parts, entries in self._first.get(words[i].base, ()):
            end = _through(parts, words, i)
            if end is not None:
                return Hit(entries[0], i, end, " ".join(parts), entries[1:])
        return None


def _through(parts: tuple[str, ...], words: Sequence[Token], i: int) -> int | None:
    """Where the phrase that begins at token `i` ends, None where it is another."""
    j, skipped = i, 0
    for place, part in enumerate(parts):
        while place and j < len(words) and words[j].base != part and words[j].base in SKIPPED and skipped < 4:
            j, skipped = j + 1, skipped + 1
        if j >= len(words) or not (
            words[j].base == part
            or (part == "#" and words[j].kind == "number")
            or (part == "~" and words[j].kind == "word")
        ):
            return None
        j += 1
    return j
