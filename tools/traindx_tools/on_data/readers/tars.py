"""Tar archives in WebDataset's form: files that share a name up to the first dot are the fields of one record.

Members are read from the stream and never unpacked to disk; links, devices and names that lead out are refused.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array, Column, Damage
from traindx_tools.on_data.readers.arrays import RawBytes, Serialised, sequence_column, sizes_of
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import Broken, array_from
from traindx_tools.on_data.readers.pictures import picture_header
from traindx_tools.on_data.readers.records import columns_of, flattened
from traindx_tools.on_data.readers.sound import flat_tops, is_turned, wave_header, wraps_at_full_scale
from traindx_tools.on_data.readers.tar_members import members_of, opened_tar
from traindx_tools.on_data.readers.thumbnails import Thumbnails
from traindx_tools.on_data.shard import Shard

_INTEGER = frozenset({"cls", "cls2", "index", "label"})
_TEXT = frozenset({"txt", "text", "transcript", "caption"})
_PICTURE = frozenset({"jpg", "jpeg", "png", "gif", "bmp", "webp"})


def read_tar(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The records of an archive. Raises UnreadableInput; Broken where the archive ends early."""
    keys: list[str] = []
    records: list[dict[str, Any]] = []
    arrays: dict[str, list[Any]] = {}
    raw = RawBytes()
    pictures = Thumbnails(bounds)
    damage: list[Damage] = []
    notes: list[str] = []
    try:
        with opened_tar(path) as archive:
            for key, field, data in members_of(archive, bounds):
                if not keys or keys[-1] != key:
                    if len(records) >= bounds.rows or bounds.over:
                        notes.append(f"only the first {len(records):,} records were read")
                        break
                    keys.append(key)
                    records.append({})
                _take(records[-1], arrays, field, data, len(records) - 1, damage, raw, pictures)
        if bounds.over and not notes:
            notes.append(f"the time was used up: only the first {len(records):,} records were read")
    except (tarfile.TarError, EOFError, OSError) as error:
        if not records:
            raise Broken(f"the archive is damaged ({str(error)[:80]})") from None
        damage.append(Damage(f"the archive ends early, within record {keys[-1]} or behind it", row=len(records) - 1))
    if not records:
        raise UnreadableInput("; ".join(notes) or "an archive without records")
    if not notes and not damage and not _ends(path):
        damage.append(
            Damage(f"the archive ends behind record {keys[-1]} without its end mark: it was cut", row=len(keys) - 1)
        )
    tops = _tops(records)
    wraps = [r.pop("\0wraps", 0) for r in records]
    turned = [r.pop("\0turned", False) for r in records]
    damage += _incomplete(records, keys)
    told = [{k: v for k, v in r.items() if not k.startswith("\0")} for r in records]
    columns = columns_of(told, name) | _arrays(arrays, len(records), name)
    columns = pictures.with_orientations(columns) | pictures.columns(len(records), name)
    return (
        Shard(
            name,
            "tar",
            columns,
            len(records),
            len(records),
            row_names=tuple(keys),
            damage=tuple(damage),
            notes=tuple(notes),
            raw=raw.arrays(),
            flat_tops=tops,
            wraps=np.array(wraps, np.int64) if tops is not None else None,
            turned=np.array(turned) if tops is not None else None,
            sizes=sizes_of(told) | _sizes(arrays, len(records), columns),
        ),
    )


def _tops(records: list[dict[str, Any]]) -> Array | None:
    found = [r.pop("\0tops", (np.nan, np.nan)) for r in records]
    return np.array(found) if any(np.isfinite(level) for level, _ in found) else None


def _ends(path: Path) -> bool:
    """Whether an archive that is not packed ends with two blocks of zeros, as every writer of tar makes them."""
    with path.open("rb") as stream:
        if stream.read(265)[257:262] != b"ustar":
            return True
        stream.seek(-min(1024, path.stat().st_size), 2)
        return not any(stream.read())


def _take(
    record: dict[str, Any],
    arrays: dict[str, list[Any]],
    field: str,
    data: bytes,
    row: int,
    damage: list[Damage],
    raw: RawBytes,
    pictures: Thumbnails,
) -> None:
    kind = field.rpartition(".")[2]
    try:
        if kind in _INTEGER:
            record[field] = int(data)
        elif kind in _TEXT:
            record[field] = data.decode("utf-8")
        elif kind == "json":
            said = json.loads(data)
            record.update(flattened(said) if isinstance(said, dict) else {field: said})
        elif kind == "npy":
            arrays.setdefault(field, []).append((row, array_from(data)))
        elif kind in _PICTURE:
            record.update({f"{field}.{k}": v for k, v in picture_header(data).items()})
            record[field] = Serialised.of(data)
            pictures.take(field, data, row)
        elif kind == "wav":
            record.update({f"{field}.{k}": v for k, v in wave_header(data).items()})
            record["\0tops"] = flat_tops(data)
            record["\0wraps"] = wraps_at_full_scale(data)
            record["\0turned"] = is_turned(data)
            record[field] = Serialised.of(data)
        else:
            raw.take(field, data)
            record[field] = Serialised.of(data)
    except RecursionError:
        raise UnreadableInput(f"refused: record {row} is nested too deeply") from None
    except UnreadableInput as error:
        if str(error).startswith("refused"):
            raise
        damage.append(Damage(f"its {field} cannot be read: {error}", row=row))
    except ValueError as error:
        damage.append(Damage(f"its {field} cannot be read: {str(error)[:80]}", row=row))
    record[f"\0{field}"] = True


def _incomplete(records: list[dict[str, Any]], keys: list[str]) -> list[Damage]:
    """Records that lack a file that nearly all others have."""
    fields = {f for r in records for f in r if f.startswith("\0")}
    out = []
    for field in sorted(fields):
        lacking = [i for i, r in enumerate(records) if field not in r]
        if 0 < len(lacking) <= max(1, len(records) // 20) and len(records) >= 10:
            out += [Damage(f"it has no {field[1:]}, which the others have", row=i) for i in lacking]
    return out


def _arrays(arrays: dict[str, list[Any]], rows: int, name: str) -> dict[str, Column]:
    """Arrays of one shape and dtype as a field, and lists of numbers of any length."""
    out = {}
    for field, found in arrays.items():
        kinds = {a.dtype.kind for _, a in found}
        if len(found) != rows or not kinds <= set("iufb"):
            continue
        if len({(a.shape, a.dtype.str) for _, a in found}) == 1:
            out[field] = Column(field, "number", np.stack([a for _, a in found]), name)
        elif all(a.ndim == 1 for _, a in found) and len(kinds) == 1:
            out[field] = sequence_column(field, [a for _, a in found], name)
    return out


def _sizes(arrays: dict[str, list[Any]], rows: int, columns: Mapping[str, Column]) -> dict[str, Array]:
    """Items of the arrays that are no fields, as their shapes differ."""
    out = {}
    for field in (f for f in arrays if f not in columns):
        out[field] = np.full(rows, -1, np.int64)
        for row, array in arrays[field]:
            out[field][row] = array.size
    return out
