"""Streams of tokens of which a stretch stands in the training stream, and streams that are alike by nature."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data import examine

Array = np.ndarray[Any, Any]
VOCABULARY = 5000


def text(rng: np.random.Generator, tokens: int) -> Array:
    """Tokens as frequent as words are."""
    return np.minimum(rng.zipf(1.3, tokens) - 1, VOCABULARY - 1)


def told(folder: Path, train: Array, held: Array, form: str = "bin") -> list[Finding]:
    for name, values in (("train", train), ("val", held)):
        if form == "bin":
            values.astype("<u2").tofile(folder / f"{name}.bin")
        else:
            np.save(folder / f"{name}.npy", values.astype(np.int32))
    return [f for f in examine([folder]).findings if f.rule == "D113" and f.measured["kind"] == "across-splits"]


@pytest.mark.parametrize("form", ["bin", "npy"])
@pytest.mark.parametrize("start", [0, 40_001, 118_003])
def test_a_stretch_of_the_training_stream(form: str, start: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(start)
    train = text(rng, 120_000)
    held = np.concatenate([text(rng, 9_000), train[start : start + 1_900], text(rng, 9_000)])
    (found,) = told(tmp_path, train, held, form)
    first, last = found.measured["rows"]
    assert 9_000 <= first < last < 9_000 + 1_900
    assert last - first > 1_400
    assert found.where.file is not None
    assert found.where.file.endswith(f"val.{form}")


def apart(rng: np.random.Generator) -> tuple[Array, Array]:
    return text(rng, 80_000), text(rng, 20_000)


def licences(rng: np.random.Generator) -> tuple[Array, Array]:
    """The same page of terms stands at the end of each document, in training as well."""
    page = text(rng, 600)
    train = np.concatenate([np.concatenate([text(rng, 3_000), page]) for _ in range(20)])
    return train, np.concatenate([np.concatenate([text(rng, 3_000), page]) for _ in range(5)])


def padded(rng: np.random.Generator) -> tuple[Array, Array]:
    rows = [np.concatenate([text(rng, 200), np.zeros(300, np.int64)]) for _ in range(80)]
    return np.concatenate(rows[:60]), np.concatenate(rows[60:])


def counting(rng: np.random.Generator) -> tuple[Array, Array]:
    """Numbers of rows, each from 0 on."""
    return np.arange(30_000), np.arange(8_000)


def periodic(rng: np.random.Generator) -> tuple[Array, Array]:
    """Hours of the day and minutes of the hour."""
    return np.arange(60_000) % 1440, np.arange(7_000) % 1440


def one_quotation(rng: np.random.Generator) -> tuple[Array, Array]:
    train = text(rng, 80_000)
    return train, np.concatenate([text(rng, 20_000), train[500:640]])


@pytest.mark.parametrize("made", [apart, licences, padded, counting, periodic, one_quotation])
def test_streams_that_share_little_or_what_recurs(
    made: Callable[[np.random.Generator], tuple[Array, Array]], tmp_path: Path
) -> None:
    assert told(tmp_path, *made(np.random.default_rng(8))) == []


def test_streams_too_short_to_compare(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    assert told(tmp_path, text(rng, 80_000), np.zeros(0, np.int64)) == []
    assert told(tmp_path, text(rng, 40), text(rng, 30)) == []
