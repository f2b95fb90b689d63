"""One text stands under two numbers: in another split or file, or in some rows of a file that was made from another.

Where the data hold a thing twice, as text and as a number (a table beside the arrays that were made from it, a name
beside its id), the rows say which number stands for which text. An encoder that was fitted to each split by itself
gives the same text another number there; a cache that was not made anew keeps the numbers of rows whose text has been
corrected since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.encodings import AGREE, FEWEST_ROWS, Encoding, are_indices, by_fields, encodings_of
from traindx_tools.on_data.places import place, rows, short
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

EACH = 3
"""Rows of a text on both sides from which its number is told."""
AGREEING = 2
"""Files of one split that agree, beside which one is told to be odd."""
SHOWN = 3

RULE = Rule(
    id="D162",
    name="two-numbers",
    title="The same text has another number in another part of the data",
    severity=Severity.HIGH,
    sees="columns of texts beside columns of whole numbers, in one file or in two with as many rows, by split and file",
    matters="The model answers with the numbers of training, and held-out rows mean something else by them.",
    alike=("Counts, ranks or measures of a text in each split: larger numbers than there are texts.",
           "A text that one split lacks, with the numbers of all others as they are."),
    confirm=("Print the texts and numbers of both named files side by side, each pair once.",),
    thresholds={
        "agree": Threshold(AGREE, "share of the rows", "whose text has its number: both hold the same thing"),
        "rows": Threshold(FEWEST_ROWS, "rows", "fewer say too little"),
        "each": Threshold(EACH, "rows", "of a text on both sides"),
        "level": Threshold(LEVEL, "probability", "that rows in another order agree so, over all pairs of fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each pair of fields whose numbers differ between parts, and for each file that is behind."""
    told: set[tuple[str, str]] = set()
    for found in by_fields(list(encodings_of(view))).values():
        if not are_indices(found):
            continue
        for usual, odd in _apart(found):
            if (odd.shard.name, odd.number.name) not in told:
                told.add((odd.shard.name, odd.number.name))
                yield _finding(usual, odd)
        for e in found:
            if e.shard is not e.source and len(e.exceptions) and (e.shard.name, e.number.name) not in told:
                told.add((e.shard.name, e.number.name))
                yield _behind(e, view)


def _apart(found: Sequence[Encoding]) -> Iterator[tuple[Encoding, Encoding]]:
    """Parts whose numbers are others: held out against training, and one file against siblings that agree."""
    train = [e for e in found if e.split == "train"]
    held = [e for e in found if e.split not in ("", "train")]
    if len({_key(e) for e in train}) == 1 or len(train) == 1:
        yield from ((train[0], e) for e in held if _moved(train[0], e))
    for split in dict.fromkeys(e.split for e in found):
        group = [e for e in found if e.split == split]
        for odd in group:
            others = [e for e in group if e is not odd]
            agree = len(others) >= AGREEING and not any(_moved(others[0], e) for e in others[1:])
            if agree and all(_moved(e, odd) for e in others):
                yield others[0], odd


def _key(e: Encoding) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(e.numbers.items()))


def _moved(usual: Encoding, odd: Encoding) -> list[int]:
    """Digests of the texts that both have and that have another number."""
    return [t for t, n in usual.numbers.items() if odd.numbers.get(t, n) != n
            and min(usual.rows[t], odd.rows[t]) >= EACH]


def _finding(usual: Encoding, odd: Encoding) -> Finding:
    moved = _moved(usual, odd)
    both = sum(t in odd.numbers for t in usual.numbers)
    shift = Counter(odd.numbers[t] - usual.numbers[t] for t in moved)
    by = shift.most_common(1)[0][0] if len(shift) == 1 and len(moved) > 1 else None
    shown = ", ".join(f"{usual.names[t][:40]!r} is {usual.numbers[t]} in {short(usual.shard)} and {odd.numbers[t]} in "
                      f"{short(odd.shard)}" for t in moved[:SHOWN])
    held = odd.split not in ("", "train") and usual.split == "train"
    count = sum(odd.rows[t] for t in moved)
    return RULE.finding(
        f"{odd.number.name} stands for {odd.text.name}{_of(odd)}, and {len(moved):,} of {both:,} texts have another "
        f"number in {short(odd.shard)} than in {short(usual.shard)}: {shown}; {count:,} rows",
        place(odd.shard, odd.number.name),
        odd.shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": odd.number.name, "text": odd.text.name, "moved": len(moved), "texts": both, "count": count,
                  "shift": by, "kind": "split" if held else "file", "shard": short(odd.shard),
                  "map": tuple((usual.names[t][:40], usual.numbers[t], odd.numbers[t]) for t in moved[:20])},
    )


def _of(e: Encoding) -> str:
    return "" if e.shard is e.source else f" of {short(e.source)} row by row"


def _behind(e: Encoding, view: View) -> Finding:
    """Some rows have the number of another text: by the files' times the numbers are older, or a remark."""
    written = [view.modified.get(c.file) for c in (e.number, e.text)]
    older = written[0] is not None and written[1] is not None and written[0] < written[1]
    numbers = {n: e.names[t] for t, n in e.numbers.items()}
    at = int(e.exceptions[0])
    said = int(e.number.values.reshape(-1)[at])
    return RULE.finding(
        f"{e.number.name} of {short(e.shard)} stands for {e.text.name} of {short(e.source)} row by row, but for "
        f"{len(e.exceptions):,} of {e.shard.rows:,} rows: {rows(e.shard, e.exceptions)}; the first is "
        f"{e.text.texts[at][:40]!r} and has the number of {numbers[said][:40]!r}"
        + (f"; {short(e.shard)} is older than {short(e.source)}" if older else ""),
        place(e.shard, e.number.name),
        e.shard.name,
        bearing=Bearing.SIGN,
        severity=Severity.MEDIUM if older else Severity.INFO,
        title="Some rows have a number that stands for another text",
        measured={"field": e.number.name, "text": e.text.name, "count": len(e.exceptions), "kind": "stale" if older
                  else "differs", "rows": tuple(int(i) for i in e.exceptions[:20]), "shard": short(e.shard)},
    )
