"""Every type of Arrow, in parquet and in Arrow files: it is read, or said to be not read, and the command goes on."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data import examine
from traindx_tools.on_data.readers import read_file
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.rules import d127_rounded_ids
from traindx_tools.on_data.shard import Shard

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12, 30, 1)
ROWS = 40

TYPES: dict[str, tuple[Any, Any]] = {
    "date32": (pa.date32(), DAY),
    "date64": (pa.date64(), DAY),
    "time32s": (pa.time32("s"), NOON.time()),
    "time32ms": (pa.time32("ms"), NOON.time()),
    "time64us": (pa.time64("us"), NOON.time()),
    "time64ns": (pa.time64("ns"), 10**9 + 1),
    "timestamp": (pa.timestamp("us"), NOON),
    "timestamp_ns": (pa.timestamp("ns"), 1_700_000_000_000_000_001),
    "timestamp_zone": (pa.timestamp("ms", tz="Europe/Paris"), NOON),
    "duration": (pa.duration("ms"), datetime.timedelta(seconds=90)),
    "interval": (pa.month_day_nano_interval(), (1, 2, 3)),
    "decimal128": (pa.decimal128(12, 2), decimal.Decimal("19.99")),
    "decimal256": (pa.decimal256(50, 5), decimal.Decimal("19.99")),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "red"),
    "dictionary_date": (pa.dictionary(pa.int8(), pa.date32()), DAY),
    "dictionary_int": (pa.dictionary(pa.int8(), pa.int64()), 7),
    "binary": (pa.binary(), b"\x00\xff"),
    "large_binary": (pa.large_binary(), b"\x00\xff"),
    "fixed_binary": (pa.binary(2), b"\x00\xff"),
    "string": (pa.string(), "a word"),
    "large_string": (pa.large_string(), "a word"),
    "list": (pa.list_(pa.int32()), [1, 2]),
    "large_list": (pa.large_list(pa.float32()), [1.0, 2.0]),
    "fixed_list": (pa.list_(pa.float32(), 2), [1.0, 2.0]),
    "list_half": (pa.list_(pa.float16()), [np.float16(1)]),
    "list_text": (pa.list_(pa.string()), ["a", "b"]),
    "list_dates": (pa.list_(pa.date32()), [DAY]),
    "list_list": (pa.list_(pa.list_(pa.int64())), [[1, 2], [3, 4]]),
    "list_struct": (pa.list_(pa.struct({"a": pa.int64()})), [{"a": 1}]),
    "list_ns": (pa.list_(pa.timestamp("ns")), [1_700_000_000_000_000_001]),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.date32()}), {"a": 1, "b": DAY}),
    "map": (pa.map_(pa.string(), pa.int64()), [("a", 1)]),
    "null": (pa.null(), None),
    "bool": (pa.bool_(), True),
    "uint64": (pa.uint64(), 2**64 - 1),
    "int8": (pa.int8(), -3),
    "float16": (pa.float16(), np.float16(1.5)),
    "float64": (pa.float64(), 0.5),
}


class _Labelled(pa.ExtensionType):  # type: ignore[misc, name-defined]
    """A type that is known here alone."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.labelled")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> _Labelled:
        return cls()


def _write(path: Path, columns: dict[str, Any], form: str) -> None:
    table = pa.table(columns)
    if form == "parquet":
        pq.write_table(table, path)
        return
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)


def _read(path: Path, form: str) -> Shard:
    (shard,) = read_file(path, path.name, form, Bounds())
    return shard


@pytest.mark.parametrize("empty", [False, True], ids=["full", "with empty cells"])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_type_is_read_or_named(kind: str, form: str, empty: bool, tmp_path: Path) -> None:
    type_, value = TYPES[kind]
    values = [None if empty and i % 7 == 3 else value for i in range(ROWS)]
    try:
        field = pa.array(values, type_)
        path = tmp_path / f"train.{form}"
        _write(path, {"x": pa.array(np.random.default_rng(0).normal(size=ROWS)), "field": field}, form)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        pytest.skip("pyarrow cannot write it")
    report = examine([tmp_path])
    assert not report.notes
    (shard,) = report.sets[0].shards
    read = [n for n in shard.columns if n == "field" or n.startswith(("field.", "field["))]
    assert read or any("'field'" in n and "was not read" in n for n in shard.notes)
    assert read or kind in ("list_ns", "list_list")
    assert all(shard.columns[n].rows == ROWS for n in shard.columns)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_dates_and_decimals_keep_their_values(form: str, tmp_path: Path) -> None:
    days = [datetime.date(2024, 1, 1), None, datetime.date(1969, 12, 31)]
    cents = [decimal.Decimal("1.25"), decimal.Decimal("-3.50"), None]
    path = tmp_path / f"train.{form}"
    _write(path, {"day": pa.array(days, pa.date32()), "price": pa.array(cents, pa.decimal128(9, 2)),
                  "at": pa.array([NOON.time()] * 3, pa.time32("s")),
                  "big": pa.array([2**64 - 1, 0, 1], pa.uint64())}, form)
    columns = _read(path, form).columns
    assert columns["day"].values[[0, 2]].tolist() == [1_704_067_200, -86_400]
    assert np.array_equal(np.asarray(columns["day"].missing), [False, True, False])
    assert columns["price"].values[:2].tolist() == [1.25, -3.5]
    assert set(columns["at"].values) <= {45_001, 45_001_000}  # parquet has no seconds
    assert columns["big"].values[0] == 2**64 - 1


def test_extension_types(tmp_path: Path) -> None:
    storage = pa.array(range(ROWS), pa.int64())
    _write(tmp_path / "train.arrow", {"y": pa.ExtensionArray.from_storage(_Labelled(), storage)}, "arrow")
    assert _read(tmp_path / "train.arrow", "arrow").columns["y"].values.tolist() == list(range(ROWS))


def test_a_field_of_each_struct(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    _write(tmp_path / "train.parquet", {"meta": pa.array(rows)}, "parquet")
    columns = _read(tmp_path / "train.parquet", "parquet").columns
    assert columns["meta.a"].values.tolist() == [1, 2]
    assert columns["meta.b"].texts == ("x", "y")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    _write(path, {"day": pa.array([DAY] * ROWS, pa.date32())}, "parquet")
    path.write_bytes(path.read_bytes()[:-20])
    told = [f for f in examine([tmp_path]).findings if f.rule == "D118"]
    assert ["train.parquet" in str(f.where.file) for f in told] == [True]


def test_a_reader_that_fails_costs_its_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "a.parquet", {"x": pa.array(np.arange(ROWS))}, "parquet")
    np.save(tmp_path / "b.npy", np.arange(ROWS))

    def failing(*_: Any) -> Any:
        raise ZeroDivisionError("in the reader")

    monkeypatch.setattr("traindx_tools.on_data.readers.columnar.columns_in", failing)
    report = examine([tmp_path])
    notes = {Path(a.path).name: a.note for a in report.artifacts}
    assert notes["a.parquet"] == "not read: a defect of traindx: its reader failed (ZeroDivisionError: in the reader)"
    assert [s.format for d in report.sets for s in d.shards] == ["npy"]


def test_days_in_seconds_were_not_rounded(seen_by: Callable[[ModuleType, Path], list[Finding]], tmp_path: Path) -> None:
    days = [DAY + datetime.timedelta(days=k) for k in range(300)]
    _write(tmp_path / "train.parquet", {"day": pa.array(days, pa.date32())}, "parquet")
    assert seen_by(d127_rounded_ids, tmp_path) == []
