"""Tokens of another vocabulary in one file; other topics, and files that all differ, beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d142_odd_part

Seen = Callable[[ModuleType, Path], list[Finding]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
VOCABULARY, ODD = 1000, 4


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def text(seed: int, tokens: int = 16_000) -> Ints:
    """Tokens of which half follow the one before them, with the frequencies of words."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, VOCABULARY + 1)
    words = np.random.default_rng(9).permutation(VOCABULARY)
    following = np.random.default_rng(10).integers(0, VOCABULARY, (VOCABULARY, 3))
    ids, chosen, follows = (rng.choice(VOCABULARY, tokens, p=share / share.sum()), rng.integers(0, 3, tokens),
                            rng.random(tokens) < 0.5)
    for at in range(1, tokens):
        if follows[at]:
            ids[at] = following[ids[at - 1], chosen[at]]
    return np.asarray(words[ids])


def written(folder: Path, form: str, ids: Callable[[int], Ints]) -> None:
    for k in range(6):
        rows = ids(k).reshape(-1, 100)
        if form == "bin":
            rows.astype("<u2").tofile(folder / f"train_{k:03d}.bin")
        elif form == "npy":
            np.save(folder / f"train_{k:03d}.npy", rows.astype(np.int32))
        else:
            lines = (json.dumps({"input_ids": r.tolist()}) for r in rows)
            (folder / f"train_{k:03d}.jsonl").write_text("\n".join(lines) + "\n")


def renumbered(k: int) -> Ints:
    """One file whose ids from 300 on are those of an older vocabulary."""
    newer = np.concatenate([np.arange(300), 300 + np.roll(np.arange(VOCABULARY - 300), 37)])
    return np.asarray(newer[text(k)]) if k == ODD else text(k)


@pytest.mark.parametrize("form", ["bin", "npy", "jsonl"])
def test_an_older_vocabulary_in_one_file(form: str, tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, form, renumbered)
    (finding,) = alarms(seen_by(d142_odd_part, tmp_path))
    assert finding.measured["shard"] == f"train_{ODD:03d}.{form}"
    assert "pairs of neighbouring tokens" in finding.statement
    assert "an older vocabulary" in finding.statement


def topics(k: int) -> Ints:
    rng = np.random.default_rng(k)
    ids, own = text(k), rng.integers(0, VOCABULARY, 100)
    return np.where(rng.random(len(ids)) < 0.2, rng.choice(own, len(ids)), ids)


@pytest.mark.parametrize("form", ["bin", "jsonl"])
@pytest.mark.parametrize("ids", [text, topics])
def test_files_of_one_vocabulary(form: str, ids: Callable[[int], Ints], tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, form, ids)
    assert not alarms(seen_by(d142_odd_part, tmp_path))
