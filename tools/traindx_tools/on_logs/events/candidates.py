"""What may go along with something: each template, each value of its variables, each word that varies in it."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.events.collecting import PART, EventLog, Lines, places_of
from traindx_tools.on_logs.events.shapes import TOKEN, Mask
from traindx_tools.on_logs.roles import is_known
from traindx_tools.on_logs.run import Floats, Ints, Series

FEWEST = 3
"""Occurrences from which something can go along with anything."""
MOST_VALUES = 3_000
"""Values of one variable that are looked at, the most frequent ones."""
MOST_LINES = 5_000_000
"""Lines of a template up to which it is an event: one of more stands at nearly every record."""
LONG = 90
"""Characters of a line from which only the variable is told, with the word before it."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SHARES = (0.9, 0.95, 0.98)
_NAMED = re.compile(r"(?![-+~$(]?\.?0).*[^\W\d_]{3}")
"""A token that is a name with a counter in it (`gs://bucket/run/0.ckpt`), in place of a number with its unit."""
FEW = 20
"""Distinct values of a column up to which each is a threshold of its own (a bucket, a number of images)."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """`text`: as it is told. `lines`: where it stands, ascending. `kind`: "value", "word", "template" or "column"."""

    text: str
    lines: Lines
    kind: str
    template: int = -1
    series: Series | None = None
    """Of a column: the numbers, and below whether it is their high ones."""
    high: bool = True
    tried: int = 1
    """Thresholds that were looked at for it."""
    number: int | None = None
    """Of a column with another threshold: which candidate it was."""
    token: int = -1
    """Of a value or a word: where in its template it stands. Those of one template and token are siblings."""
    value: str = ""

    @property
    def origin(self) -> int:
        """The same for a candidate and for what was made of it."""
        return id(self) if self.number is None else self.number


def candidates(log: EventLog, series: Sequence[Series] = (), fewest: int = FEWEST) -> Iterator[Candidate]:
    """Everything in a log that occurs at least `fewest` times.

    `series`: numbers of the same log whose high and low values count as events. Those of a log that was thinned do not:
    more of them are known near anomalies than elsewhere, so that they would seem to go along.
    """
    by_mask = _lines_of(log)
    yield from (c for c in (*_values(log), *_words_and_templates(log, by_mask)) if len(c.lines) >= fewest)
    for s in series:
        yield from () if s.thinned else _extremes(s)


def _lines_of(log: EventLog) -> list[Lines]:
    """The lines of each mask; none for those of a template that is most of a very long log, and no event in it."""
    ids, of_template = log.of_masks(), np.array([m.template for m in log.masks], np.int64)
    masks = len(log.masks)
    counts = np.zeros(1 << 16, np.int64)
    for start in range(0, len(ids), PART):
        counts += np.bincount(ids[start: start + PART], minlength=1 << 16)
    counts = counts[:masks]
    seldom = np.bincount(of_template, counts, minlength=1)[of_template] <= MOST_LINES
    chosen = np.zeros(1 << 16, bool)
    chosen[:masks] = seldom
    lines = places_of(chosen[ids])
    order = lines[np.argsort(ids[lines], kind="stable")]
    edges = np.searchsorted(ids[order], np.arange(masks + 1))
    return [order[a:b] + 1 for a, b in itertools.pairwise(edges)]


def _values(log: EventLog) -> Iterator[Candidate]:
    example = {m.template: m for m in reversed(log.masks)}
    variables = {(m.template, v.number, v.mask): v for m in log.masks for v in m.variables}
    found: dict[tuple[int, int, str], list[Lines]] = defaultdict(list)
    for (template, token, mask), kept in log.kept.items():
        if kept.dropped or kept.count < 1:
            continue
        variable = variables[template, token, mask]
        values, lines = np.concatenate(kept.values), np.concatenate(kept.lines)
        order = np.argsort(values, kind="stable")
        distinct, starts, counts = np.unique(values[order], return_index=True, return_counts=True)
        for i in np.argsort(-counts, kind="stable")[:MOST_VALUES]:
            text = variable.text(int(distinct[i]))
            found[template, token, text].append(lines[order[starts[i]: starts[i] + counts[i]]])
    for (template, token, text), parts in found.items():
        lines = np.sort(np.concatenate(parts))
        yield Candidate(_told(log, example[template], {token: text}, log.templates.found[template].tokens), lines,
                        "value", template, token=token, value=text)


def _words_and_templates(log: EventLog, by_mask: Sequence[Lines]) -> Iterator[Candidate]:
    members: dict[int, list[int]] = defaultdict(list)
    for i, mask in enumerate(log.masks):
        members[mask.template].append(i)
    for template, masks in members.items():
        first = log.masks[masks[0]]
        every = np.sort(np.concatenate([by_mask[i] for i in masks]))
        yield Candidate(_told(log, first, {}, log.templates.found[template].tokens), every, "template", template)
        for token, held in enumerate(log.templates.found[template].tokens):
            words = defaultdict(list)
            for i in masks if held is None else ():
                words[log.masks[i].tokens[token]].append(i)
            named = sum(_NAMED.match(word) is not None for word in words if "0" in word)
            for word, having in words.items() if len(words) <= MOST_VALUES else ():
                lines = np.sort(np.concatenate([by_mask[i] for i in having]))
                if "0" not in word or (named > 1 and _NAMED.match(word)):
                    text = _told(log, log.masks[having[0]], {token: word.replace("0", "*")},
                                 _held(log, template, having))
                    yield Candidate(text, lines, "word", template, token=token, value=word)


def _held(log: EventLog, template: int, masks: Sequence[int]) -> list[str | None]:
    """The tokens that are the same in all lines of the template, or in all of some masks of it."""
    mine = zip(*(log.masks[i].tokens for i in masks), strict=True)
    return [of_all if of_all is not None or len({*here}) > 1 or "0" in here[0] else here[0]
            for of_all, here in zip(log.templates.found[template].tokens, mine, strict=True)]


def _extremes(series: Series) -> Iterator[Candidate]:
    """The highest and lowest values of a number that no rule knows: a length, a size, a share of a source."""
    values = series.values[series.finite]
    lines = series.line[series.finite]
    if is_known(series) or len(values) < 100:
        return
    levels = np.unique(values)
    if len(levels) < FEW:
        yield from _ends(series, values, lines, levels)
        return
    for share in _SHARES:
        for text, off, high in ((f"`{series.original}` at least {np.quantile(values, share):.4g}",
                                 values >= np.quantile(values, share), True),
                                (f"`{series.original}` at most {np.quantile(values, 1 - share):.4g}",
                                 values <= np.quantile(values, 1 - share), False)):
            if off.mean() <= 2 * (1 - share):
                yield Candidate(text, np.sort(lines[off]), "column", series=series, high=high)


def _ends(series: Series, values: Floats, lines: Ints, levels: Floats) -> Iterator[Candidate]:
    """The two highest and the two lowest of few values together, where these are seldom: one alone is a value."""
    if len(levels) < 4:
        return
    for bound, off, high, way in ((levels[-2], values >= levels[-2], True, "least"),
                                  (levels[1], values <= levels[1], False, "most")):
        if FEWEST <= off.sum() <= 2 * (1 - _SHARES[0]) * len(values):
            yield Candidate(f"`{series.original}` at {way} {bound:.4g}", np.sort(lines[off]), "column", series=series,
                            high=high)


def _told(log: EventLog, mask: Mask, fixed: dict[int, str], held: Sequence[str | None] | None = None) -> str:
    """The line with its variables left open, but for those that are given."""
    text, out, at = mask.example, [], 0
    spans = [m.span() for m in TOKEN.finditer(text)]
    shift = len(mask.tokens) - len(spans)  # tokens of the prefix
    for n, (a, b) in enumerate(spans, start=shift):
        varies = held is not None and 0 <= n < len(held) and held[n] is None
        out += [text[at:a], fixed.get(n, "*" if varies else _NUMBER.sub("*", text[a:b]))]
        at = b
    whole = _shown("".join([*out, text[at:]]))
    in_table = len(log.header.split(",")) == mask.example.count(",") + 1 > 2
    if fixed and (in_table or len(whole) > LONG or whole.count("*") > 4 or min(fixed) < shift):
        return _named(log, mask, *next(iter(fixed.items())))
    return f"`{whole[:LONG]}`"


def _shown(text: str) -> str:
    """The text of bytes, without what would reach a terminal as a command."""
    plain = text.encode("latin-1", "replace").decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in plain).split())


def _named(log: EventLog, mask: Mask, token: int, value: str) -> str:
    """A variable of a long line by the word before it, or by the column of the table that it stands in."""
    value = _shown(value)
    columns = log.header.split(",")
    if len(columns) > 2 and len(columns) == mask.example.count(",") + 1 and token < len(columns):
        return f"`{columns[token].strip()}={value}`"
    before = [t for t in mask.tokens[:token] if t not in (":", "-") and "0" not in t]
    return f"`{before[-1].rstrip(':')}={value}`" if before else f"`{value}`"
