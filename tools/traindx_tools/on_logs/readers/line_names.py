"""Names the values of one line of free text: which words before a number are its name, and what its unit says."""

from __future__ import annotations

import re
from dataclasses import replace

from traindx_tools.on_logs.readers import counters
from traindx_tools.on_logs.readers.line_plans import Draft, Field
from traindx_tools.on_logs.readers.names import GROUPS, IGNORED, TRAIN, Name, group_word, identify, words
from traindx_tools.on_logs.readers.numbers import as_memory
from traindx_tools.on_logs.readers.pairs import EVALUATED
from traindx_tools.on_logs.readers.recorder import Key

EDGE = "'\"`*-–—>»→•#.!,:/\\ \t_~<█▏▎▍▌▋▊▉━╸╺=?"
STOP = frozenset({
    "a", "about", "after", "all", "an", "and", "another", "are", "around", "as", "at", "be", "between", "by", "did",
    "down", "every", "first", "for", "from", "has", "have", "in", "is", "its", "last", "next", "no", "not", "nr",
    "number", "of", "on", "only", "or", "over", "per", "since", "than", "the", "to", "took", "until", "up", "using",
    "version", "was", "were", "with", "within",
})
_JOINING = frozenset({
    "a", "about", "after", "an", "and", "around", "as", "at", "between", "by", "for", "from", "in", "is", "of", "on",
    "or", "over", "per", "since", "than", "the", "to", "until", "up", "was", "with", "within",
})
"""Words that join others and name nothing, whatever unit stands behind the number: "512000 in 1.2 seconds"."""
_ITEMS_FOLLOW = re.compile(r"\s+(?:rows|samples|examples|images|sentences|sequences|batches|files|records|items|clips|"
                           r"documents|windows|points|patients|users)\b")
_LISTED = re.compile(r"\s*[,;|]")
"""What ends a list: the name before it is not that of what follows."""
_BRACKETED = re.compile(r"\[[ ]*([^\W\d][\w /.@-]{0,40}?)[ ]*\][ ]*$")
_SENTENCE = re.compile(r"[^\W\d_]{5,}\.|[\w/]+/[\w/]+\.")
"""A word that ends a sentence; a shorter one may be cut short: "Val. Loss"."""
_EXPONENT = re.compile(r"\d\.?\d*[eE]$")
_OF_CLASSES = frozenset({"dice", "iou", "accuracy", "f1", "precision", "recall", "auc"})
"""Scores of which a list holds one a class."""
_VECTOR = frozenset({"perplexity", "codebook_perplexity", "codebook_used"})


def named_in_brackets(gap: str) -> str:
    """The name of a metric or counter that stands in brackets of its own before its value: "[loss] 0.52 [step] 14"."""
    found = _BRACKETED.search(gap)
    name = found[1] if found else ""
    known = bool(name) and group_word(name) is None and (
        counters.counter_kind(name.lower()) is not None or identify(name).known)
    return name if known else ""


def of_last_sentence(phrase: list[str]) -> list[str]:
    """Without the words of a sentence that has ended: "414236.66 records/second. Loss is 1.5"."""
    for at in range(len(phrase) - 1, 0, -1):
        word, begins = phrase[at - 1], phrase[at][:1].isupper()
        if word.endswith(("...", "…")):
            return phrase[at:]
        if begins and _SENTENCE.fullmatch(word) and not group_word(word[:-1]) and not identify(word[:-1]).known:
            return phrase[at:]
    return phrase


def note_groups(draft: Draft, text: str) -> None:
    """The last word that names a group, such as "val", says which group is spoken of."""
    for word in text.split():
        found = group_word(word.strip("()[]:'\"|,*_-"))
        draft.group = found or draft.group


def read_metric(draft: Draft, phrase: list[str], token: int, total: int | None, found: tuple[str, float] | None,
                conn: str, text: str, gap: str, after: str) -> None:
    """A number with a phrase before it becomes an item under the name in the phrase, unless that names no metric."""
    started = not conn and "from" in (w.lower() for w in phrase[:-1])  # "Start training from score -0.52"
    named = None if started else _of_groups(draft, phrase) or _of_family(draft, _choose_name(draft, phrase))
    draft.of_groups = _metric_of(named[0]) if named is not None and not conn else ""
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
    unnamed = found is None or found[0] in ("time", "memory", "count", "percent")  # a rate names itself
    if not conn and unnamed and all(w.lower() in _JOINING for w in spelled):
        draft.leftover += len(spelled)
        return
    metric, factor = _converted(name, found, written)
    filler = spelled[-1].lower().strip("():") in STOP and not (conn and spelled[-1].isupper())  # "PER: 20.5" is none
    if metric is None and not name.known and (snake in IGNORED or filler):
        draft.leftover += len(spelled)
        return
    over = total if name.canonical.startswith("accuracy") else None
    spoken_of = draft.spoken_of if name.canonical in EVALUATED else None
    key = Key(written, name.group or spoken_of or draft.group or "", metric=metric)
    draft.spoken_of = group or spoken_of
    draft.items.append((Field(token, key, factor, over), name, conn != ""))
    listed = gap.rstrip().endswith("[") and name.canonical in _OF_CLASSES
    several = listed or (name.canonical == "grad_norm" and (
        snake.endswith("norms") or gap.rstrip().endswith(("[", "("))))
    draft.vector = len(draft.items) - 1 if several else -1
    if total is not None and name.canonical in _VECTOR:
        size = Key("codebook_size", key.group)
        draft.items.append((Field(total, size), identify("codebook_size"), True))


def _of_groups(draft: Draft, phrase: list[str]) -> tuple[str, Name, int] | None:
    """A group alone, behind the value of another group of one metric or behind a name that is none of the line's loss.

    "accuracy train 0.9 test 0.8" says no loss of the test, nor does "loss 3.9 c-index train 0.4" another of training.
    """
    metric = draft.announced or draft.of_groups
    if len(phrase) == 1 and metric and group_word(phrase[0]):
        written = f"{metric} {phrase[0]}"
    elif len(phrase) == 2 and group_word(phrase[1]) and any(n.canonical == "loss" for _, n, _ in draft.items) and not (
            group_word(phrase[0]) or identify(phrase[0]).known or phrase[0].lower() in STOP | IGNORED):
        written = " ".join(phrase)
    else:
        return None
    return written, identify(written), 0


def note_announced(draft: Draft, pieces: list[str], phrase: list[str], gap: str) -> None:
    """Keeps the metric that is written once before its groups, until something else than a further group is named.

    "acc: train 0.5 val 0.6", "f1 [train 0.5, val 0.6]", "loss train=0.7 val=0.8"; "results: train 0.7" names none.
    """
    group = group_word(phrase[0]) if len(phrase) == 1 else None
    before = next((p for p in reversed(pieces) if p), "") if group else ""
    named = _choose_name(draft, before.split()) if before.strip() else None  # a separator of lines may be all of it
    if named is not None and not _LISTED.match(gap[gap.rfind(before) + len(before):]) and _may_announce(draft, named):
        draft.announced, draft.groups_of = named[0], frozenset()
        draft.leftover -= sum(1 for w in named[0].split() if any(c.isalpha() for c in w))
    elif group is None or group in draft.groups_of:
        draft.announced = draft.of_groups = ""
        draft.groups_of = frozenset()
    if group and draft.announced:
        draft.groups_of |= {group}


def _may_announce(draft: Draft, named: tuple[str, Name, int]) -> bool:
    """Whether a name may be that of the values of groups: a known one, and behind a loss or another such one any."""
    written, name, _ = named
    if counters.counter_kind(written.lower()) or group_word(written.split()[0]) or written.lower() in STOP | IGNORED:
        return False
    beside = bool(draft.announced) or any(n.canonical == "loss" for _, n, _ in draft.items)
    return name.known or (beside and written.isidentifier())


def _metric_of(written: str) -> str:
    """What stands before a group at the end of a name."""
    metric, _, group = written.rpartition(" ")
    return metric if metric and group_word(group) and not group_word(metric) else ""


def _of_family(draft: Draft, named: tuple[str, Name, int] | None) -> tuple[str, Name, int] | None:
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


def unname_groups(draft: Draft) -> None:
    """Values under groups alone are no losses where the loss of the training is named beside one of the training:
    "Loss: 1.21, Train: 0.58, Val: 0.52"."""
    alone = [i for i, (f, _, _) in enumerate(draft.items) if f.key.metric is None and group_word(f.key.original)]
    groups = {draft.items[i][0].key.group for i in alone}
    named = any(n.canonical == "loss" and i not in alone and f.key.group in (TRAIN, "")
                for i, (f, n, _) in enumerate(draft.items))
    if named and TRAIN in groups and len(groups) > 1:
        for i in alone:
            item, _, explicit = draft.items[i]
            draft.items[i] = (replace(item, key=replace(item.key, metric="value")),
                              Name("value", item.key.group, False, False), explicit)


def _choose_name(draft: Draft, phrase: list[str]) -> tuple[str, Name, int] | None:
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
        written = " ".join(phrase[start:]).strip(EDGE)
        name = identify(written)
        if name.known and len(written) <= 80:
            note_groups(draft, " ".join(phrase[:start]))
            return written, name, start
    written = " ".join(phrase).strip(EDGE)
    if len(phrase) > 5 or len(written) > 80 or not written or "\\" in written or re.search(r"\.(?:py|pt|json|txt)\b",
                                                                                          written):
        return None
    return written, identify(written), 0


_OF_TIME = re.compile(r"time|elapsed|\beta\b|latency|duration")
"""Of canonical names, those of times."""


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
    unknown = not name.known or snake in GROUPS  # a group alone is its loss, but not in seconds
    if kind == "time" and unknown and snake not in IGNORED and counters.counter_kind(written.lower()) is None:
        return f"time/{snake or 'value'}", factor  # "total: 1240ms" is no loss, whatever its name, nor is "train 4.2s"
    if kind == "time" and name.known and not unknown and not _OF_TIME.search(name.canonical):
        return None, name.factor  # an error in minutes stays as it is written: "rmse 3.257 min"
    if kind in ("time", "count"):
        counted = counters.counter_kind(written.lower()) if kind == "time" else None
        return (None if counted is None else f"{counted[0]}_time"), factor
    return (None if name.known and name.canonical != "step_time" else kind), factor
