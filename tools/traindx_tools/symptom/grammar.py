"""Words in, observations out: subjects, predicates, negation, values, places.

A clause is read from left to right. Every predicate of the tables takes the nearest subject before it, or the one of
the predicate before where it has none of its own, or the nearest after it ("a bump in the loss"). What a table says of
a predicate decides whether that pair means anything; where it means nothing, nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from traindx_tools.symptom import predicates, subjects
from traindx_tools.symptom.clauses import Clause
from traindx_tools.symptom.kinds import kinds_of
from traindx_tools.symptom.places import against_in, place_in
from traindx_tools.symptom.predicates import NORMAL, NOTHING, UNPLACED, Predicate
from traindx_tools.symptom.stated import Place, StatedSymptom, Subject
from traindx_tools.symptom.subjects import SPLITS, Row
from traindx_tools.symptom.words import SKIPPED, Hit, Token

MOST_SAID = 200
_OWN = Row("own", "own")
_SPLIT = Row("split", "score")
_SETTING = Row("setting", "setting")
_AT = {"at": "at", "near": "at", "around": "at", "about": "at", "to": "at", "of": "at", "=": "at", "~": "at",
       "is": "at", "be": "at", "below": "below", "under": "below", "above": "above", "over": "above", "<": "below",
       ">": "above", "than": "at"}
_FORMED = ("error", "exception")
def _counts(following: Token) -> bool:
    """Whether a number counts things: "2 codes", "28 px" are no values of a metric."""
    word = following.text.lower()
    return word in ("px", "k") or (len(word) > 3 and word.endswith("s") and word not in _UNITS)


_UNITS = frozenset({"steps/s", "samples/s", "tokens/s", "nats", "bits", "points", "less", "across", "always", "plus", "this"})
_TIME = frozenset("step epoch iteration iter update batch episode hour second minute day month process rank gpu worker time "
                  "code fold token".split())


@dataclass(frozen=True)
class Read:
    """One predicate of a clause with what belongs to it."""

    predicate: Predicate
    subject: Subject | None
    direction: str
    value: float | None
    relation: str
    phrase: str
    after: bool = False
    """Whether the subject stands before the predicate."""
    about: bool = False
    """Whether the value is named loosely: "close to zero"."""
    near: str = ""
    """The words around the predicate, where its place is looked for first."""
    firm: bool = False
    """Whether the value is said of a stretch of the run: "always", "for the first 200 steps"."""
    lead: str = ""
    """The words before the first predicate of the clause: a place there is that of all of them."""


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
class _Found:
    """A subject in the tokens `start` to `end` (exclusive). `governed`: it stands behind a preposition."""

    subject: Subject
    start: int
    end: int
    governed: bool


def read_clause(clause: Clause, names: Names, before: Subject | None) -> Iterator[tuple[StatedSymptom, Subject | None]]:
    """The observations of a clause; `before`: the subject of the clause before, for "... and then it is NaN"."""
    words = clause.tokens
    found = [_Found(_of_codes(s, words, before), a, b, _governed(words, a)) for s, a, b in _subjects(words, names)]
    taken = frozenset(i for f in found for i in range(f.start, f.end))
    hits = [h for h in predicates.PHRASES.find(words) if not _covered(h, taken) and not _idle(h, words, found)]
    hits += [Hit(_ERROR, i, i + 1, w.base) for i, w in enumerate(words)
             if w.kind == "word" and w.text.lower().endswith(_FORMED) and w.text.lower() not in _FORMED]
    hits += [Hit(_IS, f.end, f.end, "is") for f in found if _valued(f, words, hits)]
    hits = _without_links(sorted(hits, key=lambda h: h.start), words)
    reads: list[Read] = []
    for i, hit in enumerate(hits):
        floor = hits[i - 1].end if i else 0
        carried = reads[-1].subject if reads and reads[-1].subject is not None else before
        reads += _read_one(hit, floor, words, found, carried, hits)
    for read in _merged(reads):
        yield _symptom(clause, read), read.subject


def _without_links(hits: Sequence[Hit[Predicate]], words: Sequence[Token]) -> list[Hit[Predicate]]:
    """Without the verbs that only lead to what is said: "is" in "is NaN", "stays" in "stays flat"."""
    kept = []
    for i, hit in enumerate(hits):
        end = hits[i + 1].start if i + 1 < len(hits) else len(words)
        value, relation = _value(words, hit.end, min(end, hit.end + 9))
        telling = value is not None or relation in ("above", "below") or any(
            w in ("above", "below", "under") for w in hit.phrase.split())
        behind = bool(kept) and hit.start - kept[-1].end <= 1 and kept[-1].entry.direction not in ("is", NORMAL)
        if hit.phrase in ("above", "below", "under") and behind:
            continue  # "stuck above 0.8": a relation, no comparison
        if hit.entry.direction not in ("is", "stays") or telling:
            kept.append(hit)
    return kept


def _of_codes(subject: Subject, words: Sequence[Token], before: Subject | None) -> Subject:
    """The perplexity where codes are spoken of: that of a codebook."""
    codes = before is not None and before.key == "codes" or any(w.base.startswith("code") for w in words)
    return replace(subject, key="codes", family="codes") if subject.key == "perplexity" and codes else subject


def _governed(words: Sequence[Token], start: int) -> bool:
    """Whether a subject stands behind a preposition: right before it, or before its article."""
    for i in range(start - 1, max(start - 6, -1), -1):
        w = words[i]
        if w.base in _PREPOSITIONS:
            return True
        if w.kind == "mark" or w.base in ("and", "but", "or"):
            return False
        if w.base in _ARTICLES:
            return i > 0 and words[i - 1].base in _PREPOSITIONS
        if w.base not in _SMALL and w.base not in SPLITS and start - i > 2:
            return False
    return False


_ARTICLES = frozenset("a an the my our its their this that these those".split())
_PREPOSITIONS = frozenset("with without in of on at for from by than into after during per to over about between within "
                          "through before behind under like until against".split())
_SMALL = frozenset("a an the my our its their this that these those all both each every some very same first next new "
                   "two other".split())
_AFTER = frozenset("for in on at as from to of with and or but every each again then until since before after when while than "
                   "across over throughout now whatever between".split())
_ADJECTIVES = frozenset("same constant identical low tiny small lower smaller large larger big bigger high higher huge bad "
                        "poor good fine normal right great perfect wrong broken weird strange random weak ordinary "
                        "stable better worse worst slow slower best".split())
_CATENATIVES = frozenset({"refuse", "fail", "seem", "appear", "start", "begin", "continue", "tend", "go", "come", "keep", "up",
                          "down", "back", "close", "stick", "drop", "fall", "jump", "climb", "glue", "sink"})


def _idle(hit: Hit[Predicate], words: Sequence[Token], found: Sequence[_Found]) -> bool:
    """Whether a predicate says nothing here: "the same script", or what something is there for ("learns to drop")."""
    following = words[hit.end] if hit.end < len(words) else None
    if hit.phrase in _ADJECTIVES and following is not None and following.kind == "word" and (
            following.base not in _AFTER and not any(f.start - 2 <= hit.end <= f.start for f in found)
            or (hit.phrase in ("same", "constant", "identical") and following.base not in _AFTER)):
        return True
    owner = next((f.subject for f in found if f.start == hit.end), None)
    if owner is not None and owner.family in ("lr", "setting") and not _fits(hit.entry, owner):
        return True  # "the peak learning rate"
    back = words[max(hit.start - 2, 0):hit.start]
    if back and back[-1].base in ("than", "beat"):
        return True
    return len(back) == 2 and back[1].base == "to" and back[0].base not in _CATENATIVES and hit.phrase.split()[0] in _VERBS


_VERBS = frozenset("drop rise increase grow fall decrease learn train improve change move stop reach get settle jump "
                   "converge swing generalize update".split())


_ERROR = Predicate("crash", NORMAL, (), alone=True)
_IS = Predicate("is", "other", tuple(subjects.JUDGED_BY_VALUE))


def _valued(found: _Found, words: Sequence[Token], hits: Sequence[Hit[Predicate]]) -> bool:
    """Whether a number stands right behind a subject: "train 0.98 but validation 0.3", "loss = 2.3"."""
    end = found.end + (found.end < len(words) and words[found.end].base in ("=", "at", "of", "~"))
    told = end < len(words) and words[end].kind == "number" and found.subject.family in subjects.JUDGED_BY_VALUE
    return told and not found.governed and not any(h.start <= found.end < h.end for h in hits)


def _covered(hit: Hit[Predicate], taken: frozenset[int]) -> bool:
    """Whether the words of a predicate are those of a subject: "train" in "train loss" says nothing."""
    return all(i in taken for i in range(hit.start, hit.end))


def _subjects(words: Sequence[Token], names: Names) -> Iterator[tuple[Subject, int, int]]:
    """The subjects in the tokens with their places, each with the split that stands beside it."""
    hits: dict[int, tuple[Row, int]] = {h.start: (h.entry, h.end) for h in subjects.PHRASES.find(words)}
    i = 0
    while i < len(words):
        own = _own_name(words, i, names)
        row, end = (_OWN, i + 1) if own else hits.get(i, (None, i + 1))
        if row is not None and row.key == "step_time" and _numbered(words, i, end):
            row = None
        nxt = hits.get(i + 1)
        if words[i].base in SPLITS and words[i].kind == "word" and not _verb(words, i) and (
                row is None or (row.family == "run" and nxt is not None and nxt[0].family != "run")):
            row, end = nxt if nxt is not None else (_SPLIT, i + 1)
        if row is not None:
            yield _subject(words, i, end, row, own), i, end
        i = max(end, i + 1)


def _numbered(words: Sequence[Token], start: int, end: int) -> bool:
    """Whether "step" counts here ("at step 40", "in the first step") and is nothing that takes time."""
    after = end < len(words) and (words[end].kind == "number" or words[end].base in ("count", "on"))
    return after or _governed(words, start) or (start > 0 and words[start - 1].kind == "number")


def _verb(words: Sequence[Token], i: int) -> bool:
    """Whether "train" or "evaluate" is what somebody does here, and no split."""
    before = words[i - 1].base if i else ""
    return words[i].text.lower() in ("train", "trains", "trained", "evaluate", "evaluates", "validate") and before in (
        "not", "it", "i", "we", "to", "and", "model", "network", "run", "would", "can", "net", "never", "head")


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


_ORDINARY = frozenset({"time", "step", "epoch", "data", "error", "total", "run", "value", "model", "test", "best", "rate",
                       "scale", "train", "validation", "val", "valid", "eval", "dev", "final", "last", "now", "used",
                       "loss", "accuracy", "memory", "high", "low", "mean", "batch", "random", "new", "old", "same"})


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


_SETTINGS = frozenset("max min num n size weight weights epochs steps workers coef decay dim ratio seed prob every interval set "
                      "config py path dir clip status alloc argument use precision".split())
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


def _read_one(hit: Hit[Predicate], floor: int, words: Sequence[Token], found: Sequence[_Found],
              carried: Subject | None, hits: Sequence[Hit[Predicate]]) -> Iterator[Read]:
    """A predicate with its subjects, its negation and its value; one for each of several subjects."""
    predicate, chosen = _chosen(hit, found, floor, words, carried)
    denial = _denial(words, hit, floor)
    direction = NOTHING if denial == "instead" else predicate.denied if denial else predicate.direction
    direction = NORMAL if denial == "no" and predicate.direction in ("rises", "falls") else direction
    ends = min([h.start for h in hits if h.start >= hit.end and h is not hit] or [len(words)])
    value, relation = _value(words, hit.end, min(max(ends, hit.end + 1), hit.end + 9))
    bound = next((_AT[w] for w in hit.phrase.split() if w in ("above", "below", "under")), "")
    relation = bound or relation
    about = any(w.base in _LOOSELY for w in words[hit.end:ends])
    stop = next((i for i in range(hit.end, ends) if words[i].base in (",", "and")
                 and not (i + 1 < len(words) and words[i + 1].kind == "number")), ends)
    begin = max([i + 1 for i in range(floor, hit.start) if words[i].base in (",", "and")] or [floor])
    near = " ".join(w.text for w in words[begin:stop])
    lead = _lead(words, hits)
    chosen = chosen or [f.subject for f in found if predicate.alone and f.start < hit.end and hit.start < f.end]
    chosen = chosen or _pronoun(predicate, words, hit.start)
    for subject in chosen or [None]:
        behind = any(f.subject is subject and f.start >= hit.end for f in found)
        firm = (place_in(near).kind or place_in(lead).kind) in ("always", "first", "start", "end", "each")
        yield Read(predicate, subject, direction, value, relation if value is not None or direction == "stays" else "",
                   hit.phrase, not behind, about, near, firm, lead)


def _pronoun(predicate: Predicate, words: Sequence[Token], end: int) -> list[Subject]:
    """The run as a whole, where "it" does something that can be said of a run and nothing else was spoken of."""
    said = [w.text for w in words[:end] if w.base in ("it", "this", "everything")]
    return [Subject("run", "run", said[0])] if said and "run" in predicate.only else []


def _lead(words: Sequence[Token], hits: Sequence[Hit[Predicate]]) -> str:
    """The words before the first predicate; the whole clause where there is one predicate alone."""
    return " ".join(w.text for w in (words if len(hits) == 1 else words[:hits[0].start]))


def _chosen(hit: Hit[Predicate], found: Sequence[_Found], floor: int, words: Sequence[Token],
            carried: Subject | None) -> tuple[Predicate, list[Subject]]:
    """Of what a phrase can mean the first that its subject allows: a job that hangs, a loss that hangs at 2."""
    options = [(p, _subjects_of(p, hit, found, floor, words, carried)) for p in (hit.entry, *hit.others)]
    return next(((p, s) for p, s in options if s and _near(s, found, floor, hit)),
                next(((p, s) for p, s in options if s), options[-1] if options[-1][0].alone else options[0]))


def _near(chosen: Sequence[Subject], found: Sequence[_Found], floor: int, hit: Hit[Predicate]) -> bool:
    return any(f.subject is s and floor <= f.start <= hit.end + 3 for s in chosen for f in found)


def _fits(predicate: Predicate, subject: Subject | None) -> bool:
    """Whether it can be said of the subject; a split of the data is a score and a run in one."""
    if not predicate.only or subject is None:
        return not predicate.only
    return subject.family in predicate.only or (subject.key == "split" and bool({"run", "score"} & set(predicate.only)))


def _subjects_of(predicate: Predicate, hit: Hit[Predicate], found: Sequence[_Found], floor: int,
                 words: Sequence[Token], carried: Subject | None) -> list[Subject]:
    """The nearest fitting subject before the predicate, then the carried one, then the nearest after it."""
    fitting = [f for f in found if _fits(predicate, f.subject)]
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
    if carried is not None and _fits(predicate, carried):
        return [carried]
    if near or right:
        return [(near[-1:] or right[:1])[0].subject]
    left = [f for f in fitting if f.end <= hit.start]
    return [left[-1].subject] if left else []


def _stranger(words: Sequence[Token], start: int, end: int, near: Sequence[_Found]) -> bool:
    """Whether a noun that no table knows stands before the predicate as its subject: behind an article, free."""
    known = [f.start for f in near]
    for i in range(start, end - 1):
        if words[i].base in ("the", "a", "an", "my", "our") and (i == 0 or words[i - 1].base not in _PREPOSITIONS):
            inside = words[i + 1:end]
            if inside and inside[0].kind == "word" and not any(i < k <= i + 3 for k in known):
                return inside[0].base not in _SMALL and inside[0].base not in SKIPPED
    return False


def _verbal(hit: Hit[Predicate]) -> bool:
    """Whether a predicate is a verb, whose subject stands before it; nouns and adjectives may have theirs behind."""
    return hit.entry.direction in (
        "rises", "falls", "stays", "is", "jumps", "oscillates", "still", "crash", "hang", "less", "more", "better", "worse")


def _marked(words: Sequence[Token], start: int, end: int) -> bool:
    return any(w.kind == "mark" or w.base in ("and", "but") for w in words[start:end])


def _joined(group: Sequence[_Found], words: Sequence[Token], near: Sequence[_Found]) -> list[Subject]:
    """The last subject and those that "and" joins to it: "loss and grad_norm are zero"."""
    chosen = [group[-1]]
    for f in reversed(group[:-1]):
        between = words[f.end:chosen[0].start]
        if not between or not all(w.base in _JOINS or w.base in SPLITS for w in between):
            break
        chosen.insert(0, f)
    split = next((f.subject.group for f in near if f.subject.family == "run" and f.subject.group), None)
    return [replace(f.subject, group=split) if f.subject.group is None and split else f.subject for f in chosen]


_LOOSELY = frozenset({"close", "nearly", "almost", "practically", "near", "tiny", "essentially", "virtually"})
_JOINS = frozenset({"and", "or", "nor", ",", "the", "its", "both", "a", "as", "well"})


def _denial(words: Sequence[Token], hit: Hit[Predicate], floor: int) -> str:
    """The word of negation that stands before the predicate with nothing but small words between, else ""."""
    inside = hit.phrase.split()
    if inside[0] in predicates.NEGATIONS:
        return ""
    if any(w.base in ("not", "never") for w in words[hit.start:hit.end]):
        return "" if any(x in ("not", "never") for x in inside) else "not"
    for i in range(hit.start - 1, max(hit.start - 6, floor - 1, -1), -1):
        w = words[i]
        if w.kind == "mark" or w.base in ("and", "or", "then"):
            return ""
        if w.base in ("without", "no") and hit.start - i > 2:
            return ""  # "without accumulation it is stable"
        if w.base in predicates.NEGATIONS:
            return "" if w.base == "not" and i + 1 < len(words) and words[i + 1].base == "only" else w.base
    early = any(w.base == "neither" for w in words[:hit.start])
    return "neither" if early and hit.entry.denied == "still" else ""


def _value(words: Sequence[Token], start: int, end: int) -> tuple[float | None, str]:
    """The number that follows, and how the subject stands to it; numbers of steps and of processes are none."""
    relation = ""
    for i in range(start, min(end, len(words))):
        w = words[i]
        if w.base in ("ln", "log"):
            inside = next((t.number for t in words[i + 1:i + 4] if t.number is not None), None)
            return (math.log(inside) if inside is not None and inside > 0 else None), relation or "at"
        if w.kind == "mark" and w.base in ",()":
            return None, relation
        if w.base in _AT:
            relation = _AT[w.base]
        if w.number is not None or w.kind == "number":
            around = [t.base for t in words[max(i - 1, 0):i + 2] if t.kind == "word"]
            following = words[i + 1] if i + 1 < len(words) else None
            counted = following is not None and following.kind == "word" and _counts(following)
            if w.number is not None and not counted and not _TIME.intersection(around):
                return w.number, relation or "at"
            return None, relation
    return None, relation


def _merged(reads: Sequence[Read]) -> list[Read]:
    """Without what says nothing beside another: "stays flat" is flat, "is NaN" is NaN, "stays" alone is nothing."""
    out: list[Read] = []
    for i, r in enumerate(reads):
        following = reads[i + 1] if i + 1 < len(reads) else None
        empty = r.direction in ("stays", "is") and r.value is None
        if empty and (following is not None or r.phrase in _EMPTY) and r.relation not in ("above", "below"):
            continue
        if out and r.phrase.startswith("same") and out[-1].direction == "identical":
            continue  # "predicts the same value" is one symptom
        if out and r.phrase in _LEVELS and out[-1].direction in ("still", "stays", "poor", "falls"):
            continue  # "never rises above chance" is one symptom
        out.append(r)
    return out


_LEVELS = frozenset({"chance", "at chance", "near chance", "below chance", "guess", "at random", "coin flip"})
_EMPTY = frozenset({"be", "show", "read", "print", "report", "equal", "become", "turn", "log", "display", "be about",
                    "reach", "go to", "drop to", "fall to", "reached", "tell", "come out at", "end up at", "start at",
                    "start near", "begin at", "stay", "remain", "sit", "stick", "keep at", "hover"})


def _symptom(clause: Clause, read: Read) -> StatedSymptom:
    against = against_in(clause.text)
    subject, direction = read.subject, _meant(read, against.kind)
    made = StatedSymptom(clause.text[:MOST_SAID], direction, subject, _place(read), read.value, read.relation,
                         against)
    return replace(made, kinds=kinds_of(made))


def _place(read: Read) -> Place:
    near = place_in(read.near)
    return near if near.kind else place_in(read.lead)


_GOOD_WAY: Mapping[str, frozenset[str]] = {
    "rises": frozenset({"score", "reward", "speed"}),
    "falls": frozenset({"loss", "time", "term"}),
    "high": frozenset({"score", "reward", "speed"}),
    "low": frozenset({"loss", "time", "adversary", "gradient", "memory"}),
    "still": frozenset({"memory"}),
}


def _meant(read: Read, against: str) -> str:
    """The direction that is meant: a loss that falls is in order, one that "is 0.5" is only an observation of sorts."""
    family = read.subject.family if read.subject is not None else "run"
    if read.predicate.only and read.subject is None and not read.predicate.alone:
        return read.predicate.direction if read.predicate.direction == NOTHING else UNPLACED
    if family == "lr" and read.direction == "is" and read.value and read.about is False and not read.firm:
        return NOTHING  # "learning_rate is 1e-3": a setting
    if read.direction in ("less", "more", "better", "worse"):
        return _compared(read, family, against)
    if read.direction in _GOOD_WAY and family in _GOOD_WAY[read.direction]:
        return NORMAL
    if read.direction in ("low", "high") and family == "lr" and not read.after:
        return NOTHING  # "a lower learning rate only moves the moment"
    if read.direction == "other" or (family == "setting" and not read.predicate.alone):
        return NOTHING
    if read.direction in ("is", "stays") and read.value is None:
        if against == "chance":
            return "poor"
        return "stays" if read.direction == "stays" and read.relation in ("above", "below") else NOTHING
    return _of_value(read, family) if read.direction == "is" else read.direction


def _compared(read: Read, family: str, against: str) -> str:
    """What a comparison says: between the splits a gap or the reverse of one, else better or worse than it should be."""
    upwards = family in ("score", "reward", "speed")
    better = read.direction == "better" or (read.direction == ("more" if upwards else "less"))
    if against == "split":
        of_train = read.subject is not None and read.subject.group == "train"
        return "inverted" if better != of_train else "gap"
    if read.direction in ("better", "worse") or against in ("chance", "others", "before", "run"):
        return NORMAL if better else "poor"
    if read.value is None and family not in ("loss", "score", "gradient", "term", "own"):
        return NOTHING
    return NORMAL if better else "low" if upwards else "high"


def _of_value(read: Read, family: str) -> str:
    """What "is V" says: a high score and a loss near nothing are in order."""
    value = read.value if read.value is not None else 0.0
    if family in ("score", "reward"):
        return NORMAL if (value / 100 if 1 < value <= 100 else value) >= HIGH_SCORE else "is"
    if family in ("loss", "adversary"):
        return NORMAL if 0 < value < LOW_LOSS or (value == 0 and read.about) else "is"
    return "is"


HIGH_SCORE = 0.8
"""A score from which "the accuracy is V" is said of something that works."""
LOW_LOSS = 0.05
"""A loss below which "the loss is V" is said of something that works."""
