"""A short stretch of rows with the texts of their neighbours, by how much better those fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d153_shifted_field as d153
from traindx_tools.on_data.shifted_stretch import Shifted, shifted_stretch, spreads_of

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]


def manifest(folder: Path, move: Callable[[list[str]], list[str]], form: str = "jsonl", noise: float = 0.2) -> None:
    """Utterances of two to nine words, and how long each takes."""
    rng = np.random.default_rng(3)
    words = ["alpha", "bravo", "golf", "hotel", "india", "lima"]
    texts = [" ".join(rng.choice(words, rng.integers(2, 10))) for _ in range(240)]
    seconds = [0.3 + 0.2 * len(t.split()) + noise * 0.2 * rng.normal() for t in texts]
    said = move(texts)
    if form == "jsonl":
        rows = [json.dumps({"audio": f"clips/{i:04d}.wav", "duration": round(s, 3), "text": t})
                for i, (s, t) in enumerate(zip(seconds, said, strict=True))]
        (folder / "manifest.jsonl").write_text("\n".join(rows))
    else:
        (folder / "manifest.csv").write_text("\n".join(["duration,text", *(
            f"{s:.3f},{t}" for s, t in zip(seconds, said, strict=True))]))


def behind(start: int, end: int, lag: int) -> Callable[[list[str]], list[str]]:
    return lambda t: [t[i - lag] if start <= i < end else t[i] for i in range(len(t))]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize(("start", "end", "lag"), [(90, 140, 1), (20, 70, 2), (150, 215, -1)])
def test_texts_of_the_row_before(start: int, end: int, lag: int, form: str, tmp_path: Path, seen_by: Seen) -> None:
    manifest(tmp_path, behind(start, end, lag), form)
    (told,) = seen_by(d153, tmp_path)
    assert (told.severity, abs(told.measured["lag"])) == (Severity.HIGH, abs(lag))  # type: ignore[arg-type]
    first, last = told.measured["rows"]  # type: ignore[misc]
    assert abs(first - start) <= 4
    assert abs(last - end) <= 4


@pytest.mark.parametrize("design", ["sound", "noisy", "sorted", "short", "shuffled"])
def test_texts_that_may_be_so(design: str, tmp_path: Path, seen_by: Seen) -> None:
    moves: dict[str, Callable[[list[str]], list[str]]] = {
        "short": behind(100, 112, 1),
        "shuffled": lambda t: [*t[:90], *np.random.default_rng(1).permutation(t[90:150]).tolist(), *t[150:]]}
    manifest(tmp_path, moves.get(design, lambda t: t), noise=6.0 if design == "noisy" else 0.2)
    if design == "sorted":
        rows = (tmp_path / "manifest.jsonl").read_text().split("\n")
        (tmp_path / "manifest.jsonl").write_text("\n".join(sorted(rows, key=lambda r: json.loads(r)["duration"])))
    assert not seen_by(d153, tmp_path)


def found(pairs: Array, lag: int) -> Shifted | None:
    spreads = spreads_of([pairs], lag)
    return shifted_stretch(pairs, lag, spreads, 1.0) if spreads is not None else None


def test_chance_of_a_stretch() -> None:
    """Of 200 sets without a shift none is told, also where what is left of a row goes along with its neighbours'."""
    rng = np.random.default_rng(0)
    for k in range(200):
        left = rng.normal(0, 0.4, 300)
        if k % 2:
            left = np.convolve(left, np.ones(4) / 2, "same")
        said = rng.normal(size=300)
        pairs = np.stack([said, said + left], axis=1)
        assert all(found(pairs, lag) is None for lag in (1, -1, 3))


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_numbers_that_say_nothing(value: float) -> None:
    assert found(np.full((100, 2), value), 1) is None
