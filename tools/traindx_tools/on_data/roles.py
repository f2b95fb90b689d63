"""What a field is for, by its values: classes, ids of rows, inputs. Names decide only about groups and times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.names import split_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import distinct

MOST_CLASSES = 200
"""Distinct values above which a field is no label of classes whose means could be compared."""
ROWS_PER_CLASS = 5
"""Rows a class needs on average."""
MOST_SPLIT_WORDS = 8
"""Distinct words of a column of splits: train, valid, test, and those with a number."""
FEWEST_IDS = 8
"""Values on each side of a split from which on it tells that they are ids."""
SHARED = 0.1
MOST_FIRST = 2000
"""Rows that say first that a number is none of the rows: all others are looked at where they leave it open."""
_GROUP = re.compile(
    r"(^|[_.])(subject|patient|speaker|participant|person|scene|session|record|recording|document|doc|group|"
    r"cluster|family|source|sequence|video|clip|author)(_?(id|ids|idx|index|key|name))?$",
    re.IGNORECASE,
)
_GROUP_ID = re.compile(
    r"(^|[_.])(user|customer|client|member|household|donor|animal|mouse|plant|device|machine|engine|player|student|"
    r"person|visit|study|case|slide|wafer|account|employee|driver|vehicle|trip|order|well|family|"
    r"molecule|scaffold|protein|cell_line|track|album|artist|house|property)_?(id|ids|idx|key|no|nr|num|number|code|name|uuid)$"
    r"|(^|[_.])(mrn|pid|uid|subj|sid|gid)$",
    re.IGNORECASE,
)
"""Words that may be classes or features as well; with an id behind them they are none."""
_TARGET = re.compile(
    r"(^|_)(y|label|labels|target|targets|class|outcome|response|churn|churned|default|defaulted|fraud|is_fraud|"
    r"survived|diagnosis|readmitted|converted|died|mortality)$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ID = re.compile(r"(^|[_.])(id|key|code|hash|uuid|no|nr)$|[a-z]id$", re.IGNORECASE)
_TIME = re.compile(r"(^|[_.])(time|timestamp|date|datetime|ts|day|epoch_time)s?$", re.IGNORECASE)

_READING = re.compile(
    r"hz|khz|fs|sr|fps|rate|hop|ms|us|ns|secs?|seconds|units?|scale|gain|factor|offset|order|layout|axes|axis|dims|bands?|"
    r"channels?|leads|columns|features|tz|timezone|zone|utc|resolution|spacing|pixel|um|mm|cm|km|bits|depth|dtype|window|"
    r"stride|nodata|fill|encoding|colou?r|colou?rspace|convention|datum|crs|srs|epsg|db|polarity|endian|byteorder|degrees|"
    r"radians|adc|lsb|bandwidth|sampling|interval|period|base|zero|calibration", re.IGNORECASE)
"""Words of properties that tell how the numbers of a file are to be read."""
_MOMENT = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T]|\s*$)|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}\b|\d{1,2}:\d{2}(:\d{2}|\s*$))"
)
"""The beginning of a date or a time of day."""


LEVEL_WORDS = frozenset({"trace", "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal"})
"""How grave a record of a log is."""


def tells_reading(name: str) -> bool:
    """Whether a property of this name says how numbers are to be read: a rate, a unit, an order of channels."""
    last = _CAMEL.sub("_", name.rsplit(".", 1)[-1])
    return any(map(_READING.fullmatch, re.split(r"[^A-Za-z]+", last)))


def starts_as_moment(text: str) -> bool:
    """Whether a text begins with a date or a time of day."""
    return _MOMENT.match(text) is not None


def is_group(name: str) -> bool:
    """Whether a field is called as the subjects or documents are that several rows come from."""
    plain = _CAMEL.sub("_", name)
    return _GROUP.search(plain) is not None or _GROUP_ID.search(plain) is not None


def is_id_name(name: str) -> bool:
    """Whether a field is called as ids of any kind are."""
    return is_group(name) or _ID.search(_CAMEL.sub("_", name)) is not None


FEWEST_STEPS = 8
"""Numbers by whose distances a measure is told from classes."""


def is_target(name: str) -> bool:
    """Whether a field is called as what is to be predicted is."""
    return _TARGET.search(name) is not None


def is_time(name: str) -> bool:
    """Whether a field is called as times are."""
    return _TIME.search(name) is not None


def is_label(column: Column) -> bool:
    """Whether the values are few kinds that recur: whole numbers or texts, one a row."""
    if column.rows < 2 * ROWS_PER_CLASS or is_group(column.name):
        return False
    if column.kind == "text":
        if column.digests is None or _many(column.digests) or splits_of(column) is not None:
            return False
        kinds = len(distinct(column.digests))
        return 2 <= kinds <= min(MOST_CLASSES, column.rows // ROWS_PER_CLASS) and bool(column.texts)
    if column.kind != "number" or int(np.prod(column.row_shape)) != 1 or column.missing is not None:
        return False
    values = column.values.reshape(-1)
    if _many(values):
        return False
    if values.dtype.kind == "f" and not (np.isfinite(values).all() and (values == np.round(values)).all()):
        return False
    found = distinct(values)
    if len(found) >= FEWEST_STEPS and not is_target(column.name) and _is_grid(found):
        return False
    return 2 <= len(found) <= min(MOST_CLASSES, column.rows // ROWS_PER_CLASS)


def _is_grid(values: Array) -> bool:
    """Whether numbers lie at equal distances of more than one: what was measured each 12 cycles, at each 5 degrees.
    Classes are numbered by ones."""
    steps = np.diff(np.sort(values.astype(np.float64)))
    return bool(steps[0] > 1 and (steps == steps[0]).all())


def is_beside_a_target(shards: Sequence[Shard], name: str) -> bool:
    """Whether another field is what is to be predicted: called so, or the one single number beside vectors."""
    fields = {n: c for s in shards for n, c in s.columns.items()}
    if is_target(name) or name not in fields:
        return False
    if any(is_target(n) for n in fields if n != name):
        return True
    vectors = any(c.kind == "number" and len(c.row_shape) >= 1 and int(np.prod(c.row_shape)) > 1
                  for c in fields.values())
    single = [n for n, c in fields.items() if c.is_float and not c.row_shape]
    return vectors and len(single) == 1


def _many(values: Array) -> bool:
    """Whether the first rows alone hold more kinds than classes: told without a look at the others."""
    return len(distinct(values[: 20 * MOST_CLASSES])) > MOST_CLASSES


def label_fields(shards: Sequence[Shard]) -> tuple[str, ...]:
    """The fields that are labels in every shard of some size that has them."""
    out = []
    for name in dict.fromkeys(name for s in shards for name in s.columns):
        judged = [is_label(s.columns[name]) for s in shards if name in s.columns and s.rows >= 50]
        judged = judged or [is_label(s.columns[name]) for s in shards if name in s.columns]
        if judged and sum(judged) >= max(1, 0.6 * len(judged)) and not is_apart_by_split(shards, name):
            out.append(name)
    return tuple(out)


def is_apart_by_split(shards: Sequence[Shard], name: str) -> bool:
    """Whether training and held-out data share next to no value of a field of many: ids of what was split by them.

    A field that is called as a target is remains one: its classes may be others on purpose.
    """
    if is_target(name):
        return False
    sides: list[set[int]] = [set(), set()]
    for shard in shards:
        column = shard.columns.get(name)
        if column is not None and shard.split and (column.kind != "text" or column.digests is not None):
            if column.kind == "sequence" or int(np.prod(column.row_shape)) != 1:
                return False
            sides[shard.split != "train"].update(distinct(keys(column)).tolist())
    few = min(map(len, sides))
    return few >= FEWEST_IDS and len(sides[0] & sides[1]) <= SHARED * few


def splits_of(column: Column) -> Array | None:
    """The split of each row, "" where its cell is empty; None where other words are there too."""
    if column.kind != "text" or len(column.texts) != column.rows or not column.rows:
        return None
    words = Counter(column.texts)
    said = {w: split_of(w) for w in words if w.strip()} if len(words) <= MOST_SPLIT_WORDS else {}
    if not said or not all(said.values()):
        return None
    return np.array([said.get(w, "") for w in column.texts])


def is_row_id(column: Column) -> bool:
    """Whether a field numbers or names the rows: no value recurs and they are whole numbers, in order or not."""
    if column.kind != "number" or column.row_shape or column.values.dtype.kind not in "iu":
        return False
    first = column.values[:2000]
    if len(first) <= 20 or len(distinct(first)) < 0.99 * len(first):
        return False
    return len(distinct(column.values)) >= 0.99 * len(column.values)


_IDENTIFIERS: WeakKeyDictionary[Column, bool] = WeakKeyDictionary()
"""What was found of a column: thirty observations ask, and each would look through all of its texts."""


def is_identifier(column: Column) -> bool:
    """Whether a field names or numbers the rows, or tells their time: by its values, or called as times are.

    Numbers that only grow or only fall from row to row; texts that do not recur, are short, and are digits for a third
    (keys, hashes); dates and times of day. Sequences of letters, such as molecules and genes, are none.
    """
    known = _IDENTIFIERS.get(column)
    if known is None:
        known = _IDENTIFIERS[column] = _is_identifier(column)
    return known


def _is_identifier(column: Column) -> bool:
    if is_time(column.name) or is_row_id(column):
        return True
    if column.rows <= 20 or column.row_shape or column.missing is not None:
        return False
    if column.kind == "number" and column.values.dtype.kind in "iuf":
        if is_epoch(column.values):
            return True
        return _only_grows(column.values[:MOST_FIRST]) and _only_grows(column.values)
    if column.kind != "text" or not column.texts or column.digests is None:
        return False
    some = column.texts[:: max(1, len(column.texts) // 200)]
    if all(_MOMENT.match(t) for t in some):
        return True
    if not all(len(t) <= 40 and len(t.split()) <= 2 for t in some):
        return False
    if is_id_name(column.name) and len(distinct(column.digests)) >= 0.99 * column.rows:
        return True
    digits = sum(c.isdigit() for t in some for c in t)
    return digits >= 0.3 * sum(len(t) for t in some) and len(distinct(column.digests)) >= 0.99 * column.rows


def _only_grows(values: Array) -> bool:
    """Whether each number is larger than the one before it, or each is smaller."""
    steps = np.diff(values.astype(np.float64))
    return bool((steps > 0).all() or (steps < 0).all())


def is_epoch(values: Array) -> bool:
    """Whether numbers are seconds since 1970 or thousands, millions, milliards of a second, from 2000 to 2040."""
    low, high = float(values.min()), float(values.max())
    return high > low and any(9.4e8 * f <= low and high <= 2.21e9 * f for f in (1.0, 1e3, 1e6, 1e9)) and (
        high - low <= 0.2 * high
    )


def input_fields(shard: Shard, labels: tuple[str, ...]) -> tuple[str, ...]:
    """The fields that a model would be given: neither labels nor numbers of rows nor what is missing throughout."""
    names = tuple(
        n
        for n, c in shard.columns.items()
        if n not in labels and not is_row_id(c) and not is_group(n) and splits_of(c) is None
        and not (c.missing is not None and c.missing.all())
    )
    # A long key of each row, such as a UUID, is no input beside which numbers are nothing.
    rich = tuple(n for n in names if _rich(shard.columns[n]) and not is_identifier(shard.columns[n]))
    return rich or names


def _rich(column: Column) -> bool:
    """Whether one row of it holds much: an array, a text, a sequence."""
    if column.kind == "text":
        return (bool(column.texts) and float(np.median(column.values)) >= 20) or not column.texts
    return column.kind == "sequence" or int(np.prod(column.row_shape)) >= 4


def codes(column: Column, kinds: Array) -> Array:
    """int64 shape (rows,): the place of each label among the sorted `kinds`, -1 where it is none of them."""
    values = keys(column)
    at = np.minimum(np.searchsorted(kinds, values), len(kinds) - 1)
    return np.where(kinds[at] == values, at, -1)


def keys(column: Column) -> Array:
    """The labels as sortable values: the numbers, or hashes of the texts."""
    if column.kind == "text" and column.digests is not None:
        return column.digests
    return np.asarray(column.values).reshape(-1)


def label_name(shards: Sequence[Shard], field: str, key: object) -> str:
    """A label as a person knows it."""
    for shard in shards:
        column = shard.columns.get(field)
        if column is not None and column.kind == "text" and column.digests is not None:
            at = np.flatnonzero(column.digests == key)
            if len(at):
                return repr(column.texts[int(at[0])][:30])
    return f"{key:g}" if isinstance(key, (float, np.floating)) else str(key)


_STEPS = frozenset({"step", "steps", "epoch", "global_step", "iteration", "iter"})
_METRIC = re.compile(
    r"(^|[_/.])(loss|lr|learning_rate|grad_norm|perplexity|(train|eval|val|valid|test)[_/](loss|acc|accuracy))$",
    re.IGNORECASE,
)


def is_metrics(shard: Shard) -> bool:
    """Whether a table of text is the record of a run: steps that only grow beside a loss or a learning rate."""
    if shard.format not in ("json", "json lines", "csv"):
        return False
    steps = [c for n, c in shard.columns.items() if n.lower() in _STEPS and c.kind == "number" and not c.row_shape]
    if not steps or not any(_METRIC.search(n) for n in shard.columns):
        return False
    values = steps[0].values[np.isfinite(steps[0].values.astype(np.float64))]
    return len(values) > 1 and bool((np.diff(values) >= 0).all())
