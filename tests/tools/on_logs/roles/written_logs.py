"""Logs of one run under many names and in many formats, as a script of its own would write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.run import Run

Floats = NDArray[np.float64]
Rows = Sequence[Mapping[str, float]]


def _digits(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e9 else f"{value:.6g}"


def _number(value: float) -> float | int:
    return int(value) if _digits(value).lstrip("-").isdigit() else float(_digits(value))


def as_json(rows: Rows) -> str:
    return "".join(json.dumps({k: _number(v) for k, v in row.items()}) + "\n" for row in rows)


def as_pairs(rows: Rows) -> str:
    return "".join(" ".join(f"{k}={_digits(v)}" for k, v in row.items()) + "\n" for row in rows)


def as_colons(rows: Rows) -> str:
    return "".join("INFO " + " | ".join(f"{k}: {_digits(v)}" for k, v in row.items()) + "\n" for row in rows)


def as_csv(rows: Rows) -> str:
    names = list(rows[0])
    return ",".join(names) + "\n" + "".join(",".join(_digits(row[n]) for n in names) + "\n" for row in rows)


FORMATS: dict[str, Callable[[Rows], str]] = {"json": as_json, "pairs": as_pairs, "colons": as_colons, "csv": as_csv}


def rows(step: str, every: int, **columns: Floats) -> list[dict[str, float]]:
    """Records with a counter and these columns (two underscores in a name stand for a slash)."""
    n = len(next(iter(columns.values())))
    return [{step: float((k + 1) * every), **{name.replace("__", "/"): float(v[k]) for name, v in columns.items()}}
            for k in range(n)]


def run_of(folder: Path, text: str, form: str, code: str = "") -> Run:
    """The run that is read of a log, with a script beside it where `code` is given."""
    folder.mkdir(exist_ok=True)
    suffix = {"json": "jsonl", "csv": "csv"}.get(form, "log")
    (folder / f"out.{suffix}").write_text(text, encoding="utf-8")
    if code:
        (folder / "train.py").write_text(code, encoding="utf-8")
    return read_run([folder])


def noisy_fall(n: int, seed: int, start: float = 2.0, end: float = 0.4, scatter: float = 0.03) -> Floats:
    rng = np.random.default_rng(seed)
    return np.asarray((end + (start - end) * np.exp(-4 * np.arange(n) / n)) * (1 + scatter * rng.standard_normal(n)))


def cosine(n: int, peak: float = 3e-3) -> Floats:
    return np.asarray(peak * 0.5 * (1 + np.cos(np.pi * np.arange(n) / n)))
