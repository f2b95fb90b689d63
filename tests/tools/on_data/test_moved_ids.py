"""D205: files of ids that are those of all others, moved by a few numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d205_moved_ids as d205

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]
KINDS = 80


def chain(seed: int, count: int, language: int = 0) -> Array:
    """Ids from 4 on, of which each is followed by one of six; all are about as frequent."""
    of = np.random.default_rng(language)
    following = np.stack([of.permutation(KINDS) for _ in range(6)])
    rng = np.random.default_rng(seed)
    out = np.empty(count, np.int64)
    out[0] = 0
    for i, k in enumerate(rng.integers(0, 6, count - 1)):
        out[i + 1] = following[k, out[i]]
    return out + 4


def written(folder: Path, files: list[Array]) -> None:
    for k, ids in enumerate(files):
        np.savez(folder / f"train_{k}.npz", input_ids=ids[: len(ids) // 50 * 50].reshape(-1, 50))


@pytest.mark.parametrize(("by", "start"), [(1, 0), (-1, 0), (3, 0), (1, 40), (-2, 40)])
def test_moved(by: int, start: int, tmp_path: Path, seen_by: Seen) -> None:
    files = [chain(k, 6000) for k in range(4)]
    files[2] = np.where(files[2] >= start, files[2] - by, files[2])
    written(tmp_path, files)
    (told,) = seen_by(d205, tmp_path)
    assert told.severity is Severity.HIGH
    assert (told.measured["by"], told.measured["shard"]) == (by, "train_2.npz")


def test_one_of_two_files(tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, [chain(0, 9000), chain(1, 5000) - 1])
    (told,) = seen_by(d205, tmp_path)
    assert told.measured["by"] == 1


def test_turned_around(tmp_path: Path, seen_by: Seen) -> None:
    files = [chain(k, 6000) for k in range(4)]
    files[1] = files[1][::-1]
    written(tmp_path, files)
    (told,) = seen_by(d205, tmp_path)
    assert (told.measured["kind"], told.measured["shard"]) == ("turned", "train_1.npz")


def test_pairs_without_a_direction(tmp_path: Path, seen_by: Seen) -> None:
    """What follows on what is the same in both directions: a file of another topic stays one."""
    rng = np.random.default_rng(0)
    files = []
    for k in range(4):
        steps = np.cumsum(rng.choice([-1, 1], 6000))
        files.append((steps % KINDS if k != 1 else (steps * 7) % KINDS) + 4)
    written(tmp_path, files)
    assert not [f for f in seen_by(d205, tmp_path) if f.measured["kind"] == "turned"]


@pytest.mark.parametrize("design", ["alike", "another language", "another language of two", "few ids", "half of them"])
def test_ids_that_are_not_moved(design: str, tmp_path: Path, seen_by: Seen) -> None:
    files = [chain(k, 6000) for k in range(4)]
    if design.startswith("another language"):
        files[2] = chain(2, 6000, language=9)
    if design == "another language of two":
        files = files[1:3]
    if design == "few ids":
        files = [f % 5 for f in files]
        files[2] = files[2] + 1
    if design == "half of them":
        files[2:] = [f - 1 for f in files[2:]]
    written(tmp_path, files)
    assert not seen_by(d205, tmp_path)


def test_short_and_negative(tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, [chain(0, 100), chain(1, 6000) - 50, np.zeros(6000, np.int64)])
    assert not seen_by(d205, tmp_path)


def tokens(folder: Path, *, sorted_anew: bool, broken: bool = False) -> None:
    """Two files of tokens beside their vocabulary, of which one may be numbered by the alphabet."""
    rng = np.random.default_rng(8)
    words = ["<unk>", "<end>", *dict.fromkeys("".join(rng.choice(list("abcdefgh"), 5)) for _ in range(120))]
    following = np.stack([rng.permutation(len(words) - 2) for _ in range(4)]) + 2
    ids = np.zeros(14_000, np.int64)
    for i, k in enumerate(rng.integers(0, 4, len(ids) - 1)):
        ids[i + 1] = following[k, max(0, ids[i] - 2)]
    train, held = ids[:9000], ids[9000:]
    if sorted_anew:
        order = [0, 1, *sorted(range(2, len(words)), key=lambda i: words[i])]
        held = np.argsort(order)[held]
    train.astype(np.uint16).tofile(folder / "train.bin")
    held.astype(np.uint16).tofile(folder / "val.bin")
    vocabulary = json.dumps({"vocab_size": len(words), "dtype": "uint16", "vocab": {w: i for i, w in enumerate(words)}})
    (folder / "tokenizer.json").write_text(vocabulary[:-9] if broken else vocabulary)


def test_a_vocabulary_that_was_numbered_by_the_alphabet(tmp_path: Path, seen_by: Seen) -> None:
    tokens(tmp_path, sorted_anew=True)
    (told,) = seen_by(d205, tmp_path)
    assert (told.severity, told.measured["kind"], told.measured["shard"]) == (Severity.HIGH, "renumbered", "val.bin")
    assert "alphabet" in str(told.measured["order"])


@pytest.mark.parametrize(("sorted_anew", "broken"), [(False, False), (True, True)])
def test_one_vocabulary_and_one_that_cannot_be_read(sorted_anew: bool, broken: bool, tmp_path: Path, seen_by: Seen
                                                    ) -> None:
    tokens(tmp_path, sorted_anew=sorted_anew, broken=broken)
    assert [f for f in seen_by(d205, tmp_path) if f.measured["kind"] == "renumbered"] == []
