"""Texts of one part were decoded with another encoding than they were written in, or are still escaped.

UTF-8 that was read as Latin-1 or a code page, once or twice, gives its text back when it is written so and read as
UTF-8; other words do not do that by chance. Entities of HTML, escapes of JSON and of addresses are told where one part
holds them and no other does, and where the signs they stand for are missing in that part. Bytes that were replaced are
lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut, cuts_of, in_two
from traindx_tools.on_data.misread_text import LOST, Misread, misread
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.stretches import heaviest
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 5
INSIDE = 0.02
OUTSIDE = 0.1
MOSTLY = 0.8
MOST_TEXTS = 10_000
MOST_IN_ALL = 2**22
"""Characters of all texts of a field that are looked at."""
MOST_CHARACTERS = 1000
"""Of each text: it is misread throughout, or not at all."""
FIELDS = 8

RULE = Rule(
    id="D164",
    name="misread-text",
    title="Texts of one part were decoded with another encoding, or are still escaped",
    severity=Severity.HIGH,
    sees="stretches beyond ASCII of every text, written in eight encodings and read as UTF-8; entities and escapes",
    matters="The same words have other letters, and other tokens, in this part: a model learns both, or neither.",
    alike=(
        "Letters such as Ã and Â in words: no UTF-8 comes of them.",
        "Pages, code and addresses that hold entities and escapes by right: tags, raw signs or addresses stand beside.",
        "A few such words everywhere, as texts of the web have them: no part is told.",
    ),
    confirm=("Print the named text after the named repair beside the original.",
             "Search the program that made this part for the encoding with which it opened its files."),
    thresholds={
        "inside": Threshold(INSIDE, "share of the part's rows", "that show it"),
        "outside": Threshold(OUTSIDE, "of that share", "in all other parts together"),
        "mostly": Threshold(MOSTLY, "share of those rows", "that the repair gives back, and that come again"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts and fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each field and kind of damage."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        fields = [n for n in data.fields if group and all(_is_text(s.columns.get(n), s.rows) for s in group)]
        for name in fields[:FIELDS]:
            yield from _of_field(data, group, name, view.comparisons)


def _is_text(column: Column | None, rows: int) -> bool:
    return column is not None and column.kind == "text" and len(column.texts) == rows


def _of_field(data: DataSet, group: Sequence[Shard], name: str, comparisons: int) -> Iterator[Finding]:
    total = sum(int(np.minimum(s.columns[name].lengths, MOST_CHARACTERS).sum()) for s in group)
    step = max(1, -(-sum(s.rows for s in group) // MOST_TEXTS), -(-total // MOST_IN_ALL))
    rows = [np.arange(0, s.rows, step) for s in group]
    texts = [s.columns[name].texts[r][:MOST_CHARACTERS] for s, some in zip(group, rows, strict=True) for r in some]
    shard = np.concatenate([np.full(len(r), i) for i, r in enumerate(rows)])
    at = np.concatenate(rows)
    found = list(misread(texts))
    cuts = [c for c in [*cuts_of(group, data.labels), *in_two(group)] if c.by != name] if found else []
    told = False
    for seen in found:
        if told and seen.kind == "replaced":
            continue  # letters that the wrong encoding lacks are lost on the way
        clear = sum(h and LOST not in t for h, t in zip(seen.hits, texts, strict=True))
        if int(seen.hits.sum()) < FEWEST or (seen.repair and seen.whole.sum() < MOSTLY * max(FEWEST, clear)):
            continue
        part = _part(seen, texts, cuts, shard, at, comparisons)
        told |= part is not None
        if part is not None:
            yield _finding(group, name, seen, *part, shard, at)
        elif seen.kind in ("misread", "replaced") and _is_everywhere(seen, texts):
            yield _finding(group, name, seen, np.ones(len(texts), bool), None, -1, shard, at)


def _part(
    seen: Misread, texts: Sequence[str], cuts: Sequence[Cut], shard: Array, at: Array, comparisons: int
) -> tuple[Array, Cut | None, int] | None:
    """The part that holds most of them and its rows; a stretch where no part does. None where it is nobody's."""
    best: tuple[tuple[float, int], Array, Cut | None, int] | None = None
    for cut in cuts:
        member = np.array([cut.member[s][r] for s, r in zip(shard, at, strict=True)])
        share = np.array([seen.hits[member == p].mean() if (member == p).any() else 0.0 for p in range(len(cut.names))])
        own = np.flatnonzero(share >= max(INSIDE, 0.5 * share.max()))
        if len(own) == 1:
            inside = member == own[0]
            score = _score(seen, texts, inside, comparisons * len(cut.names) * len(cuts))
            if score is not None and (best is None or score > best[0]):
                best = score, inside, cut, int(own[0])
    stretch = heaviest(np.where(seen.hits, 1.0, -INSIDE)) if best is None else None
    if stretch is not None and stretch.rows < 0.8 * len(texts):
        inside = stretch.inside(len(texts))
        score = _score(seen, texts, inside, comparisons * len(texts) ** 2 / 2)
        best = (score, inside, None, -1) if score is not None else None
    return best[1:] if best is not None else None


def _score(seen: Misread, texts: Sequence[str], inside: Array, tries: float) -> tuple[float, int] | None:
    """How well a part is told by what it shows: the share of the hits that it holds, and fewer rows."""
    within, without = float(seen.hits[inside].mean()), float(seen.hits[~inside].mean()) if not inside.all() else 1.0
    count = int(seen.hits[inside].sum())
    if count < FEWEST or within < INSIDE or without > OUTSIDE * within or inside.mean() > MOSTLY:
        return None
    if share_tail(count, int(inside.sum()), max(without, 1.0 / len(texts))) * tries > LEVEL:
        return None
    if seen.kind in _SIGNS and not _lacks(texts, inside, seen, _SIGNS[seen.kind]):
        return None
    return count / float(seen.hits.sum()), -int(inside.sum())


_SIGNS = {"entities": "&", "escaped": "", "percent": ""}
"""What stands there once it is undone; "" for letters beyond ASCII."""


def _lacks(texts: Sequence[str], inside: Array, seen: Misread, sign: str) -> bool:
    """Whether what is escaped stands in all other parts as it is, and hardly in this one."""
    raw = np.array([(sign in t and not h) if sign else not t.isascii() for t, h in zip(texts, seen.hits, strict=True)])
    return bool(raw[~inside].sum() >= FEWEST and raw[inside].sum() <= OUTSIDE * seen.hits[inside].sum())


def _is_everywhere(seen: Misread, texts: Sequence[str]) -> bool:
    """Whether nearly all that is beyond ASCII was misread, in all parts."""
    high = sum(not t.isascii() for t in texts)
    return high >= 4 * FEWEST and seen.hits.sum() >= MOSTLY * high and seen.hits.mean() >= INSIDE


def _finding(
    group: Sequence[Shard], name: str, seen: Misread, inside: Array, cut: Cut | None, part: int, shard: Array, at: Array
) -> Finding:
    hits = np.flatnonzero(seen.hits & inside)
    first, last = int(hits[0]), int(hits[-1])
    odd = group[int(np.bincount(shard[hits]).argmax())]
    if cut is not None:
        where = cut.told(part)
    elif inside.all():
        where = "all parts"
    else:
        where = f"rows {int(at[first])}..{int(at[last])} of {short(group[int(shard[first])])}"
    before, after = seen.examples[first]
    shown = f"'{_printed(before)}' is '{_printed(after)}'" if seen.repair else f"'{_printed(before)}'"
    back = int(seen.whole[hits].sum())
    repair = "; what they were is lost"
    if seen.repair:
        repair = f"; {seen.repair} gives {back:,} of {len(hits):,} of them back"
    share = float(seen.hits[inside].mean())
    others = "" if inside.all() else f", and {percent(float(seen.hits[~inside].mean()))} of all others"
    rows = [int(i) for i in at[hits[shard[hits] == shard[first]]][:20]]
    return RULE.finding(
        f"{name} of {where}: {percent(share)} of the texts{others} {seen.told}: {shown}{repair}",
        place(odd, name),
        odd.name,
        bearing=Bearing.CAUSE,
        severity=Severity.MEDIUM if inside.all() or seen.kind not in ("misread", "replaced") else None,
        measured={"field": name, "kind": seen.kind, "repair": seen.repair, "share": share, "count": len(hits),
                  "before": before, "after": after, "rows": tuple(rows), "shard": short(odd),
                  "by": "" if cut is None else cut.by or "file", "part": "" if cut is None else cut.names[part]},
    )


def _printed(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
