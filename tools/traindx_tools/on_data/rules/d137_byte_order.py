"""The numbers of one shard are stored in the other byte order: read as those of its siblings are, they mean nothing.

Fields of numbers are laid against their siblings as they are and with their bytes turned (Kolmogorov-Smirnov). Of
fields that are plain bytes the size of an item is told by the period of the siblings' bytes, and the bytes at each
place of an item are laid against theirs, as they are and in reverse. A file that declares its order is read rightly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.origins import groups_of, in_common
from traindx_tools.on_data.places import number, of, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, distance, distance_tail
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 64
MOST_VALUES = 4096
APART = 0.3
TIMES = 3.0
WIDTHS = (2, 4, 8)
FEWEST_SOUNDS = 4
BYTES = 32
"""Bytes of a row of plain bytes at least."""

RULE = Rule(
    id="D137",
    name="byte-order",
    title="A shard is stored in the other byte order",
    severity=Severity.HIGH,
    sees="values as they are and with their bytes turned, and bytes by their place within an item, by shard",
    matters="What is read of the shard are huge, tiny or random numbers: loss spikes, or a shard that teaches noise.",
    alike=("Another scale: turned bytes do not lie as those of the siblings.", "Packed or encrypted bytes."),
    confirm=("Read the named field with '>' before its type (numpy) and print some values beside a sibling's.",),
    thresholds={
        "apart": Threshold(APART, "distance of the distributions", "to the siblings, as they are"),
        "times": Threshold(TIMES, "times nearer", "with the bytes turned; the siblings are as near to each other"),
        "values": Threshold(FEWEST, "values", "of the shard and of its siblings"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards and fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard and field."""
    for data in view.sets:
        for name in data.fields:
            columns = [(s, c) for s in data.shards if (c := s.columns.get(name)) is not None and c.kind != "text"]
            for form in {c.values.dtype.str for _, c in columns if c.values.dtype.kind in "iuf"}:
                group = [(s, _some(c.values)) for s, c in columns if c.values.dtype.str == form]
                yield from _of_numbers([g for g in group if len(g[1]) >= FEWEST], name, view.comparisons)
        for shard in data.shards:
            yield from _of_sounds(shard, view)
        for name in {n for s in data.shards for n in (*s.raw, *_byte_fields(s))}:
            some = [(s, s.raw[name] if name in s.raw else s.columns[name].values) for s in data.shards
                    if name in s.raw or name in _byte_fields(s)]
            yield from _of_bytes(some, name)


def _of_sounds(shard: Shard, view: View) -> Iterator[Finding]:
    """Sounds that are noise until the two bytes of each sample are exchanged."""
    odd = shard.turned
    if odd is None or len(odd) != len(shard.row_names) or int(odd.sum()) < FEWEST_SOUNDS:
        return
    which = np.flatnonzero(odd)
    common = in_common(odd, dict(groups_of(shard.row_names, view)), view.comparisons)
    yield RULE.finding(
        f"{int(odd.sum()):,} of {len(odd):,} sounds hold samples in the other byte order than their header says: as "
        f"they are they are noise, and smooth once the two bytes of each sample are exchanged: {rows(shard, which)}"
        + (f"; {common[0]}" if common is not None else ""),
        place(shard),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": "the sound", "width": 2, "count": int(odd.sum()), "of": len(odd), "kind": "byte-order",
                  "rows": tuple(int(i) for i in which[:20]), "files": tuple(shard.row_names[i] for i in which[:20]),
                  "shard": short(shard)},
    )


def _some(values: Array) -> Array:
    """Evenly spaced values of a field, in the machine's byte order, never of one place of the rows alone."""
    flat = np.asarray(values).reshape(-1) if values.size <= 2**24 else np.asarray(values[:: 16]).reshape(-1)
    step = max(1, len(flat) // MOST_VALUES) | 1
    return np.ascontiguousarray(flat[::step][:MOST_VALUES], dtype=flat.dtype.newbyteorder("="))


def _of_numbers(group: Sequence[tuple[Shard, Array]], name: str, comparisons: int) -> Iterator[Finding]:
    if len(group) < 3 or group[0][1].dtype.itemsize < 2:
        return
    for at, (shard, own) in enumerate(group):
        others = np.sort(np.concatenate([v for k, (_, v) in enumerate(group) if k != at]))
        if not np.isfinite(others).all() or len(np.unique(others)) < 2:
            continue
        turned = own.byteswap()
        as_is, better = (distance(np.sort(_finite(v)), others) for v in (own, turned))
        chance = distance_tail(as_is, len(own), len(others)) * comparisons
        if as_is < APART or better > as_is / TIMES or not np.isfinite(turned).all() or chance >= LEVEL:
            continue
        usual = max(distance(np.sort(v), others) for k, (_, v) in enumerate(group) if k != at)
        if usual <= as_is / TIMES and better <= 1.5 * usual + 2.0 / np.sqrt(len(own)):
            yield _finding(
                shard, name, len(group) - 1, own.dtype.itemsize, (as_is, better),
                f", such as {number(float(own[len(own) // 2]))} that is {number(float(turned[len(own) // 2]))}",
            )


def _finite(values: Array) -> Array:
    return np.nan_to_num(values, nan=np.finfo(values.dtype).max) if values.dtype.kind == "f" else values


def _byte_fields(shard: Shard) -> list[str]:
    """Fields of rows of bytes: arrays without another axis."""
    return [
        n for n, c in shard.columns.items()
        if c.kind == "number" and c.values.dtype == np.uint8 and len(c.row_shape) == 1 and c.row_shape[0] >= BYTES
    ]


def _of_bytes(rows: Sequence[tuple[Shard, Array]], name: str) -> Iterator[Finding]:
    group = [(s, r[:256]) for s, r in rows if r.shape[1] >= BYTES and r[:256].size >= FEWEST * BYTES]
    if len(group) < 3 or len({r.shape[1] for _, r in group}) > 1 or group[0][1].shape[1] % 2:
        return
    for at, (shard, own) in enumerate(group):
        others = [_places(r) for k, (_, r) in enumerate(group) if k != at]
        pooled, mine = np.mean(others, axis=0), _places(own)
        usual = max(_apart(o, pooled) for o in others)
        width = next((w for w in WIDTHS if _apart(pooled, np.roll(pooled, w, axis=0)) <= usual + 0.01), None)
        if width is None:
            continue
        turned = mine.reshape(-1, width, 256)[:, ::-1].reshape(-1, 256)
        as_is, better = _apart(mine, pooled), _apart(turned, pooled)
        if as_is >= TIMES * usual + 0.1 and better <= 1.5 * usual + 0.02 and better <= as_is / TIMES:
            yield _finding(shard, name, len(others), width, (as_is, better), "")


def _places(rows: Array) -> Array:
    """float64 shape (8, 256): how often each byte stands at each place of eight."""
    kept = rows[:, : rows.shape[1] // 8 * 8].reshape(-1, 8)
    return np.stack([np.bincount(kept[:, p], minlength=256) / len(kept) for p in range(8)])


def _apart(a: Array, b: Array) -> float:
    """Total variation, the mean over the places."""
    return float(np.abs(a - b).sum(axis=1).mean()) / 2.0


def _finding(shard: Shard, name: str, siblings: int, width: int, apart: tuple[float, float], such: str) -> Finding:
    return RULE.finding(
        f"{of(name, shard)} is stored in the other byte order than its {siblings} siblings: with the bytes of each "
        f"number turned ({width} bytes) its values are distributed as theirs (distance {number(apart[1])}, "
        f"{number(apart[0])} as they are){such}",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "width": width, "before": apart[0], "after": apart[1], "kind": "byte-order",
                  "shard": short(shard)},
    )
