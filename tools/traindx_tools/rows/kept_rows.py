"""What a dataset keeps of its rows: the attributes with one entry for each, and whether an entry is written to."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_COLUMNS, MOST_BYTES = 16, 2**22
"""Attributes that are followed, and bytes of one entry."""
FEWEST_VALUES = 4
"""An entry of fewer numbers may be a count of its visits or a weight that sampling moves."""


@dataclass(frozen=True)
class Column:
    """An attribute of a dataset, or an entry of a tuple, list or dict that is one; both empty: a list by itself."""

    attribute: str
    entry: int | str | None = None

    @property
    def path(self) -> str:
        """As it is written: `images`, `tensors[0]`, `data['x']`; "" for a list by itself."""
        return self.attribute + ("" if self.entry is None else f"[{self.entry!r}]")

    def of(self, dataset: Any) -> Any:
        """What it is now; None where it is gone."""
        if not self.attribute:
            return dataset
        value = getattr(dataset, "__dict__", {}).get(self.attribute)
        if self.entry is None:
            return value
        try:
            return value[self.entry]  # type: ignore[index]
        except (LookupError, TypeError):
            return None


def columns_of(dataset: Any) -> tuple[Column, ...]:
    """Arrays, tensors of the CPU, lists and dicts of one entry a row.

    Looked at are the dataset's own attributes and what lies in a tuple, a short list or a short dict of them. What a
    library keeps in classes of its own is left alone.
    """
    try:
        count = len(dataset)
    except Exception:  # noqa: BLE001 - a dataset may refuse, or fail in a way of its own
        return ()
    if type(dataset) is list:
        return (Column(""),)
    return tuple(column for column in _attributes(dataset) if _has(column.of(dataset), count))[:MOST_COLUMNS]


def _attributes(dataset: Any) -> Iterator[Column]:
    for name, value in list(getattr(dataset, "__dict__", {}).items()):
        yield Column(name)
        if type(value) is tuple or (type(value) is list and len(value) <= MOST_COLUMNS):
            yield from (Column(name, i) for i in range(len(value)))
        elif type(value) is dict and len(value) <= MOST_COLUMNS:
            yield from (Column(name, key) for key in value if isinstance(key, str))


def _has(value: Any, count: int) -> bool:
    """Whether there is an entry for each row; a dict by number may still be filled."""
    if type(value) in (np.ndarray, np.memmap):
        return value.ndim > 1 and len(value) == count and value.flags.writeable
    torch = sys.modules.get("torch")
    if torch is not None and type(value) is torch.Tensor:
        return bool(value.ndim > 1 and len(value) == count and value.device.type == "cpu"
                    and value.layout is torch.strided)
    if type(value) is dict:
        return len(value) <= count and all(type(k) is int for k in list(value)[:4])
    return type(value) is list and len(value) == count


def mark_of(column: Any, row: int) -> int | None:
    """A checksum of an entry; None where there is none yet, or nothing that could be compared."""
    try:
        entry = column[row]
    except (LookupError, TypeError):
        return None
    parts = list(_parts(entry))
    if not parts:
        return None
    mark = 0
    for part in parts:
        mark = zlib.crc32(part, mark)
    return mark


def _parts(entry: Any, depth: int = 2) -> Iterator[bytes]:
    """Bytes of the arrays, texts and lists in an entry. Single numbers are left out: they may count visits."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(entry, torch.Tensor):
        if type(entry) is torch.Tensor and entry.device.type == "cpu" and entry.layout is torch.strided:
            flat = entry.detach().reshape(-1)
            if flat.numel() >= FEWEST_VALUES and flat.numel() * flat.element_size() <= MOST_BYTES:
                yield flat.contiguous().view(torch.uint8).numpy().tobytes()
    elif isinstance(entry, np.ndarray):
        if entry.size >= FEWEST_VALUES and entry.nbytes <= MOST_BYTES and entry.dtype != object:
            yield np.ascontiguousarray(entry).tobytes()
    elif isinstance(entry, (str, bytes)):
        yield entry.encode(errors="replace") if isinstance(entry, str) else entry
    elif type(entry) in (list, tuple):
        yield from _of_list(entry, depth)
    elif type(entry) is dict and depth:
        for key, value in list(_items(entry)):
            for part in _parts(value, depth - 1):
                yield repr(key).encode(errors="replace")
                yield part


def _items(entry: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    yield from ((k, v) for k, v in entry.items() if isinstance(k, (str, int)))


def _of_list(entry: Sequence[Any], depth: int) -> Iterator[bytes]:
    if all(type(v) in (int, float, bool, str) for v in entry):
        if len(entry) >= FEWEST_VALUES and len(entry) * 8 <= MOST_BYTES:
            yield repr(entry).encode(errors="replace")
    elif depth:
        for value in entry[:64]:
            yield from _parts(value, depth - 1)
