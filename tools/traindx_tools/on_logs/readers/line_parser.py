"""Reads one line of free text: which of its numbers are counters, which are metrics, which are neither.

A line is cut into text and numbers. What the text says is worked out once for each shape of line (a `Plan`); lines of
the same shape, which is nearly all of a log, then only cost a lookup and the conversion of their numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from traindx_tools.on_logs.readers import counters
from traindx_tools.on_logs.readers.languages import COUNTED_OF, counters_first, in_english, plain_signs
from traindx_tools.on_logs.readers.names import (
    GROUPS,
    IGNORED,
    TRAIN,
    VALIDATION,
    Name,
    group_word,
    identify,
    words,
)
from traindx_tools.on_logs.readers.numbers import TOKEN, UNIT, as_memory, unit, value, whole
from traindx_tools.on_logs.readers.pairs import EVALUATED, is_accuracy_beside, named_by_neighbours, named_pair
from traindx_tools.on_logs.readers.recorder import Key

MAX_TOKENS = 1_000
"""Numbers looked at in one line."""
_MAX_GAP = 300
"""Characters before a number in which its name is looked for."""


@dataclass(frozen=True)
class Field:
    """One metric of a shape: which token holds it and what it is called."""

    token: int
    key: Key
    factor: float = 1.0
    over: int | None = None
    """The token by which the value is divided: "9850/10000" of an accuracy."""
    average: int | None = None
    """The token of its mean so far, in brackets behind it."""
    tentative: bool = False
    """Taken for a metric only if it recurs with other values."""


@dataclass(frozen=True)
class Counter:
    """One counter of a shape: the token, and the token with the planned end."""

    token: int
    total: int | None
    sureness: int


@dataclass(frozen=True)
class Plan:
    """What the numbers of one shape of line mean."""

    fields: tuple[Field, ...] = ()
    step: Counter | None = None
    epoch: Counter | None = None
    rank: int | None = None
    bar: str = ""
    """"tqdm", "keras", "meter" or "" where the line draws no bar."""
    leftover: int = 0
    """Words that are neither a name nor a unit."""
    plain: bool = True
    """Nothing is written before a bar."""

    @property
    def header(self) -> bool:
        """A line that only says where the following ones stand."""
        return not self.fields and not self.bar and bool(self.step or self.epoch) and self.leftover <= 3


NOTHING = Plan()
_MAY_HOLD = re.compile(r"[0-9]|[nN][aA][nN]|[iI][nN][fF]")
"""Without one of these a line holds no token: told first, because prose is long and cutting it is slow."""
_MAX_LOOK = 4_000
_OPTIONS = r"(?:^|\s)--[A-Za-z][\w-]+(?:[ =]|$)"
_NO_METRICS = re.compile("|".join((
    r'^\s*File "', r"^\s*[~^]+\s*$", r"^\s*[\w.]*(?:Error|Exception|Warning|Interrupt|Exit)\b(?!\s*(?:rate|=|\d))",
    r"\b\w*Warning:", r"warnings\.warn", r"^\s*(?:\$|%|#!) ", r"out of memory|[Tt]ried to allocate",
    r"^\s*(?:\+ )?(?:python3?|torchrun|accelerate|deepspeed|srun|sbatch|mpirun|bash|sh|cd|export|pip|git|docker|sudo"
    r"|[A-Z_]+=\S+ +\w+)\s", _OPTIONS,
    r"\b[A-Za-z_]\w*\((?:[^()]*,\s*)?[A-Za-z_]\w*=(?!=)",
    r"^\s*(?:def|class|import|return|raise|assert|elif|while|except|with|for|if)\s.*[:(]\s*$",
    r"^\s*(?:from [\w.]+ )?import ", r"[^=!<>]==|!=|\bself\.",
    r"^\s*[\w.\[\]]+\s*\+=|\s\+=|\+=(?![-\d]|nan|inf)", r"^\s*[\w.]+\s*=\s*[\w.]+\(",
    r"^\s*[\w.]+\s*=\s*-?[\w.]*\(.*\)\s*[-+*/@]\s*[\w(]", r"0x[0-9a-f]{4,}",
    r"https?://", r"improved from|(?:de|in)creased \(|did not improve|[Rr]educing learning|[Rr]andom baseline",
)))
"""Frames of tracebacks, code, warnings, shell commands: nothing in them is a metric."""
_A_SECOND = re.compile(r"/s(?:ec)?(?![\w/])")
_TAIL = re.compile(
    r"^(?P<head>.*?)\s*(?P<conn>=>|->|:=|[=:≈]|)\s*"
    r"(?:(?:tensor|array|Array|Tensor|(?:np|numpy|jnp)\.\w+|float|DeviceArray)\()?[\[({'\"#$]*\s*$", re.DOTALL)
_DRAWING = re.compile(r"\[[=>.#*~ \-]{3,}\]|[=#*~\-]{3,}>?")
"""A bar or a rule drawn with signs: "[====>....]" is no comparison and "----" no option."""
_WRAPPER = re.compile(r"\b(?:tensor|array|Array|Tensor)\([^()]*?(?=,|\))")
"""A value printed as the array that it is: its arguments make no call of it."""
_SEPARATOR = re.compile(r"[,;|•·│┃║{}\[\]\t=]|\s[-–—>»→]+\s|\s{2,}|:\s|\)\s|\s\(")
_NAMED_UNIT = re.compile(r"\s\((?:[munµ]?s|sec|seconds|[KMGT]i?B|%|[\w]+/[\w/]+)\)$")
"""A unit in the name: "elapsed time per iteration (ms)"."""
_UNIT_IN_NAME = re.compile(r"[A-Za-z_]\(1[eE][+-]?\d{1,2}\)\s?[:=]")
"""A power of ten in brackets right behind a name and before its value."""
_EDGE = "'\"`*-–—>»→•#.!,:/\\ \t_~<█▏▎▍▌▋▊▉━╸╺=?"
_STOP = frozenset({
    "a", "about", "after", "all", "an", "and", "another", "are", "around", "as", "at", "be", "between", "by", "did",
    "down", "every", "first", "for", "from", "has", "have", "in", "is", "its", "last", "next", "no", "not", "nr",
    "number", "of", "on", "only", "or", "over", "per", "since", "than", "the", "to", "took", "until", "up", "using",
    "version", "was", "were", "with", "within",
})
_SPACED = re.compile(r"\s[:=>-]+\s*\S?\s*$")
"""A connector with a space before it belongs to all the words before it: "best val loss = "."""
_SIGNED = re.compile(r"[A-Za-z0-9)][+-]=$")
"""A name that ends in a sign: the distances of pairs that belong together and that do not."""
_LOCATION = re.compile(r"\(\w[\w.]*:$")
"""Which line of the program wrote this: "(trainer:779)"."""
_ITEMS_FOLLOW = re.compile(r"\s+(?:rows|samples|examples|images|sentences|sequences|batches|files|records|items|clips|"
                           r"documents|windows|points|patients|users)\b")
_EXPONENT = re.compile(r"\d\.?\d*[eE]$")
_BETWEEN = re.compile(r"[\s,;|/]{1,4}")
"""What stands between the values of a list."""
_RATIO = re.compile(rf"\s*(?:/|of|out of|{'|'.join(COUNTED_OF)})\s*$")
_COUNTED = re.compile(r"\s+(steps|iterations|iters|updates|epochs|batches|episodes)\b")
_PLURAL = {"steps": "step", "iterations": "iteration", "iters": "iter", "updates": "update", "epochs": "epoch",
           "batches": "batch", "episodes": "episode"}
_OF_SETTINGS = frozenset({"accumulation", "accum", "accumulate", "warmup", "warm-up", "max", "maximum"})
"""Words that make a setting of a word that counts."""
_TQDM = re.compile(r"(?<!\d)\d+%\|[^|]{0,400}\| ?[\d.?]+\w?/|[━╸╺]{5,}")
_KERAS = re.compile(r"^\s*\d+/(?:(?:\d+|Unknown)\s+(?:[━╸╺]|\[[=>.]+\]|[\d:hms]+ [\d.]+[mu]?s/step - )|"
                    r"Unknown\s+-\s)")
_FAMILIES = frozenset({"grad_norm", "loss", "weight_norm"})
_VECTOR = frozenset({"perplexity", "codebook_perplexity", "codebook_used"})


@dataclass
class _Draft:
    """A plan in the making, with what the text so far has said."""

    items: list[tuple[Field, Name, bool]] = field(default_factory=list)
    steps: list[Counter] = field(default_factory=list)
    epochs: list[Counter] = field(default_factory=list)
    bare: list[Counter] = field(default_factory=list)
    rank: int | None = None
    leftover: int = 0
    group: str | None = None
    stem: str = ""
    family: str = ""
    """What the names without one of their own belong to: the "grad norms" of several modules."""
    vector: int = -1
    """The item whose name stands for several values, one a layer: "grad norms: 0.1 0.2 0.3"; -1 for none."""
    described: bool = False
    """A bar with words before it: what it counts may be anything."""
    parts: list[str] = field(default_factory=list)
    spoken_of: str | None = None
    """The group whose loss stands right before: "val: 0.55 (acc 0.88)"."""


def split(text: str) -> list[str]:
    """Text and tokens in turn; the text parts alone are the shape."""
    if text.isascii() and not _MAY_HOLD.search(text):
        return [text]
    parts = TOKEN.split(text)
    return _with_units(parts) if _UNIT_IN_NAME.search(text) else parts


def _with_units(parts: list[str]) -> list[str]:
    """With each power of ten that is the unit of a name left in the text: "lr(1e-3): 3.0" holds one number."""
    joined = parts[:1]
    for token, after in zip(parts[1::2], parts[2::2], strict=True):
        if _UNIT_IN_NAME.search(f"{joined[-1][-2:]}{token}{after[:2]}"):
            joined[-1] += token + after
        else:
            joined += [token, after]
    return joined


def plan_line(parts: list[str], group: str | None = None) -> Plan:
    """What the numbers of a line mean. `parts` as of `split`; `group` is what the lines before have said."""
    if len(parts) < 3:
        return NOTHING
    parts = _in_order(parts)
    text = "".join(parts)
    if len(parts) > 2 * MAX_TOKENS or _NO_METRICS.search(_DRAWING.sub(" ", _WRAPPER.sub("", text[:_MAX_LOOK]))):
        return NOTHING
    draft = _Draft(group=group, parts=parts)
    _read_tokens(parts, draft)
    bar = "keras" if _KERAS.match(text) else "tqdm" if _TQDM.search(text) else ""
    return _finish(draft, bar)


def _in_order(parts: list[str]) -> list[str]:
    """With plain signs, and counters before their numbers, where the line is in a script that has its own."""
    if all(p.isascii() for p in parts[::2]):
        return counters_first(parts)
    return counters_first([plain_signs(p) if i % 2 == 0 else p for i, p in enumerate(parts)])


def _read_tokens(parts: list[str], draft: _Draft) -> None:
    gap, at = parts[0], 1
    while at < len(parts):
        token, after = parts[at], parts[at + 1]
        found, used = _unit_behind(after, last=at + 2 >= len(parts))
        total = None
        if not used and at + 2 < len(parts) and _RATIO.fullmatch(after) and value(parts[at + 2]) is not None:
            total, after = at + 2, parts[at + 3]
            found, used = _unit_behind(after, last=at + 4 >= len(parts))
        if value(token) is None or _glued(after, used):
            draft.leftover += len(gap.split())
        else:
            _read_one(draft, gap, at // 2, None if total is None else total // 2, found, token, after)
        gap = after[used:]
        at = (total or at) + 2
    draft.leftover += sum(1 for w in gap.split() if any(c.isalpha() for c in w))
    _note_groups(draft, gap)


def _glued(after: str, used: int) -> bool:
    return not used and bool(after) and (after[0].isalpha() or after[0] == "_")


def _unit_behind(after: str, last: bool) -> tuple[tuple[str, float] | None, int]:
    """The unit at the start of the text behind a number, and how much of the text it takes."""
    if a_second := _A_SECOND.match(after):
        return ("throughput", 1.0), a_second.end()
    match = UNIT.match(after)
    if not match:
        return None, 0
    if match.group(1):
        return ("percent", 1.0), match.end()
    glued = not after[0].isspace()
    found = unit(match.group(2), glued)
    if found and found[0] == "count":  # "12.3k tok/s"
        rate, more = _unit_behind(after[match.end():], last)
        if rate and rate[0] in ("throughput", "tokens_per_second"):
            return (rate[0], found[1] * rate[1]), match.end() + more
    names_next = not glued and not last and after[match.end():].strip() in ("", ":", "=")
    return (None, 0) if found is None or names_next else (found, match.end())


def _read_one(draft: _Draft, gap: str, token: int, total: int | None, found: tuple[str, float] | None,
              text: str, after: str) -> None:
    gap = gap[-_MAX_GAP:]
    if _LOCATION.search(gap) and after.startswith(")"):
        return
    tail = _TAIL.match(gap)
    head, conn = (tail.group("head"), tail.group("conn")) if tail else (gap, "")
    head = head.rstrip("'\"`")
    in_unit = _NAMED_UNIT.search(head)
    head = head[:in_unit.start()] if in_unit else head
    pieces = [p.strip(_EDGE) for p in _SEPARATOR.split(head)]
    phrase = _balanced(pieces[-1]).split()
    if conn in ("=", ":=", "=>", "->") and len(phrase) > 1 and not _SPACED.search(gap) and not _one_name(phrase):
        pieces.insert(-1, " ".join(phrase[:-1]))
        phrase = phrase[-1:]
    if any(c in gap for c in "|;") or len(pieces) > 3:
        draft.family = ""
    for piece in pieces[:-1]:
        _note_groups(draft, piece)
        if identify(piece).canonical in _FAMILIES and f"{piece}:" in gap:
            draft.family = piece  # "grad norms: enc 0.1 dec 0.2"
        draft.leftover += sum(1 for w in piece.split() if any(c.isalpha() for c in w))
    phrase = [w for w in phrase if any(c.isalpha() for c in w)]
    if phrase and _SIGNED.search(gap):  # "d+=0.36 d-=1.22": two metrics
        phrase[-1] = phrase[-1].rstrip("+-") + ("_plus" if gap.rstrip("= ").endswith("+") else "_minus")
    second = "" if total is None else draft.parts[2 * total + 1]
    full = [*phrase, in_unit.group().strip()] if in_unit else phrase
    pair = None if total is None or not phrase else named_pair(full, text, second, after[:1] == "%")
    if total is not None and pair is not None:
        _read_metric(draft, pair[0], token, None, None, conn, text, "", "")
        _read_metric(draft, pair[1], total, None, None, conn, second, "", after)
        return
    bracketed = gap.rstrip().endswith("[") and whole(text) is not None
    if (total is not None or bracketed) and phrase and all(group_word(w) for w in phrase):  # "Test: [ 1/196]"
        _note_groups(draft, " ".join(phrase))
        phrase, gap = [], "[" if bracketed else gap
    if phrase and all(group_word(w) for w in phrase) and whole(text) is not None and _counts_batches(draft, token):
        _note_groups(draft, " ".join(phrase))
        draft.epochs.append(Counter(token, None, 0))  # "Train: 3 [ 10/196]"
        return
    if phrase and phrase[-1].lower() in ("after", "at", "for") and _COUNTED.match(after):  # "after 300 steps"
        draft.leftover += len(phrase)
        phrase = []
    if found and found[0] == "percent" and after.startswith("%|") and conn != "=":  # how far a bar is
        _note_groups(draft, " ".join(phrase))
        draft.described = draft.described or bool(phrase)
        return
    if not phrase:
        _read_nameless(draft, token, total, found, gap, text, after)
    elif in_unit or _lasts(found, after) or not _read_counter(draft, phrase, token, total, text, conn):
        phrase += [in_unit.group().strip()] if in_unit else []
        _read_metric(draft, phrase, token, total, found, conn, text, gap, after)


def _counts_batches(draft: _Draft, token: int) -> bool:
    """Whether what follows a number is a count of batches in brackets: " [ 10/196"."""
    text, counted, sign = (*draft.parts[2 * token + 2:2 * token + 5], "", "", "")[:3]
    return text.strip() == "[" and whole(counted) is not None and sign.strip()[:1] == "/"


def _one_name(phrase: list[str]) -> bool:
    """Whether several words are one name in another language: "taxa de aprendizado=0.1"."""
    written = " ".join(phrase)
    return in_english(written) != written and identify(written).known


def _lasts(found: tuple[str, float] | None, after: str) -> bool:
    """Whether a number is a duration, whatever word stands before it: "Step: 73ms"."""
    return found is not None and found[0] == "time" and not after[0].isspace()


def _balanced(phrase: str) -> str:
    """Without a bracket that is opened or closed elsewhere: "(data var" and "x)" but "D(G(z))" as it is."""
    while phrase.count("(") != phrase.count(")"):
        cut = phrase.lstrip("(") if phrase.startswith("(") else phrase.rstrip(")") if phrase.endswith(")") else ""
        if cut in ("", phrase):
            return phrase.replace("(", " ").replace(")", " ").strip()
        phrase = cut
    return phrase


def _note_groups(draft: _Draft, text: str) -> None:
    for word in text.split():
        found = group_word(word.strip("()[]:'\"|,*_-"))
        draft.group = found or draft.group


def _read_nameless(draft: _Draft, token: int, total: int | None, found: tuple[str, float] | None, gap: str,
                   text: str, after: str) -> None:
    if draft.vector >= 0 and not found and total is None and _BETWEEN.fullmatch(gap):
        _read_layer(draft, token)
    elif found and found[0] == "percent" and draft.items and draft.items[-1][0].token == token - 1 and \
            is_accuracy_beside(draft.items[-1][0].key.original, gap, text, after):
        key = Key("accuracy", draft.items[-1][0].key.group)
        draft.items.append((Field(token, key), identify("accuracy"), True))
    elif found and _repeats(draft, token, found[0]):
        return
    elif found and found[0] not in ("time", "memory", "count", "percent"):
        draft.items.append((Field(token, Key(found[0], draft.group or TRAIN, metric=found[0]), found[1]),
                            Name(found[0], None, True, True), True))
    elif _is_average(draft, token, gap, text, after, found):
        draft.items[-1] = (replace(draft.items[-1][0], average=token), *draft.items[-1][1:])
    elif whole(text) is None or found or (draft.items and gap.rstrip().endswith("(") and _COUNTED.match(after)):
        return  # "val_loss 4.739 (250 batches)": of how many batches it is the mean, not where it stands
    elif total is not None and (token == 0 or not gap.endswith("(")):
        draft.bare.append(Counter(token, total, counters.BARE))
    elif _opens(draft, token, gap.strip(), after):
        draft.bare.append(Counter(token, None, counters.BARE))
    else:
        counted = _COUNTED.match(after)
        if counted and counted.group(1) in _PLURAL:
            _read_counter(draft, [_PLURAL[counted.group(1)]], token, None, text, ":")


def _repeats(draft: _Draft, token: int, metric: str) -> bool:
    """Whether a rate in brackets is the mean of the one before: "300.8/s  (3.404s, 290.8/s)"."""
    text = "".join(draft.parts[:2 * token + 1])
    return text.count("(") > text.count(")") and any(i[0].key.metric == metric for i in draft.items)


def _is_average(draft: _Draft, token: int, gap: str, text: str, after: str,
                found: tuple[str, float] | None) -> bool:
    """Whether a number in brackets behind a metric is its mean so far, as meters print: "Acc@1: 0.0000 (11.1111)"."""
    beside = bool(draft.items) and draft.items[-1][0].token == token - 1
    return (beside and gap.strip() == "(" and after[:1] == ")" and not found and whole(text) is None
            and value(text) is not None)


def _read_layer(draft: _Draft, token: int) -> None:
    """One more value under the name of several: the layers are numbered from 0."""
    first, name, explicit = draft.items[draft.vector]
    if first.key.metric is None:
        first = replace(first, key=replace(first.key, original=f"{first.key.original} 0", metric="grad_norm/0"))
        draft.items[draft.vector] = (first, name, explicit)
    layer = len(draft.items) - draft.vector
    written = f"{first.key.original[:-2]} {layer}"
    draft.items.append((replace(first, token=token, key=replace(first.key, original=written,
                                                                metric=f"grad_norm/{layer}")), name, explicit))


def _opens(draft: _Draft, token: int, before: str, after: str) -> bool:
    """Whether a number without a name stands at the head of a line as a counter: "[100] ", "[2, 2000]", "1|20|"."""
    if token == 0:
        return before in ("", "[", "(", "#") and re.match(r"\s*[\]):|,]|\s+[A-Za-z]", after) is not None
    return token == 1 and before in (",", "|", "][") and len(draft.bare) == 1 and after.lstrip()[:1] in ("]", "|")


def _read_counter(draft: _Draft, phrase: list[str], token: int, total: int | None, text: str, conn: str) -> bool:
    """Whether the phrase names a counter: then it is noted, unless the number cannot be one."""
    last = re.sub(r"\(.*\)$", "", phrase[-1]).lower()
    joined = "_".join(w.lower() for w in phrase[-2:])
    if _OF_SETTINGS.intersection(w.lower() for w in phrase[:-1]):
        return False  # "gradient accumulation steps: 4" is a setting
    plural = last in _PLURAL and (total is not None or (token == 0 and conn == ":"))
    kind = counters.counter_kind(joined) or counters.counter_kind(_PLURAL[last] if plural else last)
    readable = (value(text) if kind and kind[0] == counters.EPOCH else whole(text)) is not None
    if kind is None or (last in _PLURAL and not plural) or (len(phrase) > 1 and (not readable or "per" in phrase)):
        return False
    if len(phrase) > 1:
        _note_groups(draft, " ".join(phrase[:-1]))
        draft.leftover += len(phrase) - 1
    _note_groups(draft, phrase[-1][len(last):])
    if not readable:
        return True
    counter = Counter(token, total, kind[1])
    if kind[0] == counters.RANK:
        draft.rank = token
    else:
        (draft.epochs if kind[0] == counters.EPOCH else draft.steps).append(counter)
    return True


def _read_metric(draft: _Draft, phrase: list[str], token: int, total: int | None, found: tuple[str, float] | None,
                 conn: str, text: str, gap: str, after: str) -> None:
    started = not conn and "from" in (w.lower() for w in phrase[:-1])  # "Start training from score -0.52"
    named = None if started else _of_family(draft, _choose_name(draft, phrase))
    if named is None:
        draft.leftover += len(phrase)
        return
    written, name, spare = named
    draft.leftover += spare
    spelled = written.split()
    counted = "." not in text and (not conn or _ITEMS_FOLLOW.match(after) is not None or after.startswith("-"))
    group = group_word(spelled[0])
    if len(spelled) == 1 and group and (counted or "/" in gap):
        draft.group = group  # "16 train / 11 val batches", "train: 6000 rows"
        return
    if _EXPONENT.search(written) and (gap[-1:] in "+-" or text[:1] in "+-"):
        draft.leftover += len(phrase)  # "lr5e-04": the number began within the word
        return
    if len(spelled) > 1 and group:
        draft.group = group
    snake = "_".join(words(written))
    if snake == "eta" and found and found[0] == "time":
        return  # what is left of a bar; elsewhere it may be a step size
    metric, factor = _converted(name, found, written)
    filler = spelled[-1].lower().strip("():") in _STOP and not (conn and spelled[-1].isupper())  # "PER: 20.5" is none
    if metric is None and not name.known and (snake in IGNORED or filler):
        draft.leftover += len(spelled)
        return
    over = total if name.canonical.startswith("accuracy") else None
    spoken_of = draft.spoken_of if name.canonical in EVALUATED else None
    key = Key(written, name.group or spoken_of or draft.group or "", metric=metric)
    draft.spoken_of = group or spoken_of
    draft.items.append((Field(token, key, factor, over), name, conn != ""))
    several = name.canonical == "grad_norm" and (snake.endswith("norms") or gap.rstrip().endswith(("[", "(")))
    draft.vector = len(draft.items) - 1 if several else -1
    if total is not None and name.canonical in _VECTOR:
        size = Key("codebook_size", key.group)
        draft.items.append((Field(total, size), identify("codebook_size"), True))


def _of_family(draft: _Draft, named: tuple[str, Name, int] | None) -> tuple[str, Name, int] | None:
    """A name that says little by itself joins the family that was announced before it, or announces one."""
    if named is None:
        return None
    written, name, spare = named
    first, _, rest = written.partition(" ")
    if name.canonical.startswith("grad_norm/") and rest and identify(first).canonical == "grad_norm":
        draft.family = first  # "gnorm enc 0.1 dec 0.2"
    elif name.known:
        draft.family = ""
    elif draft.family and not rest:
        written = f"{draft.family} {written}"
        return written, identify(written), spare
    return named


def _choose_name(draft: _Draft, phrase: list[str]) -> tuple[str, Name, int] | None:
    """The metric that a phrase names, as written, and how many words before it were none of it."""
    last = phrase[-1].lower()
    if last in ("before", "after", "now", "then"):
        draft.stem = " ".join(phrase[:-1]) or draft.stem
        phrase = draft.stem.split()
        if not phrase:
            return None
    while len(phrase) > 1 and phrase[-1].lower() in ("is", "was", "of", "at", "so", "far"):
        phrase = phrase[:-1]
    for start in range(min(len(phrase), 7)):
        written = " ".join(phrase[start:]).strip(_EDGE)
        name = identify(written)
        if name.known and len(written) <= 80:
            _note_groups(draft, " ".join(phrase[:start]))
            return written, name, start
    written = " ".join(phrase).strip(_EDGE)
    if len(phrase) > 5 or len(written) > 80 or not written or "\\" in written or re.search(r"\.(?:py|pt|json|txt)\b",
                                                                                          written):
        return None
    return written, identify(written), 0


def _converted(name: Name, found: tuple[str, float] | None, written: str) -> tuple[str | None, float]:
    """A canonical name that the unit decides, if it does, and the factor to the canonical unit."""
    is_memory = name.canonical.split("/")[0] == "memory"
    if found is None or found[0] == "percent":
        return None, name.factor
    kind, factor = found
    if kind == "memory":
        stem = "_".join(w for w in words(written) if w not in GROUPS)
        return (None if is_memory or not stem else f"memory/{stem}" if not name.known else None), factor
    if kind == "count" and is_memory:
        return None, {1e3: as_memory("K"), 1e6: as_memory("M"), 1e9: as_memory("G")}.get(factor) or 1.0
    snake = "_".join(words(written))
    if kind == "time" and not name.known and snake not in IGNORED and counters.counter_kind(written.lower()) is None:
        return f"time/{snake or 'value'}", factor  # "total: 1240ms" is no loss, whatever its name
    if kind in ("time", "count"):
        counted = counters.counter_kind(written.lower()) if kind == "time" else None
        return (None if counted is None else f"{counted[0]}_time"), factor
    return (None if name.known and name.canonical != "step_time" else kind), factor


def _finish(draft: _Draft, bar: str) -> Plan:
    steps, epochs, bare = draft.steps, draft.epochs, draft.bare
    if bar == "tqdm" and bare and (named := [c for c in steps if c.total is not None and c.sureness < counters.BARE]):
        steps, epochs = [c for c in steps if c not in named], epochs or named[:1]  # "Episode [1/3]: 7%|#| 1/13 ["
    if len(bare) > 1 and not epochs and not steps and not bar:
        epochs, bare = [bare[0]], bare[1:]
    if not steps and bare and (bare[-1].total is not None or draft.items):
        steps = [bare[-1]]
    for at, name in named_by_neighbours([(f.key.original, n) for f, n, _ in draft.items]).items():
        found, _, explicit = draft.items[at]
        draft.items[at] = (replace(found, key=replace(found.key, metric=name.canonical)), name, explicit)
    step = max(steps, key=lambda c: c.sureness) if steps else None
    epoch = epochs[0] if epochs else None
    fields = _accepted(draft, placed=bool(step or epoch))
    if bar and not any(f.key.name.measured and f.key.metric is None for f in fields):
        fields = ()  # a bar that shows nothing but its speed may count downloads or files
    if not bar and step is not None and step.total is not None and _are_meters(fields):
        fields, bar = tuple(replace(f, token=f.token if f.average is None else f.average) for f in fields), "meter"
    return Plan(fields, step, epoch, draft.rank, bar, draft.leftover, plain=not draft.described)


def _are_meters(fields: tuple[Field, ...]) -> bool:
    """Whether a line of an evaluation shows means so far: there the mean counts, and of all lines the last one.

    In training the value of the step counts: a mean since the start of the epoch hides what happens at a step.
    """
    return any(f.average is not None for f in fields) and all(f.key.group != TRAIN for f in fields
                                                              if f.key.name.canonical in EVALUATED)


def _accepted(draft: _Draft, placed: bool) -> tuple[Field, ...]:
    """The items that are metrics. A line with a counter is a record; one without must name what only a metric is."""
    count = len(draft.items)
    chatter = draft.leftover > 3 + 2 * count
    kept: list[tuple[Field, Name]] = []
    for item, name, explicit in draft.items:
        sure = name.known and name.measured and (not chatter or explicit)
        if sure or (placed and not chatter and (name.known or not _is_setting(item))):
            kept.append((item, name))
        elif not placed and draft.leftover <= 2 and (name.known or explicit) and not _is_setting(item):
            kept.append((replace(item, tentative=True), name))
    return tuple(_grouped(kept))


def _is_setting(item: Field) -> bool:
    return item.key.metric is None and "_".join(words(item.key.original)) in IGNORED


_OF_TRAINING = frozenset({"learning_rate", "grad_norm", "loss_scale", "weight_norm", "skipped_steps"})
"""What only training has, whatever else the line speaks of before it."""


def _grouped(kept: list[tuple[Field, Name]]) -> list[Field]:
    """Fields without a group join train, or validation where the line has only spoken of that before them."""
    fields: list[Field] = []
    seen: set[str] = set()
    for item, name in kept:
        group = item.key.group
        if not group:
            only_validation = seen == {VALIDATION} and name.canonical in EVALUATED
            group = VALIDATION if only_validation else TRAIN
        if name.canonical.split("/")[0] in _OF_TRAINING:
            group = TRAIN
        seen.add(group if item.key.group or name.canonical in EVALUATED else "")
        seen.discard("")
        fields.append(replace(item, key=replace(item.key, group=group)))
    return fields
