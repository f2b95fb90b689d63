"""Classes or words of one part look like those of the others and are not equal to them.

A composed and a decomposed letter, a capital, a wide letter, a space behind: a person sees the same word, and a lookup,
a one-hot code or a comparison of splits sees another one. Told are those that match after the least normalising that
does it, where one part has one form and all others the other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut, cuts_of
from traindx_tools.on_data.places import listed, percent, place
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.summary import distinct
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.on_data.written_forms import Matched, counted, matched
from traindx_tools.rules import Rule, Threshold

CLASSES = 200
CLASS_LENGTH = 60
FEWEST = 5
CLASS_SHARE = 0.02
WORD_SHARE = 0.04
WORDS = 10
MORE = 5.0
MOST_TEXTS = 4000

RULE = Rule(
    id="D149",
    name="written-otherwise",
    title="Classes or words of one part only look like those of the others",
    severity=Severity.HIGH,
    sees="classes and words of texts by file, split and group, as they are and in normal forms",
    matters="Equal words become unequal: unknown classes, other tokens, scores that say nothing.",
    alike=(
        "Letters whose case is the class: both stand in the same part.",
        "Languages by file: their words match after no normalising.",
        "Beginnings of sentences: the word stands in both forms everywhere.",
    ),
    confirm=("Print the code points of the named pairs.", "Normalise a copy and count the classes again."),
    thresholds={
        "classes": Threshold(CLASS_SHARE, "share of the part's rows", "whose class matches only then"),
        "words": Threshold(WORD_SHARE, "share of the part's words", "that match only then, five times the other parts"),
        "level": Threshold(LEVEL, "probability", "that the part lacks the other form by chance"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each field, the first part of it that is written otherwise."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        fields = [n for n in data.fields if group and all(_is_text(s.columns.get(n), s.rows) for s in group)]
        cuts = list(_cuts(group, data)) if fields else []
        for name in fields:
            yield from _of_field(group, name, [c for c in cuts if c.by != name], view.comparisons)


def _is_text(column: Column | None, rows: int) -> bool:
    return column is not None and column.kind == "text" and len(column.texts) == rows and column.digests is not None


def _cuts(group: Sequence[Shard], data: DataSet) -> Iterator[Cut]:
    """As everywhere; two files are parts as well, since classes that do not match are plain."""
    cuts = list(cuts_of(group, data.labels))
    yield from sorted((c for c in cuts if c.origin), key=lambda c: c.by != "split")
    if len(group) == 2 and not any(c.by == "split" for c in cuts):
        names = tuple(s.name.rpartition("/")[2] for s in group)
        yield Cut("", names, tuple(np.full(s.rows, i, np.int64) for i, s in enumerate(group)), True)


def _of_field(group: Sequence[Shard], name: str, cuts: Sequence[Cut], comparisons: int) -> Iterator[Finding]:
    columns = [s.columns[name] for s in group]
    lengths = np.concatenate([c.values for c in columns])
    kinds = len(distinct(np.concatenate([c.digests[:MOST_TEXTS * 5] for c in columns if c.digests is not None])))
    classes = kinds <= CLASSES and float(np.median(lengths)) <= CLASS_LENGTH
    if not classes and kinds < 0.02 * len(lengths):
        return
    for cut in cuts:
        parts = [_items(columns, cut.member, p, not classes) for p in range(len(cut.names))]
        last = 1 - cut.names.index("train") if "train" in cut.names[:2] else 1
        found = _odd(parts, classes, comparisons * len(parts), last)
        if found is not None:
            yield _finding(group, name, cut, found[0], found[1], classes, sum(parts[found[0]].values()))
            return


def _items(columns: Sequence[Column], member: Sequence[Array], part: int, words: bool) -> Counter[str]:
    texts: list[str] = []
    for column, of in zip(columns, member, strict=True):
        rows = np.flatnonzero(of == part)
        step = max(1, -(-len(rows) // MOST_TEXTS)) if words else 1
        texts += [column.texts[i] for i in rows[::step]]
    return counted(texts, words)


def _odd(parts: Sequence[Counter[str]], classes: bool, comparisons: float, last: int) -> tuple[int, Matched] | None:
    """The part with the most that matches only after normalising; of two `last`, as training comes first."""
    every: Counter[str] = Counter()
    for p in parts:
        every.update(p)
    found = []
    for p in parts:
        others = Counter({w: n - p.get(w, 0) for w, n in every.items() if n > p.get(w, 0)})
        found.append(matched(p, others) if p and others else None)
    shares = [m.count / max(1, sum(p.values())) if m is not None else 0.0 for m, p in zip(found, parts, strict=True)]
    odd = max(range(len(parts)), key=lambda i: (shares[i], i)) if len(parts) > 2 else last
    best = found[odd]
    if best is None or best.count < FEWEST or shares[odd] < (CLASS_SHARE if classes else WORD_SHARE):
        return None
    if classes:
        chance = -sum(parts[odd].values()) * best.elsewhere + math.log(comparisons)
        return (odd, best) if chance < math.log(LEVEL) else None
    rest = max((s for i, s in enumerate(shares) if i != odd), default=0.0) if len(parts) > 2 else 0.0
    return (odd, best) if len(best.pairs) >= WORDS and shares[odd] >= MORE * rest else None


def _finding(
    group: Sequence[Shard], name: str, cut: Cut, part: int, found: Matched, classes: bool, total: int
) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == part).any())
    what = "classes" if classes else "words"
    unit = "rows" if classes else "words"
    pairs = listed([f"{a[:30]!a} for {b[:30]!a}" for a, b in found.pairs], 4)
    return RULE.finding(
        f"{len(found.pairs):,} {what} of {name} in {cut.told(part)} ({percent(found.count / max(1, total))} of its "
        f"{unit}) stand nowhere else as they are, and match those of the other parts after {found.form}: {pairs}",
        place(group[at], name),
        group[at].name,
        bearing=Bearing.CAUSE if classes else Bearing.SIGN,
        severity=None if classes else Severity.MEDIUM,
        measured={"field": name, "by": cut.by or "file", "part": cut.names[part], "matched": len(found.pairs),
                  "share": found.count / max(1, total), "repair": found.form, "kind": what},
    )
