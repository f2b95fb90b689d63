"""Reads one line of free text: which of its numbers are counters, which are metrics, which are neither.

A line is cut into text and numbers. What the text says is worked out once for each shape of line (a `Plan`); lines of
the same shape, which is nearly all of a log, then only cost a lookup and the conversion of their numbers.
"""

from __future__ import annotations

import re
from dataclasses import replace

from traindx_tools.on_logs.readers import counters
from traindx_tools.on_logs.readers.languages import COUNTED_OF, in_english
from traindx_tools.on_logs.readers.line_names import (
    EDGE,
    named_in_brackets,
    note_announced,
    note_groups,
    of_last_sentence,
    read_metric,
    unname_groups,
)
from traindx_tools.on_logs.readers.line_plans import NOTHING, Counter, Draft, Field, Plan
from traindx_tools.on_logs.readers.line_tokens import glued, in_a_name, in_order, names_first, unit_behind, unwrapped
from traindx_tools.on_logs.readers.names import IGNORED, TRAIN, VALIDATION, Name, group_word, identify, words
from traindx_tools.on_logs.readers.numbers import may_be_scaled, unit, value, whole
from traindx_tools.on_logs.readers.pairs import EVALUATED, is_accuracy_beside, named_by_neighbours, named_pair
from traindx_tools.on_logs.readers.recorder import Key

MAX_TOKENS = 1_000
"""Numbers looked at in one line."""
_MAX_GAP = 300
"""Characters before a number in which its name is looked for."""
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
_TAIL = re.compile(
    r"(?P<head>.*?)\s*(?P<conn>=>|->|:=|[=:≈]|)\s*"
    r"(?:(?:tensor|array|Array|Tensor|(?:np|numpy|jnp)\.\w+|float|DeviceArray)\()?[\[({'\"#$]*\s*$", re.DOTALL)
_TAIL_SIGNS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "=>-:≈[({'\"#$"
_DRAWING = re.compile(r"\[[=>.#*~ \-]{3,}\]|[=#*~\-]{3,}>?")
"""A bar or a rule drawn with signs: "[====>....]" is no comparison and "----" no option."""
_WRAPPER = re.compile(r"\b(?:tensor|array|Array|Tensor)\([^()]*?(?=,|\))")
"""A value printed as the array that it is: its arguments make no call of it."""
_SEPARATOR = re.compile(r"[,;|•·│┃║{}\[\]\t=]|\s[-–—>»→]+\s|\s{2,}|:\s|\)\s|\s\(")
_NAMED_UNIT = re.compile(r"\s\((?:[munµ]?s|sec|seconds|[KMGT]i?B|%|[\w]+/[\w/]+)\)$")
"""A unit in the name: "elapsed time per iteration (ms)"."""
_SPACED = re.compile(r"\s[:=>-]+\s*\S?\s*$")
"""A connector with a space before it belongs to all the words before it: "best val loss = "."""
_SIGNED = re.compile(r"[A-Za-z0-9)][+-]=$")
"""A name that ends in a sign: the distances of pairs that belong together and that do not."""
_LOCATION = re.compile(r"\(\w[\w.]*:$")
"""Which line of the program wrote this: "(trainer:779)"."""
_IN_PATH = re.compile(r"[A-Za-z.]/$")
"""Before a number that is a folder of a path: "./exp/0125/car"."""
_BETWEEN = re.compile(r"[\s,;|/]{1,4}")
"""What stands between the values of a list."""
_RATIO = re.compile(rf"([kKMGBT]?)\s*(?:/|of|out of|{'|'.join(COUNTED_OF)})\s*$")
_COUNTED = re.compile(r"\s+(steps|iterations|iters|updates|epochs|batches|episodes)\b")
_PLURAL = {"steps": "step", "iterations": "iteration", "iters": "iter", "updates": "update", "epochs": "epoch",
           "batches": "batch", "episodes": "episode"}
_OF_SETTINGS = frozenset({"accumulation", "accum", "accumulate", "warmup", "warm-up", "max", "maximum"})
"""Words that make a setting of a word that counts."""
_TQDM = re.compile(r"(?<!\d)\d+%\|[^|]{0,400}\| ?[\d.?]+\w?/|[━╸╺]{5,}")
_KERAS = re.compile(r"^\s*\d[\d.]*[kKMGBT]?/(?:(?:\d[\d.]*[kKMGBT]?|Unknown)\s+"
                    r"(?:[━╸╺]|\[[=>.]+\]|[\d:hms]+ [\d.]+[mu]?s/step - )|Unknown\s+-\s)")
_FAMILIES = frozenset({"grad_norm", "loss", "weight_norm"})


def plan_line(parts: list[str], group: str | None = None) -> Plan:
    """What the numbers of a line mean. `parts` as of `split`; `group` is what the lines before have said."""
    if len(parts) < 3:
        return NOTHING
    parts = unwrapped(in_order(parts))
    text = "".join(parts)
    if len(parts) > 2 * MAX_TOKENS or _NO_METRICS.search(_DRAWING.sub(" ", _WRAPPER.sub("", text[:_MAX_LOOK]))):
        return NOTHING
    parts = names_first(parts) or parts
    draft = Draft(group=group, parts=parts)
    _read_tokens(parts, draft)
    bar = "keras" if _KERAS.match(text) else "tqdm" if _TQDM.search(text) else ""
    return _finish(draft, bar)


def _read_tokens(parts: list[str], draft: Draft) -> None:
    gap, at = parts[0], 1
    while at < len(parts):
        token, after = parts[at], parts[at + 1]
        if at + 2 < len(parts) and (named := in_a_name(gap, token, after)) is not None:
            gap, at = named, at + 2
            continue
        found, used = unit_behind(after, last=at + 2 >= len(parts))
        total, scale = None, _scale(found, token)
        ratio = _RATIO.fullmatch(after) if at + 2 < len(parts) and (not used or scale != 1.0) else None
        ratio = None if ratio is not None and ratio[1] and not may_be_scaled(token) else ratio
        if ratio is not None and value(parts[at + 2]) is not None:
            total, after = at + 2, parts[at + 3]
            found, used = unit_behind(after, last=at + 4 >= len(parts))
            own = unit(ratio[1], glued=True)
            draft.scales = (1.0 if own is None else own[1], _scale(found, parts[total]))
            found = found if own is None else own
        else:
            draft.scales = (scale, 1.0)
        if value(token) is None or glued(after, used) or _is_no_count(found, parts[total or at]):
            draft.leftover += len(gap.split())
        else:
            _read_one(draft, gap, at // 2, None if total is None else total // 2, found, token, after)
        gap = after[used:]
        at = (total or at) + 2
    draft.leftover += sum(1 for w in gap.split() if any(c.isalpha() for c in w))
    note_groups(draft, gap)


def _scale(found: tuple[str, float] | None, token: str) -> float:
    """What a number is times that has k, M or G right behind it; 1 for any other."""
    return found[1] if found is not None and found[0] == "count" and may_be_scaled(token) else 1.0


def _is_no_count(found: tuple[str, float] | None, token: str) -> bool:
    """Whether what stands behind a number would count thousands of a power of ten: "1e-4k"."""
    return found is not None and found[0] == "count" and "e" in token.lower()


def _tail(gap: str) -> tuple[str, str]:
    """The text before a number without its connector, and that: found from the end, where no call may stand there."""
    least = len(gap.rstrip(_TAIL_SIGNS))
    found = _TAIL.match(gap, 0 if "(" in gap[least:] else least)
    head, conn = (gap[:found.end("head")], found.group("conn")) if found else (gap, "")
    return head.rstrip("'\"`"), conn


def _read_one(draft: Draft, gap: str, token: int, total: int | None, found: tuple[str, float] | None,
              text: str, after: str) -> None:
    gap = gap[-_MAX_GAP:]
    if (_LOCATION.search(gap) and after.startswith(")")) or (_IN_PATH.search(gap) and after.startswith("/")):
        return
    bracketed_name = named_in_brackets(gap)
    head, conn = (f"{gap[:gap.rindex('[')]}{bracketed_name}", ":") if bracketed_name else _tail(gap)
    in_unit = _NAMED_UNIT.search(head)
    head = head[:in_unit.start()] if in_unit else head
    pieces = [p.strip(EDGE) for p in _SEPARATOR.split(head)]
    phrase = of_last_sentence(_balanced(pieces[-1]).split())
    if conn in ("=", ":=", "=>", "->") and len(phrase) > 1 and not _SPACED.search(gap) and not _one_name(phrase):
        pieces.insert(-1, " ".join(phrase[:-1]))
        phrase = phrase[-1:]
    if any(c in gap for c in "|;") or len(pieces) > 3:
        draft.family = ""
    for piece in pieces[:-1]:
        note_groups(draft, piece)
        if identify(piece).canonical in _FAMILIES and f"{piece}:" in gap:
            draft.family = piece  # "grad norms: enc 0.1 dec 0.2"
        draft.leftover += sum(1 for w in piece.split() if any(c.isalpha() for c in w))
    phrase = [w for w in phrase if any(c.isalpha() for c in w)]
    note_announced(draft, pieces[:-1], phrase, gap)
    if phrase and _SIGNED.search(gap):  # "d+=0.36 d-=1.22": two metrics
        phrase[-1] = phrase[-1].rstrip("+-") + ("_plus" if gap.rstrip("= ").endswith("+") else "_minus")
    second = "" if total is None else draft.parts[2 * total + 1]
    full = [*phrase, in_unit.group().strip()] if in_unit else phrase
    pair = None if total is None or not phrase else named_pair(full, text, second, after[:1] == "%")
    if total is not None and pair is not None:
        read_metric(draft, pair[0], token, None, None, conn, text, "", "")
        read_metric(draft, pair[1], total, None, None, conn, second, "", after)
        return
    bracketed = gap.rstrip().endswith("[") and whole(text) is not None
    if (total is not None or bracketed) and phrase and all(group_word(w) for w in phrase):  # "Test: [ 1/196]"
        note_groups(draft, " ".join(phrase))
        phrase, gap = [], "[" if bracketed else gap
    if phrase and all(group_word(w) for w in phrase) and whole(text) is not None and _counts_batches(draft, token):
        note_groups(draft, " ".join(phrase))
        draft.epochs.append(Counter(token, None, 0))  # "Train: 3 [ 10/196]"
        return
    if phrase and phrase[-1].lower() in ("after", "at", "for") and _COUNTED.match(after):  # "after 300 steps"
        draft.leftover += len(phrase)
        phrase = []
    if found and found[0] == "percent" and after.startswith("%|") and conn != "=":  # how far a bar is
        note_groups(draft, " ".join(phrase))
        draft.described = draft.described or bool(phrase)
        return
    if phrase == ["xla"] and conn == ":" and whole(text) is not None:  # a device of torch_xla, xla:ordinal or xla:0/5
        draft.rank = token if total is None else total
    elif not phrase:
        _read_nameless(draft, token, total, found, gap, text, after)
    elif in_unit or _lasts(found, after) or not _read_counter(draft, phrase, token, total, text, conn):
        if gap.endswith("#"):
            note_groups(draft, " ".join(phrase))
            return  # which one of several: "Testing net (#0)"
        phrase += [in_unit.group().strip()] if in_unit else []
        over = total if draft.scales == (1.0, 1.0) else None
        read_metric(draft, phrase, token, over, found, conn, text, gap, after)


def _counts(draft: Draft, text: str) -> bool:
    """Whether a number may be a count: a whole one, or any of so many thousands ("1.5k")."""
    return whole(text) is not None or draft.scales[0] != 1.0


def _counter(draft: Draft, token: int, total: int | None, sureness: int, word: str = "") -> Counter:
    return Counter(token, total, sureness, word, draft.scales)


def _counts_batches(draft: Draft, token: int) -> bool:
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


def _read_nameless(draft: Draft, token: int, total: int | None, found: tuple[str, float] | None, gap: str,
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
    elif not _counts(draft, text) or (found and draft.scales == (1.0, 1.0)) or (
            draft.items and gap.rstrip().endswith("(") and _COUNTED.match(after)):
        return  # "val_loss 4.739 (250 batches)": of how many batches it is the mean, not where it stands
    elif total is not None and (token == 0 or not gap.endswith("(")):
        draft.bare.append(_counter(draft, token, total, counters.BARE))
    elif _opens(draft, token, gap.strip(), after) or (
            draft.scales[0] != 1.0 and token == 0 and gap.strip() == "[" and after[1:2] == "]"):  # "[12k] "
        draft.bare.append(_counter(draft, token, None, counters.BARE))
    else:
        counted = _COUNTED.match(after)
        if counted and counted.group(1) in _PLURAL:
            _read_counter(draft, [_PLURAL[counted.group(1)]], token, None, text, ":")


def _repeats(draft: Draft, token: int, metric: str) -> bool:
    """Whether a rate in brackets is the mean of the one before: "300.8/s  (3.404s, 290.8/s)"."""
    text = "".join(draft.parts[:2 * token + 1])
    return text.count("(") > text.count(")") and any(i[0].key.metric == metric for i in draft.items)


def _is_average(draft: Draft, token: int, gap: str, text: str, after: str,
                found: tuple[str, float] | None) -> bool:
    """Whether a number in brackets behind a metric is its mean so far, as meters print: "Acc@1: 0.0000 (11.1111)"."""
    beside = bool(draft.items) and draft.items[-1][0].token == token - 1
    return (beside and gap.strip() == "(" and after[:1] == ")" and not found and whole(text) is None
            and value(text) is not None)


def _read_layer(draft: Draft, token: int) -> None:
    """One more value under the name of several: the layers are numbered from 0."""
    first, name, explicit = draft.items[draft.vector]
    if first.key.metric is None:
        first = replace(first, key=replace(first.key, original=f"{first.key.original} 0",
                                           metric=f"{name.canonical}/0"))
        draft.items[draft.vector] = (first, name, explicit)
    layer = len(draft.items) - draft.vector
    written = f"{first.key.original[:-2]} {layer}"
    draft.items.append((replace(first, token=token, key=replace(first.key, original=written,
                                                                metric=f"{name.canonical}/{layer}")), name, explicit))


def _opens(draft: Draft, token: int, before: str, after: str) -> bool:
    """Whether a number without a name stands at the head of a line as a counter: "[100] ", "[2, 2000]", "1|20|"."""
    if token == 0:
        return before in ("", "[", "(", "#") and re.match(r"\s*[\]):|,]|\s+[A-Za-z]", after) is not None
    return token == 1 and before in (",", "|", "][") and len(draft.bare) == 1 and after.lstrip()[:1] in ("]", "|")


def _read_counter(draft: Draft, phrase: list[str], token: int, total: int | None, text: str, conn: str) -> bool:
    """Whether the phrase names a counter: then it is noted, unless the number cannot be one."""
    last = re.sub(r"\(.*\)$", "", phrase[-1]).lower()
    joined = "_".join(w.lower() for w in phrase[-2:])
    if _OF_SETTINGS.intersection(w.lower() for w in phrase[:-1]):
        return False  # "gradient accumulation steps: 4" is a setting
    plural = last in _PLURAL and (total is not None or (token == 0 and conn == ":"))
    kind = counters.counter_kind(joined) or counters.counter_kind(_PLURAL[last] if plural else last)
    readable = value(text) is not None if kind and kind[0] == counters.EPOCH else _counts(draft, text)
    if kind is None or (last in _PLURAL and not plural) or (len(phrase) > 1 and (not readable or "per" in phrase)):
        return False
    if len(phrase) > 1:
        note_groups(draft, " ".join(phrase[:-1]))
        draft.leftover += len(phrase) - 1
    note_groups(draft, phrase[-1][len(last):])
    if not readable:
        return True
    counter = _counter(draft, token, total, kind[1], last)
    if kind[0] == counters.RANK:
        draft.rank = token
    else:
        (draft.epochs if kind[0] == counters.EPOCH else draft.steps).append(counter)
    return True


def _finish(draft: Draft, bar: str) -> Plan:
    steps, epochs, bare = draft.steps, draft.epochs, draft.bare
    if bar == "tqdm" and bare and (named := [c for c in steps if c.total is not None and c.sureness < counters.BARE]):
        steps, epochs = [c for c in steps if c not in named], epochs or named[:1]  # "Episode [1/3]: 7%|#| 1/13 ["
    if len(bare) > 1 and not epochs and not steps and not bar:
        epochs, bare = [bare[0]], bare[1:]
    if not steps and bare and (bare[-1].total is not None or draft.items):
        steps = [bare[-1]]
    unname_groups(draft)
    for at, name in named_by_neighbours([(f.key.original, n) for f, n, _ in draft.items]).items():
        found, _, explicit = draft.items[at]
        draft.items[at] = (replace(found, key=replace(found.key, metric=name.canonical)), name, explicit)
    step = max(steps, key=lambda c: (c.sureness, c.total is None)) if steps else None  # "iter[14/15] | [step] 29"
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


def _accepted(draft: Draft, placed: bool) -> tuple[Field, ...]:
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
