"""What a clause speaks of: subjects with their places, by the lexicon and by the run's own names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from traindx_tools.symptom import subjects
from traindx_tools.symptom.stated import Subject
from traindx_tools.symptom.subjects import SPLITS, Row
from traindx_tools.symptom.words import Token

_OWN = Row("own", "own")
_SPLIT = Row("split", "score")

ARTICLES = frozenset(["a", "an", "the", "my", "our", "its", "their", "this", "that", "these", "those"])
PREPOSITIONS = frozenset(
    [
        "with",
        "without",
        "in",
        "of",
        "on",
        "at",
        "for",
        "from",
        "by",
        "than",
        "into",
        "after",
        "during",
        "per",
        "to",
        "over",
        "about",
        "between",
        "within",
        "through",
        "before",
        "behind",
        "under",
        "like",
        "until",
        "against",
    ]
)
SMALL = ARTICLES | frozenset(
    ["all", "both", "each", "every", "some", "very", "same", "first", "next", "new", "two", "other"]
)


class Names:
    """The run's own metric names, so that "aux" or "train/vq" in the words is found."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._known = {n.lower(): n for n in list(dict.fromkeys(names))[:2000] if 1 < len(n) <= 80}

    def of(self, word: str) -> str | None:
        """The name as the log writes it."""
        return self._known.get(word.lower())

    def __iter__(self) -> Iterator[str]:
        return iter(self._known.values())


@dataclass(frozen=True)
class Mention:
    """A subject in the tokens `start` to `end` (exclusive). `governed`: it stands behind a preposition."""

    subject: Subject
    start: int
    end: int
    governed: bool


def mentions(words: Sequence[Token], names: Names, before: Subject | None) -> list[Mention]:
    """The subjects of a clause from left to right; `before`: the one of the clause before."""
    return [Mention(_of_codes(s, words, before), a, b, is_governed(words, a)) for s, a, b in _mentioned(words, names)]


def last_mentioned(words: Sequence[Token], names: Names) -> Subject | None:
    """The last subject of a clause that nothing was read of: what "it" means in the next one."""
    found = [s for s, a, _ in _mentioned(words, names) if not is_governed(words, a)]
    return found[-1] if found else None


def _of_codes(subject: Subject, words: Sequence[Token], before: Subject | None) -> Subject:
    """The perplexity where codes are spoken of: that of a codebook."""
    codes = (before is not None and before.key == "codes") or any(w.base.startswith("code") for w in words)
    return replace(subject, key="codes", family="codes") if subject.key == "perplexity" and codes else subject


def is_governed(words: Sequence[Token], start: int) -> bool:
    """Whether a subject stands behind a preposition: right before it, or before its article."""
    for i in range(start - 1, max(start - 6, -1), -1):
        w = words[i]
        if w.base in PREPOSITIONS:
            return True
        if w.kind == "mark" or w.base in ("and", "but", "or"):
            return False
        if w.base in ARTICLES:
            return i > 0 and words[i - 1].base in PREPOSITIONS
        if w.base not in SMALL and w.base not in SPLITS and start - i > 2:
            return False
    return False


def _mentioned(words: Sequence[Token], names: Names) -> Iterator[tuple[Subject, int, int]]:
    """The subjects in the tokens with their places, each with the split that stands beside it."""
    hits: dict[int, tuple[Row, int]] = {h.start: (h.entry, h.end) for h in subjects.PHRASES.find(words)}
    i = 0
    while i < len(words):
        own = _own_name(words, i, names)
        row, end = (_OWN, i + 1) if own else hits.get(i, (None, i + 1))
        if row is not None and row.key == "step_time" and _numbered(words, i, end):
            row = None
        nxt = hits.get(i + 1)
        if (
            words[i].base in SPLITS
            and words[i].kind == "word"
            and not _verb(words, i)
            and (row is None or (row.family == "run" and nxt is not None and nxt[0].family != "run"))
        ):
            row, end = nxt if nxt is not None else (_SPLIT, i + 1)
        if row is not None:
            yield _subject(words, i, end, row, own), i, end
        i = max(end, i + 1)


def _numbered(words: Sequence[Token], start: int, end: int) -> bool:
    """Whether "step" counts here ("at step 40", "in the first step") and is nothing that takes time ("step time 2")."""
    if words[end - 1].base in ("time", "duration"):
        return False
    after = end < len(words) and (words[end].kind == "number" or words[end].base in ("count", "on"))
    return after or is_governed(words, start) or (start > 0 and words[start - 1].kind == "number")


def _verb(words: Sequence[Token], i: int) -> bool:
    """Whether "train" or "evaluate" is what somebody does here, and no split."""
    before = words[i - 1].base if i else ""
    return words[i].text.lower() in ("train", "trains", "trained", "evaluate", "evaluates", "validate") and before in (
        "not",
        "it",
        "i",
        "we",
        "to",
        "and",
        "model",
        "network",
        "run",
        "would",
        "can",
        "net",
        "never",
        "head",
    )


def _own_name(words: Sequence[Token], i: int, names: Names) -> str | None:
    """The run's own name at a token; a word that looks like an identifier counts as a name of its own."""
    text = words[i].text
    if words[i].kind != "word":
        return None
    known = names.of(text)
    if known is not None and (len(text) > 2 or not text.isalpha()):
        return known if words[i].base not in _ORDINARY and words[i].base not in SPLITS else None
    scoped = "/" in text and bool(SPLITS.keys() & text.lower().split("/"))
    return text if ("_" in text or "@" in text or scoped) and any(c.isalpha() for c in text) else None


_ORDINARY = frozenset(
    {
        "time",
        "step",
        "epoch",
        "data",
        "error",
        "total",
        "run",
        "value",
        "model",
        "test",
        "best",
        "rate",
        "scale",
        "train",
        "validation",
        "val",
        "valid",
        "eval",
        "dev",
        "final",
        "last",
        "now",
        "used",
        "loss",
        "accuracy",
        "memory",
        "high",
        "low",
        "mean",
        "batch",
        "random",
        "new",
        "old",
        "same",
    }
)


def _subject(words: Sequence[Token], start: int, end: int, row: Row, own: str | None) -> Subject:
    said = " ".join(w.text for w in words[start:end])
    key, family = row.key, row.family
    parts = said.lower().replace("/", "_").split("_") if own else said.lower().split()
    if own:
        known = _known_in(parts)
        key, family = (known.key, known.family) if known else ("own", "own")
        if _SETTINGS.intersection(parts):
            key, family = "setting", "setting"
    group = next((SPLITS[p] for p in parts if p in SPLITS), None) or _split_near(words, start, end)
    return Subject(key, family, said, group, _rank(words, start, end))


_SETTINGS = frozenset(
    [
        "max",
        "min",
        "num",
        "n",
        "count",
        "size",
        "weight",
        "weights",
        "epochs",
        "steps",
        "workers",
        "coef",
        "decay",
        "dim",
        "ratio",
        "seed",
        "prob",
        "every",
        "interval",
        "set",
        "config",
        "py",
        "path",
        "dir",
        "clip",
        "status",
        "alloc",
        "argument",
        "use",
        "precision",
    ]
)
"""Words of an identifier that make it a setting."""


def _known_in(parts: Sequence[str]) -> Row | None:
    """The row that the words of an identifier name: "val_acc" is an accuracy."""
    bare = [p for p in parts if p not in SPLITS]
    tokens = tuple(Token(p, p, "word", 0, 0) for p in bare)
    return next((h.entry for h in subjects.PHRASES.find(tokens) if h.entry.family in subjects.JUDGED_BY_VALUE), None)


def _split_near(words: Sequence[Token], start: int, end: int) -> str | None:
    """The split that the words before ("validation ...") or after ("... on the test set") name."""
    for i in range(start - 1, max(start - 4, -1), -1):
        if words[i].kind == "mark" or words[i].base in ("and", "than", "but"):
            break
        if words[i].base in SPLITS and not _verb(words, i):
            return SPLITS[words[i].base]
    for i in range(end, min(end + 6, len(words) - 1)):
        if words[i].kind == "mark" or words[i].base in ("and", "but"):
            break
        if words[i].base in ("on", "in", "of", "at"):
            for j in range(i + 1, min(i + 4, len(words))):
                if words[j].kind != "word":
                    break
                if words[j].base in SPLITS:
                    return SPLITS[words[j].base]
    return None


def _rank(words: Sequence[Token], start: int, end: int) -> int | None:
    for i in range(max(start - 2, 0), min(end + 4, len(words) - 1)):
        if words[i].base == "rank" and (number := words[i + 1].number) is not None:
            return int(number)
    return None
