"""D209: offsets into a file of tokens that point beside where documents begin, in a stretch of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d209_offsets_off as d209

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]


def packed(seed: int = 0, documents: int = 400, mark: int = 0, at_end: bool = False) -> tuple[Array, Array]:
    """Tokens of documents of 20 to 60, each with a mark at its beginning or end, and where they begin."""
    rng = np.random.default_rng(seed)
    parts = [rng.integers(5, 900, rng.integers(20, 60)) for _ in range(documents)]
    for part in parts:
        part[-1 if at_end else 0] = mark
    return np.concatenate(parts).astype(np.uint16), np.cumsum([0, *map(len, parts)])


def written(folder: Path, tokens: Array, offsets: Array) -> None:
    tokens.tofile(folder / "text.bin")
    np.save(folder / "text_idx.npy", offsets.astype(np.int64))


@pytest.mark.parametrize("by", [1, -1, 2])
@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize(("first", "last"), [(150, 400), (30, 400), (100, 180)])
def test_a_stretch_that_is_off(by: int, at_end: bool, first: int, last: int, tmp_path: Path, seen_by: Seen) -> None:
    tokens, offsets = packed(at_end=at_end)
    offsets[first:last] += by
    written(tmp_path, tokens, offsets)
    (told,) = seen_by(d209, tmp_path)
    assert told.severity is Severity.HIGH
    assert (told.measured["by"], told.measured["rows"]) == (by, (first, last - 1))


@pytest.mark.parametrize("design", ["right", "marks at the end", "no marks", "a common token", "lengths"])
def test_offsets_that_are_right(design: str, tmp_path: Path, seen_by: Seen) -> None:
    tokens, offsets = packed(at_end=design == "marks at the end")
    if design == "no marks":
        tokens[tokens == 0] = np.random.default_rng(1).integers(5, 900, int((tokens == 0).sum()))
        offsets[100:200] += 1
    if design == "a common token":
        tokens = np.where(np.random.default_rng(2).random(len(tokens)) < 0.5, 0, tokens).astype(np.uint16)
    if design == "lengths":
        offsets = np.diff(offsets)
    written(tmp_path, tokens, offsets)
    assert not seen_by(d209, tmp_path)


def test_offsets_beyond_the_tokens_and_of_nothing(tmp_path: Path, seen_by: Seen) -> None:
    tokens, offsets = packed()
    written(tmp_path, tokens, np.concatenate([offsets, [10**12]]))
    assert not seen_by(d209, tmp_path)
    written(tmp_path, tokens[:0], offsets)
    assert not seen_by(d209, tmp_path)
    written(tmp_path, tokens, np.zeros(500))
    assert not seen_by(d209, tmp_path)
