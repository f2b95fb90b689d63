"""The numbers of a row as atoms of relations: single fields and channels of arrays, beside what a time and classes say.

An atom is one field or one channel, with a few features of its row (its number; of a channel its mean, spread and
trend). A linear model of all features and of products of two is what relations are learned with: small enough to be
solved for each part of the rows anew, and rich enough for what most records hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.on_data.calendar_parts import DAY, seconds_of
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.features import narrowed
from traindx_tools.on_data.roles import codes, is_id_name, is_identifier, is_label, is_row_id, is_time, keys
from traindx_tools.on_data.shard import Shard

MOST_ROWS = 12_000
"""Rows of all files together: of more, `BLOCKS` blocks of each file, in which rows keep their neighbours."""
BLOCKS = 8
FEWEST_ROWS = 200
MOST_ATOMS = 24
MOST_CHANNELS = 16
LONGEST = 4096
"""Places of an array along which a channel runs."""
MOST_KINDS = 12
WIDE = 24
"""Features of an array that has no channels, beside the atoms."""
PAIRS = 8
"""Atoms whose products are features too."""
CLIP = 6.0
BEND = 0.7
FEWEST_VALUES = 5
SERIES = 32
"""Places from which on a row of numbers is a series, in which something may begin."""
FEWEST_LENGTHS = 12
IN_TURN = 0.8
"""Share of the rows of a group that come about a round after its last one, where groups take turns; by chance half."""
FEWEST_IN_TURN = 24


@dataclass(frozen=True, eq=False)
class Atom:
    """One field, or one channel of one. `values`: float64 shape (rows, features), NaN where nothing stands."""

    name: str
    field: str
    values: Array
    whole: bool
    """Whether it holds whole numbers."""


@dataclass(frozen=True, eq=False)
class Records:
    """The rows that are looked at, of all files one behind the other."""

    shard: Array
    row: Array
    block: Array
    """int64 shape (rows,): rows of one block follow each other in their file."""
    atoms: tuple[Atom, ...]
    beside: Array
    """float64 shape (rows, features): what is no atom and tells of them (hours, days of the year, classes)."""
    of: str = ""
    """The field of whose groups each block holds one, "" where all rows of a file follow each other."""


@dataclass(frozen=True, eq=False)
class Design:
    """The features of all rows, float32 shape (rows, features), centred, and which atoms each is made of."""

    records: Records
    x: Array
    owners: Array
    """bool shape (atoms, features)."""
    first: Array
    """int64 shape (atoms,): the feature that is the atom's own number."""
    centre: tuple[Array, ...]
    spread: tuple[Array, ...]
    middle: Array
    paired: tuple[int, ...]
    bent: bool

    def features(self, atoms: Sequence[Array], beside: Array) -> Array:
        """The same features of other numbers of the atoms."""
        return np.asarray(made(atoms, beside, self.centre, self.spread, self.paired, self.bent)[0] - self.middle)


def chosen_rows(group: Sequence[Shard]) -> tuple[Array, Array, Array]:
    """Shard, row and block of each row that is looked at."""
    quota = max(FEWEST_ROWS, MOST_ROWS // max(1, len(group)))
    shard, row, block, count = [], [], [], 0
    for i, s in enumerate(group):
        starts = [0] if s.rows <= quota else np.linspace(0, s.rows - quota // BLOCKS, BLOCKS).astype(np.int64).tolist()
        width = s.rows if s.rows <= quota else quota // BLOCKS
        for start in starts:
            row.append(np.arange(start, start + width))
            shard.append(np.full(width, i, np.int64))
            block.append(np.full(width, count, np.int64))
            count += 1
    return np.concatenate(shard), np.concatenate(row), np.concatenate(block)


def records_of(group: Sequence[Shard], without: frozenset[str]) -> Records | None:
    """The atoms that all files have; None where there are no two. `without`: fields that name groups of rows."""
    shard, row, block = chosen_rows(group)
    atoms: list[Atom] = []
    beside: list[Array] = []
    for name in group[0].columns:
        columns = [s.columns.get(name) for s in group]
        there = [c for c, s in zip(columns, group, strict=True) if c is not None and c.rows == s.rows]
        if len(there) < len(group) or name in without:
            continue
        at = [row[shard == i] for i in range(len(group))]
        found = _atoms(name, there, at)
        if len(atoms) + len(found) <= MOST_ATOMS:
            atoms += found
        if not found and (told := _beside(name, there, at)) is not None and sum(b.shape[1] for b in beside) < 3 * WIDE:
            beside.append(told)
    if len(atoms) < 2 and not (atoms and beside):
        return None
    told = np.concatenate([np.zeros((len(row), 0)), *beside], axis=1)
    spread = told.std(axis=0) if told.shape[1] else np.zeros(0)
    return Records(shard, row, block, tuple(atoms), np.clip((told - told.mean(axis=0)) / np.where(
        spread > 0, spread, 1.0), -CLIP, CLIP))


def _atoms(name: str, columns: Sequence[Column], at: Sequence[Array]) -> list[Atom]:
    first = columns[0]
    if first.kind in ("text", "sequence"):
        return _lengths(name, columns, at)
    plain = all(c.kind == "number" and c.values.dtype.kind in "iuf" and not is_row_id(c) for c in columns)
    if not plain or is_id_name(name) or len({c.row_shape for c in columns}) > 1:
        return []
    whole = first.values.dtype.kind in "iu"
    if first.row_shape in ((), (1,)):
        if is_time(name) or any(is_identifier(c) for c in columns):
            return []
        values = np.concatenate([np.asarray(c.values[r], np.float64).reshape(-1, 1)
                                 for c, r in zip(columns, at, strict=True)])
        return [Atom(name, name, values, whole)] if len(np.unique(values[:4000])) >= FEWEST_VALUES else []
    return _channels(name, columns, at, whole)


def _channels(name: str, columns: Sequence[Column], at: Sequence[Array], whole: bool) -> list[Atom]:
    """The features of a row of numbers; of series of several channels these."""
    shape = columns[0].row_shape
    if len(shape) == 1 and shape[0] >= SERIES:
        return _positions(name, [np.asarray(c.values[r])[:, None] for c, r in zip(columns, at, strict=True)])
    if len(shape) == 1 and 2 <= shape[0] <= MOST_CHANNELS:
        values = np.concatenate([np.asarray(c.values[r], np.float64) for c, r in zip(columns, at, strict=True)])
        return [Atom(f"{name}[{k}]", name, values[:, k:k + 1], whole) for k in range(shape[0])
                if len(np.unique(values[:2000, k])) >= FEWEST_VALUES]
    if len(shape) != 2 or not 2 <= min(shape) <= MOST_CHANNELS or min(shape) == max(shape) or max(shape) > LONGEST:
        return []
    axis = int(np.argmin(shape))
    told = [_told(np.moveaxis(np.asarray(c.values[r], np.float32), axis + 1, 1))
            for c, r in zip(columns, at, strict=True)]
    every = np.concatenate(told)
    mark = "{}[:, {}]" if axis == 1 else "{}[{}]"
    out = [Atom(mark.format(name, k), name, every[:, k], False) for k in range(shape[axis])]
    if max(shape) >= SERIES:
        out += _positions(name, [np.moveaxis(np.asarray(c.values[r]), axis + 1, 1)
                                 for c, r in zip(columns, at, strict=True)])
    return out


def _lengths(name: str, columns: Sequence[Column], at: Sequence[Array]) -> list[Atom]:
    """How long texts and sequences are, where that varies."""
    if len({c.kind for c in columns}) > 1 or is_id_name(name) or is_time(name) or any(map(is_identifier, columns)):
        return []
    values = np.concatenate([np.asarray(c.lengths[r], np.float64) for c, r in zip(columns, at, strict=True)])
    return [Atom(f"the length of {name}", name, values[:, None], True)] if len(
        np.unique(values[:4000])) >= FEWEST_LENGTHS else []


def _positions(name: str, parts: Sequence[Array]) -> list[Atom]:
    """Where series, shape (rows, channels, places), begin to move and are largest, where that differs from row to row.
    """
    found = [_begins(np.nan_to_num(p.astype(np.float32))) for p in parts]
    every = np.concatenate(found)
    return [Atom(f"where {name} {said}", name, every[:, k:k + 1], False) for k, said in enumerate(
        ("begins", "is largest")) if len(np.unique(every[:4000, k])) >= FEWEST_LENGTHS]


def _begins(series: Array) -> Array:
    """float64 shape (rows, 2): the place of the steepest rise of energy from one window to the next; of the largest."""
    series = series - np.median(series, axis=2, keepdims=True)
    energy = np.sqrt((series**2 / np.maximum(series.var(axis=2, keepdims=True), 1e-12)).sum(axis=1))
    width = int(np.clip(energy.shape[1] // 40, 2, 64))
    sums = np.cumsum(np.pad(energy, ((0, 0), (1, 0))), axis=1, dtype=np.float64)
    window = (sums[:, width:] - sums[:, :-width]) / width
    rise = np.log(window[:, width:] + 0.1) - np.log(window[:, :-width] + 0.1)
    return np.stack([rise.argmax(axis=1) + width, energy.argmax(axis=1)], axis=1).astype(np.float64)


def _told(channels: Array) -> Array:
    """float64 shape (rows, channels, 3): mean, spread and trend of series, shape (rows, channels, places)."""
    half = channels.shape[2] // 2
    trend = channels[:, :, half:].mean(axis=2) - channels[:, :, :half].mean(axis=2)
    return np.stack([channels.mean(axis=2), channels.std(axis=2), trend], axis=2).astype(np.float64)


def _beside(name: str, columns: Sequence[Column], at: Sequence[Array]) -> Array | None:
    """What a time or a class says, or a row of many numbers."""
    seconds = [seconds_of(c, r) for c, r in zip(columns, at, strict=True)] if not columns[0].row_shape else []
    if seconds and all(s is not None for s in seconds):
        return _cycles(np.concatenate([s for s in seconds if s is not None]))
    if all(is_label(c) for c in columns) and not is_id_name(name):
        kinds = np.unique(np.concatenate([keys(c) for c in columns]))
        if 2 <= len(kinds) <= MOST_KINDS:
            which = np.concatenate([codes(c, kinds)[r] for c, r in zip(columns, at, strict=True)])
            return np.asarray(np.eye(len(kinds))[which])
    shapes = {c.row_shape for c in columns}
    if len(shapes) == 1 and columns[0].kind == "number" and 2 <= int(np.prod(columns[0].row_shape)) <= LONGEST:
        flat = [np.asarray(c.values[r], np.float32).reshape(len(r), -1) for c, r in zip(columns, at, strict=True)]
        return np.asarray(narrowed(np.nan_to_num(np.concatenate(flat)), WIDE), np.float64)
    return None


def _cycles(seconds: Array) -> Array:
    """Two waves of the day and one of the year, where the times reach over them."""
    out = []
    span = float(seconds.max() - seconds.min()) if len(seconds) else 0.0
    for period, waves in ((DAY, (1, 2)), (365.2425 * DAY, (1,))):
        if span >= 0.5 * period and len(np.unique(seconds[:4000] % period)) > 2:
            turn = 2.0 * np.pi * (seconds / period)
            out += [f(k * turn) for k in waves for f in (np.sin, np.cos)]
    return np.stack(out, axis=1) if out else np.zeros((len(seconds), 0))


def interleaved(records: Records, member: Array, of: str) -> Records | None:
    """The same with blocks of one group each, so that the next row is the group's next one.

    None where groups do not take turns, each about once a round, or most rows would have no neighbour.
    """
    kinds = len(np.unique(member))
    if (member < 0).any() or kinds < 2:
        return None
    _, block, counts = np.unique(records.block * (int(member.max()) + 1) + member, return_inverse=True,
                                 return_counts=True)
    order = np.argsort(block.reshape(-1), kind="stable")
    same = np.diff(block.reshape(-1)[order]) == 0
    apart = np.diff(order)[same]
    if np.median(counts) < FEWEST_IN_TURN or float(np.mean(np.abs(apart - kinds) < 0.5 * kinds)) < IN_TURN:
        return None
    return replace(records, block=block.reshape(-1), of=of)


def levelled(records: Records, member: Array) -> Records:
    """The same with each group's numbers in its own spreads around its own middle: sites differ in size by nature."""
    atoms = []
    for atom in records.atoms:
        values = atom.values.copy()
        for k in np.unique(member[member >= 0]):
            own = member == k
            low, middle, high = np.nanpercentile(values[own], (1.0, 50.0, 99.0), axis=0)
            inner = np.nanstd(np.clip(values[own], low, high), axis=0)
            values[own] = (values[own] - middle) / np.where(inner > 0, inner, 1.0)
        atoms.append(replace(atom, values=values))
    return replace(records, atoms=tuple(atoms))


def design_of(records: Records) -> Design:
    """The features of all rows. Scale and centre are those of most rows, so that no tail leads."""
    centre, spread = [], []
    for atom in records.atoms:
        low, middle, high = np.nanpercentile(atom.values, (1.0, 50.0, 99.0), axis=0)
        inner = np.nanstd(np.clip(atom.values, low, high), axis=0)
        centre.append(middle)
        spread.append(np.where(inner > 0, inner, 1.0))
    width = sum(a.values.shape[1] for a in records.atoms)
    paired = tuple(range(min(PAIRS, len(records.atoms))))
    bent = 3 * width + records.beside.shape[1] <= 160
    atoms = [a.values for a in records.atoms]
    x, owners = made(atoms, records.beside, centre, spread, paired, bent)
    first = np.cumsum([0, *(a.values.shape[1] for a in records.atoms)])[:-1]
    middle = x.mean(axis=0)
    return Design(records, x - middle, owners, first, tuple(centre), tuple(spread), middle, paired, bent)


def made(atoms: Sequence[Array], beside: Array, centre: Sequence[Array], spread: Sequence[Array],
         paired: Sequence[int], bent: bool) -> tuple[Array, Array]:
    """Features of numbers, and which atoms each is made of."""
    z = [_standard(v, c, s) for v, c, s in zip(atoms, centre, spread, strict=True)]
    columns, owner = list(z), [[k] for k, v in enumerate(z) for _ in range(v.shape[1])]
    if bent:
        for sign in (1.0, -1.0):
            columns += [np.maximum(0.0, sign * v - BEND) for v in z]
            owner += [[k] for k, v in enumerate(z) for _ in range(v.shape[1])]
    for at, i in enumerate(paired):
        for j in paired[at + 1:]:
            columns.append(z[i][:, :1] * z[j][:, :1])
            owner.append([i, j])
    owner += [[]] * beside.shape[1]
    owners = np.zeros((len(atoms), len(owner)), bool)
    for k, of in enumerate(owner):
        owners[of, k] = True
    return np.concatenate([*columns, beside], axis=1).astype(np.float32), owners


def _standard(values: Array, centre: Array, spread: Array) -> Array:
    return np.asarray(np.clip(np.nan_to_num((values - centre) / spread, nan=0.0, posinf=CLIP, neginf=-CLIP), -CLIP,
                              CLIP))
