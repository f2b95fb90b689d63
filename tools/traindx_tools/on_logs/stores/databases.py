"""The databases of MLflow (`mlflow.db`) and trackio (`PROJECT.db`): their runs, by the tables that they have.

Tables from mlflow/store/tracking/dbmodels/models.py and trackio/sqlite_storage.py.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from traindx_tools.on_logs.artifacts import Source, in_database
from traindx_tools.on_logs.configs.flat import flat, scalar
from traindx_tools.on_logs.readers.columns import moment, number
from traindx_tools.on_logs.readers.json_records import flatten
from traindx_tools.on_logs.stores import sqlite
from traindx_tools.on_logs.stores.stored_run import MLFLOW, SYSTEM, TRACKIO, Point, StoredRun, run_of

MAX_RUNS = 200
"""Runs read of one database, the newest."""
MAX_POINTS = 20_000_000
_LARGEST = 1.797e308
"""MLflow writes infinities as the largest double."""
_MLFLOW = {"runs": {"run_uuid", "start_time", "lifecycle_stage"},
           "metrics": {"key", "value", "timestamp", "run_uuid", "step", "is_nan"}}
_TRACKIO = {"metrics": {"timestamp", "run_name", "step", "metrics"}}
Tables = Mapping[str, frozenset[str]]


def runs_in(source: Source) -> tuple[list[StoredRun], str] | None:
    """The runs of a database, the oldest first, and what was left out of it; None where it is of no tracker.

    Raises OSError, sqlite.Refused, sqlite3.Error.
    """
    assert source.local is not None
    with sqlite.opened(source.local) as connection:
        tables = sqlite.tables(connection)
        made = _mlflow if _has(tables, _MLFLOW) else _trackio if _has(tables, _TRACKIO) else None
        if made is None:
            return None
        whole = Source(str(source.local), local=source.local)
        runs, note = made(whole, connection, tables)
    if source.name == whole.name or in_database(source.name) is None:
        return runs, note
    return [r for r in runs if r.name.rpartition(":")[2] == source.name.rpartition(":")[2]], ""


def named_in(path: Path, name: str) -> list[str]:
    """The ids of MLflow's runs in a database that bear a name, the oldest first, deleted ones left out.

    Raises OSError, sqlite.Refused, sqlite3.Error.
    """
    with sqlite.opened(path) as connection:
        tables = sqlite.tables(connection)
        if not _has(tables, {"runs": {*_MLFLOW["runs"], "name"}}):
            return []
        rows = connection.execute("SELECT run_uuid, lifecycle_stage FROM runs WHERE name = ? ORDER BY start_time "
                                  f"LIMIT {MAX_RUNS}", (name,)).fetchall()
    return [r for r, stage in rows if stage != "deleted" and isinstance(r, str)]


def _has(tables: Tables, wanted: Mapping[str, set[str]]) -> bool:
    return all(columns <= tables.get(table, frozenset()) for table, columns in wanted.items())


def _mlflow(source: Source, database: sqlite3.Connection, tables: Tables) -> tuple[list[StoredRun], str]:
    every = database.execute("SELECT run_uuid, start_time, lifecycle_stage FROM runs ORDER BY start_time").fetchall()
    kept = [(r, t) for r, t, stage in every if stage != "deleted" and isinstance(r, str)]
    runs = []
    for run, started in kept[-MAX_RUNS:]:
        points, damaged = [], 0
        for row in database.execute("SELECT key, value, timestamp, step, is_nan FROM metrics WHERE run_uuid = ? "
                                    f"LIMIT {MAX_POINTS}", (run,)):
            point = _mlflow_point(*row)
            damaged += point is None
            points += [] if point is None else [point]
        config = {}
        if {"key", "value", "run_uuid"} <= tables.get("params", frozenset()):
            rows = database.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run,))
            config = {k: scalar(v) for k, v in rows if isinstance(k, str) and isinstance(v, str)}
        runs.append(_stored(source, run, MLFLOW, points, config, damaged, (number(started) or 0.0) / 1000))
    return runs, _left_out(len(kept), len(every) - len(kept))


def _mlflow_point(key: Any, value: Any, milliseconds: Any, step: Any, is_nan: Any) -> Point | None:
    read, time = number(value), number(milliseconds)
    if not isinstance(key, str) or read is None or time is None or isinstance(value, str):
        return None
    infinite = math.copysign(math.inf, read) if abs(read) >= _LARGEST else read
    at = number(step)
    return Point(key, math.nan if is_nan else infinite, time / 1000, math.nan if at is None else at)


def _trackio(source: Source, database: sqlite3.Connection, tables: Tables) -> tuple[list[StoredRun], str]:
    by = "run_id" if "run_id" in tables["metrics"] else "run_name"
    names = database.execute(f"SELECT {by}, run_name, timestamp FROM metrics WHERE {by} IS NOT NULL").fetchall()
    first: dict[str, tuple[str, float]] = {}
    for run, name, stamp in names:
        if isinstance(run, str):
            first.setdefault(run, (str(name), moment(stamp)))
    runs = []
    for run, (_, begun) in sorted(first.items(), key=lambda item: item[1][1])[-MAX_RUNS:]:
        points: list[Point] = []
        damaged = 0
        for table, prefix, step in (("metrics", "", "step"), ("system_metrics", SYSTEM, "NULL")):
            if {by, "timestamp", "metrics"} <= tables.get(table, frozenset()):
                rows = database.execute(f"SELECT timestamp, {step}, metrics FROM {table} WHERE {by} = ?", (run,))
                for row in rows:
                    found = list(_trackio_points(prefix, *row))
                    damaged += not found
                    points += found
        config = _trackio_config(database, tables, by, run)
        runs.append(_stored(source, run, TRACKIO, points, config, damaged, begun))
    return runs, _left_out(len(first), 0)


def _trackio_points(prefix: str, stamp: Any, step: Any, text: Any) -> Iterator[Point]:
    told = _object(text)
    at = number(step)
    for name, value in flatten(told).items():
        read = number(value)
        if read is not None:
            yield Point(f"{prefix}{name}", read, moment(stamp), math.nan if at is None else at)


def _trackio_config(database: sqlite3.Connection, tables: Tables, by: str, run: str) -> dict[str, Any]:
    if not {by, "config"} <= tables.get("configs", frozenset()):
        return {}
    rows = database.execute(f"SELECT config FROM configs WHERE {by} = ? LIMIT 1", (run,)).fetchall()
    told = _object(rows[0][0]) if rows else {}
    return flat({k: v for k, v in told.items() if not k.startswith("_")})


def _object(text: Any) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _stored(source: Source, run: str, form: str, points: list[Point], config: dict[str, Any], damaged: int,
            begun: float) -> StoredRun:
    name = f"{source.name}:{''.join(c for c in run[:80] if c.isprintable())}"
    note = "; ".join([*([f"{damaged} rows without a number: not used"] if damaged else []),
                      *([] if points else ["it holds no metrics"])])
    return StoredRun(name, data=b"", told=run_of(name, form, points, config, note),
                     written=begun if math.isfinite(begun) else 0.0)


def _left_out(kept: int, deleted: int) -> str:
    return "; ".join([*([f"only the newest {MAX_RUNS} of {kept} runs were read"] if kept > MAX_RUNS else []),
                      *([f"{deleted} deleted runs left out"] if deleted else [])])
