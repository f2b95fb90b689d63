"""Arrays by name into shards: which arrays have the same rows, which of them belong to which split."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array, Column, Damage
from traindx_tools.on_data.names import split_of, without_split
from traindx_tools.on_data.readers.bounds import Bounds, sampled
from traindx_tools.on_data.shard import Shard

_WEIGHTS = re.compile(
    r"[._/](weight|bias|kernel|running_mean|running_var|gamma|beta|exp_avg|exp_avg_sq)s?$|^params[._/]"
)
"""Names of parameters: what modules of torch, flax and Keras call theirs."""
NEAR = 0.1
"""A field whose length differs by less than this share from that of the rest was meant to have as many rows."""
LISTED = 4
"""Times as many values as the arrays that are called as splits, from which on these only list what the others hold."""
FEWEST_UNREAD = 20
"""Rows of an array from which on it is told that it was left out."""


def column_of(name: str, array: Array, file: str) -> Column:
    """A field from an array. Raises UnreadableInput for objects, which could only be unpickled."""
    if array.dtype.kind == "O" or array.dtype.hasobject:
        raise UnreadableInput(f"refused: the array {name!r} holds Python objects, which only unpickling could read")
    if array.dtype.kind in "US":
        return text_column(name, [_text(v) for v in array.reshape(len(array), -1)[:, 0].tolist()], file)
    if array.dtype.kind in "mM":
        array = array.astype(np.int64)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    return Column(name, "number", array, file)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def text_column(name: str, texts: list[str], file: str) -> Column:
    """A field of texts: their lengths, a hash of each, and their beginnings."""
    digests = np.fromiter((digest(t.encode("utf-8", "surrogatepass")) for t in texts), np.uint64, len(texts))
    lengths = np.fromiter((len(t.strip()) for t in texts), np.int64, len(texts))
    return Column(name, "text", lengths, file, digests=digests, texts=tuple(t[:2000] for t in texts))


@dataclass(frozen=True)
class Serialised:
    """A field of a record that is kept as bytes: how many there are, and a hash of them."""

    size: int
    mark: int

    @classmethod
    def of(cls, data: bytes) -> Serialised:
        """From the bytes."""
        return cls(len(data), digest(data))


def sizes_of(records: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """int64 shape (records,): the bytes of each field that some record keeps serialised, -1 where one has none."""
    names = dict.fromkeys(n for r in records for n, v in r.items() if isinstance(v, Serialised))
    return {n: np.fromiter((_size(r.get(n)) for r in records), np.int64, len(records)) for n in names}


def _size(value: Any) -> int:
    return value.size if isinstance(value, Serialised) else len(value.encode()) if isinstance(value, str) else -1


MOST_RAW = 4096
MOST_RAW_ROWS = 256


class RawBytes:
    """Collects the beginnings of fields that are plain bytes: of the first records, where all have one length."""

    def __init__(self) -> None:
        self._found: dict[str, list[bytes]] = {}
        self._lengths: dict[str, set[int]] = {}

    def take(self, name: str, data: bytes) -> None:
        """The bytes of a field in one record."""
        self._lengths.setdefault(name, set()).add(len(data))
        rows = self._found.setdefault(name, [])
        if len(rows) < MOST_RAW_ROWS:
            rows.append(data[:MOST_RAW])

    def arrays(self) -> dict[str, Array]:
        """uint8 shape (records, bytes) by field."""
        return {
            name: np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
            for name, rows in self._found.items()
            if len(self._lengths[name]) == 1 and rows[0]
        }


MOST_BESIDE = 2**22
"""Numbers of an array of another length that is kept: edges beside nodes."""


def digest(data: bytes) -> int:
    """A 64-bit hash of bytes."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def sequence_column(name: str, rows: Sequence[Any], file: str) -> Column:
    """A field of lists of numbers: an array where all have the same length, else items and offsets."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    items = np.concatenate([np.asarray(r) for r in rows]) if lengths.sum() else np.empty(0, np.int64)
    if len(lengths) and (lengths == lengths[0]).all() and lengths[0]:
        return Column(name, "number", items.reshape(len(rows), -1), file)
    return Column(name, "sequence", items, file, offsets=np.concatenate([[0], np.cumsum(lengths)]))


def shards_of(
    arrays: Mapping[str, Array],
    name: str,
    form: str,
    bounds: Bounds,
    *,
    damage: tuple[Damage, ...] = (),
    files: Mapping[str, str] | None = None,
) -> tuple[Shard, ...]:
    """The shards that named arrays make: one a split, where the names say which.

    Arrays without rows of their own (a mean, a list of class names) are left out; `odd_lengths` names those that have
    nearly as many rows as the others. Raises UnreadableInput.
    """
    if {"weight", "bias"} <= arrays.keys() or sum(bool(_WEIGHTS.search(key)) for key in arrays) > len(arrays) // 4:
        raise UnreadableInput("holds weights, no data")
    by_split: dict[str, dict[str, Array]] = {}
    for key, array in arrays.items():
        if array.ndim and len(array):
            by_split.setdefault(split_of(key), {})[key] = array
    if "" in by_split and len(by_split) > 1:
        lists = all(a.ndim == 1 for k, some in by_split.items() if k for a in some.values())
        sizes = {k: sum(a.size for a in some.values()) for k, some in by_split.items()}
        # Names of groups by split, or numbers of rows, beside the arrays themselves: what has rows is judged.
        kept = {""} if lists and sizes[""] >= LISTED * (sum(sizes.values()) - sizes[""]) else set(by_split) - {""}
        by_split = {k: by_split[k] for k in by_split if k in kept}
    made = [_shard(split, found, name, form, bounds, damage, files or {}) for split, found in by_split.items()]
    if not made:
        raise UnreadableInput("holds no array with rows")
    return tuple(made)


def _shard(
    split: str,
    arrays: Mapping[str, Array],
    name: str,
    form: str,
    bounds: Bounds,
    damage: tuple[Damage, ...],
    files: Mapping[str, str],
) -> Shard:
    votes = Counter(len(a) for a in arrays.values())
    total = max(votes, key=lambda n: (votes[n], n))
    odd = {k: len(a) for k, a in arrays.items() if _is_odd(k, arrays, total)}
    left_out = {without_split(k): len(a) for k, a in arrays.items() if len(a) != total and k not in odd}
    columns: dict[str, Column] = {}
    numbers: Array | None = None
    widest = max((int(np.prod(a.shape[1:])) for a in arrays.values() if len(a) == total), default=1)
    for key, array in arrays.items():
        if len(array) != total:
            continue
        _, chosen = sampled(np.broadcast_to(np.empty(1, np.int8), (total, widest)), bounds)
        numbers = chosen
        rows = array if chosen is None else array[chosen]
        field = without_split(key)
        field = key if field in columns else field
        columns[field] = column_of(field, rows, files.get(key, name))
    rows_read = total if numbers is None else len(numbers)
    sampled_note: tuple[str, ...] = (
        () if numbers is None else (f"{rows_read:,} of {total:,} rows were looked at, in blocks over the file",)
    )
    unread = [k for k, a in arrays.items() if len(a) != total and k not in odd and len(a) >= FEWEST_UNREAD]
    if unread:
        sampled_note += (f"not looked at, of other lengths: {', '.join(unread[:6])}"
                         + (f" and {len(unread) - 6} more" if len(unread) > 6 else ""),)
    return Shard(
        name,
        form,
        columns,
        rows_read,
        total,
        split=split,
        numbers=numbers,
        damage=damage,
        notes=sampled_note,
        odd_lengths=odd,
        left_out=left_out,
        beside={k: np.asarray(arrays[k]) for k in arrays if without_split(k) in left_out and _is_short(arrays[k])},
    )


def _is_odd(key: str, arrays: Mapping[str, Array], total: int) -> bool:
    """Whether an array has nearly as many rows as the others, and is neither an axis of theirs nor of another table.

    Arrays of another table are as long as each other and share a word that no array of `total` rows has: x_48, y_48.
    """
    length = len(arrays[key])
    if length == total or abs(length - total) >= NEAR * total:
        return False
    rows = {k: a for k, a in arrays.items() if len(a) == total}
    if any(length in a.shape[1:] for a in rows.values()):
        return False
    fellows = [_words(k) for k, a in arrays.items() if len(a) == length and k != key]
    return not any((_words(key) & f) - set().union(*map(_words, rows)) for f in fellows)


def _words(key: str) -> set[str]:
    return set(re.split(r"[^0-9a-zA-Z]+|(?<=[a-zA-Z])(?=\d)", key)) - {""}


def _is_short(array: Array) -> bool:
    return array.dtype.kind in "iuf" and array.ndim <= 2 and array.size <= MOST_BESIDE
