"""Two texts of a row do not belong together in one stretch of a file: they do after a shift by some rows.

Texts that belong together (a question and its answer, a text and its summary, tokens and their targets) share rare
words. In the stretch a field shares them with the row of some fixed distance instead of its own, and with its own no
more than with one far away. Turns of a conversation share words with their neighbours as well, and with their own.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.stretches import Stretch, heaviest, log_chance
from traindx_tools.on_data.summary import mixed
from traindx_tools.on_data.turns import of_texts
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

LAGS = tuple(k for k in range(-5, 6) if k)
FAR = (17, 29, 41)
MOST_ROWS = 20_000
MOST_FIELDS = 4
BUCKETS = 1024
FEWEST = 30
WINS = 0.7
NO_MORE = 0.6

RULE = Rule(
    id="D124",
    name="text-pairing",
    title="From some row on two texts of a row do not belong together",
    severity=Severity.HIGH,
    sees="rare words or tokens that two fields share, in the same row and some rows apart, in the order of the file",
    matters="The model learns answers to other questions.",
    alike=("Conversations, whose turns share words with their neighbours.", "Fields in two languages."),
    confirm=("Read ten rows before and ten behind the named row.",),
    thresholds={
        "wins": Threshold(WINS, "share of the rows that can tell", "that agree with the shift inside, without outside"),
        "no_more": Threshold(NO_MORE, "share of rows", "inside that share more with their own than with one far away"),
        "rows": Threshold(FEWEST, "rows", "of the stretch, and outside, that can tell"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all stretches, files, pairs and shifts"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """At most one stretch of each pair of fields of a file."""
    for data in view.sets:
        for shard in data.shards:
            if 3 * FEWEST <= shard.rows <= MOST_ROWS and shard.numbers is None:
                bags = _bags(shard)
                for one, other in combinations(bags, 2):
                    yield from _of_pair(shard, one, other, bags, view.comparisons)


def _bags(shard: Shard) -> Mapping[str, Array]:
    """float32 (rows, BUCKETS) of each field of words or tokens: which are there, rare ones with more weight."""
    there = dict(_fields(shard))
    if len(there) < 2:
        return {}
    share = sum(t.mean(axis=0, dtype=np.float64) for t in there.values()) / len(there)
    weight = np.sqrt(np.log(1.0 / np.clip(share, 1.0 / shard.rows, 1.0))).astype(np.float32)
    return {n: _weighted(t, weight) for n, t in there.items()}


def _weighted(there: Array, weight: Array) -> Array:
    out = there * weight
    out /= np.maximum(np.sqrt(np.einsum("ij,ij->i", out, out))[:, None], 1e-9)
    return np.asarray(out)


def _fields(shard: Shard) -> Iterator[tuple[str, Array]]:
    """bool (rows, BUCKETS) of each field, of the first ones: which words it holds."""
    made = 0
    for name, column in shard.columns.items():
        spoken = column.turns or (of_texts(column.texts) if column.kind == "text" else {})
        texts = {f"{name}.{who}": said for who, said in spoken.items()}
        for called, said in texts.items():
            if _has_words(said) and len(set(said)) > 1:
                yield called, _of_words(said)
                made += 1
        if not texts and _wordy(column):
            yield name, _there(column)
            made += 1
        if made >= MOST_FIELDS:
            return


def _has_words(texts: Sequence[str]) -> bool:
    return bool(texts) and sum(t.count(" ") for t in texts[:200]) >= 2 * min(200, len(texts))


def _wordy(column: Column) -> bool:
    if column.kind == "text":
        return _has_words(column.texts)
    if column.kind == "sequence" and column.offsets is not None:
        return column.values.dtype.kind in "iu" and len(column.values) >= 4 * column.rows
    return column.kind == "number" and column.values.dtype.kind in "iu" and len(column.row_shape) == 1 and (
        column.row_shape[0] >= 4 and int(column.values.max(initial=0)) > 2
    )


def _of_words(texts: Sequence[str]) -> Array:
    out = np.zeros((len(texts), BUCKETS), bool)
    for row, text in enumerate(texts):
        out[row, [zlib.crc32(w.strip(".,;:!?\"'()").encode("utf-8", "replace")) % BUCKETS
                  for w in text.lower().split()]] = True
    return out


def _there(column: Column) -> Array:
    if column.kind == "text":
        return _of_words(column.texts)
    out = np.zeros((column.rows, BUCKETS), bool)
    if column.offsets is not None:
        rows, items = np.repeat(np.arange(column.rows), np.diff(column.offsets)), column.values
    else:
        rows, items = np.repeat(np.arange(column.rows), column.row_shape[0]), column.values.reshape(-1)
    marks = mixed(items.astype(np.int64).view(np.uint64)) % np.uint64(BUCKETS)
    out[rows, marks.astype(np.int64)] = True
    return out


def _of_pair(shard: Shard, one: str, other: str, bags: Mapping[str, Array], comparisons: int) -> Iterator[Finding]:
    a, b = bags[one], bags[other]

    def shared(lag: int) -> Array:
        if not lag:
            return np.asarray(np.einsum("ij,ij->i", a, b))
        out = np.empty(len(a), np.float32)  # without a copy of b: row i goes with row i - lag
        out[max(lag, 0):len(a) + min(lag, 0)] = np.einsum(
            "ij,ij->i", a[max(lag, 0):len(a) + min(lag, 0)], b[max(-lag, 0):len(b) - max(lag, 0)])
        edge, there = (slice(0, lag), slice(-lag, None)) if lag > 0 else (slice(lag, None), slice(0, -lag))
        out[edge] = np.einsum("ij,ij->i", a[edge], b[there])
        return out

    own, far = shared(0), np.mean([shared(k) for k in FAR], axis=0)
    best: tuple[float, Stretch, int] | None = None
    for lag in LAGS:
        gain = np.sign(np.round(shared(lag) - own, 5))
        stretch = heaviest(gain)
        inside = stretch.inside(shard.rows)
        if _moved(gain, own - far, inside):
            tries = comparisons * len(LAGS) * max(1, math.comb(len(bags), 2))
            chance = log_chance(int((gain[inside] > 0).sum()), int((gain[inside] < 0).sum()), shard.rows, tries)
            if chance < math.log(LEVEL) and (best is None or chance < best[0]):
                best = (chance, stretch, lag)
    if best is not None:
        yield _finding(shard, one, other, best[1], best[2], own)


def _moved(gain: Array, above_far: Array, inside: Array) -> bool:
    """Whether the shifted pair agrees better inside, the unshifted one outside, and inside it does not agree at all."""
    won, lost = int((gain[inside] > 0).sum()), int((gain[inside] < 0).sum())
    kept, left = int((gain[~inside] < 0).sum()), int((gain[~inside] > 0).sum())
    if min(won + lost, kept + left) < FEWEST or won < WINS * (won + lost) or kept < WINS * (kept + left):
        return False
    # where two texts never agree, nothing can be told of a stretch in which they do not
    agrees = above_far[~inside] > 0
    return (
        float((above_far[inside] > 0).mean()) <= NO_MORE
        and float(agrees.mean()) >= WINS
        and share_tail(int(agrees.sum()), len(agrees), 0.5) < LEVEL
    )


def _finding(shard: Shard, one: str, other: str, stretch: Stretch, lag: int, own: Array) -> Finding:
    inside, last = stretch.inside(shard.rows), stretch.end - 1
    way = "later" if lag < 0 else "earlier"
    return RULE.finding(
        f"{one} and {other} of {short(shard)} do not belong together in rows {stretch.start}..{last}: {one} shares its "
        f"rare words with {other} of {abs(lag)} row{'s' * (abs(lag) != 1)} {way}; in the other rows with that of its "
        f"own (overlap {percent(float(own[inside].mean()))} inside, {percent(float(own[~inside].mean()))} outside)",
        place(shard, other if other in shard.columns else other.rpartition(".")[0]),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "field": other, "other": one, "lag": lag, "rows": (stretch.start, last), "kind": "stretch-shifted",
            "shard": short(shard),
        },
    )
