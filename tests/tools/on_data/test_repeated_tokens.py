"""Files of tokens in which a stretch is there twice, and what text repeats by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules.d133_repeated_tokens import doubled, repeated


def text(count: int, rng: np.random.Generator) -> Any:
    """Documents of tokens as frequent as words are; 0 ends each."""
    tokens = np.minimum(rng.zipf(1.3, count), 4000)
    tokens[rng.integers(0, count, count // 300)] = 0
    return tokens.astype(np.uint16)


def found(folder: Path) -> list[Finding]:
    report = examine([folder])
    assert not report.notes
    return [f for f in report.findings if f.rule == "D133" and f.severity is not Severity.INFO]


def _doubled(t: Any) -> Any:
    return np.concatenate([t[:9000], np.repeat(t[9000:9400], 2), t[9400:]])


def _block(t: Any) -> Any:
    return np.concatenate([t[:9000], t[8200:9000], t[9000:]])


@pytest.mark.parametrize("form", ["bin", "npy"])
@pytest.mark.parametrize(("change", "kind"), [(_doubled, "doubled"), (_block, "block")])
def test_a_stretch_that_is_there_twice(change: Any, kind: str, form: str, tmp_path: Path) -> None:
    tokens = change(text(30_000, np.random.default_rng(0)))
    if form == "bin":
        tokens.tofile(tmp_path / "train.bin")
    else:
        np.save(tmp_path / "train.npy", tokens)
    (told,) = found(tmp_path)
    assert told.measured["kind"] == kind
    assert np.abs(np.subtract(told.measured["rows"], (9000, 9799))).max() <= 3


def _padded(t: Any) -> Any:
    t[500:900] = 0
    return np.concatenate([t, np.tile([5, 5, 6, 6], 200).astype(t.dtype)])


def _two_channels(t: Any) -> Any:
    return np.repeat(t, 2)


def _document_twice(t: Any) -> Any:
    t[8000], t[8001:8700], t[8700] = 0, np.maximum(t[8001:8700], 1), 0
    return np.concatenate([t[:8701], t[8001:8701], t[8701:]])


def _table(t: Any) -> Any:
    return np.concatenate([t[:5000], np.tile(t[:40], 60), t[5000:]])


def _licence(t: Any) -> Any:
    return np.concatenate([t[:5000], t[:900], t[5000:12000], t[:900], t[12000:]])


@pytest.mark.parametrize("change", [_padded, _two_channels, _document_twice, _table, _licence])
def test_what_text_repeats_by_itself(change: Callable[[Any], Any], tmp_path: Path) -> None:
    change(text(30_000, np.random.default_rng(1))).tofile(tmp_path / "train.bin")
    assert not found(tmp_path)


def test_a_file_that_is_cut_within_a_token(tmp_path: Path) -> None:
    (tmp_path / "train.bin").write_bytes(_doubled(text(30_000, np.random.default_rng(2))).tobytes()[:-1])
    assert [f.measured["kind"] for f in found(tmp_path)] == ["doubled"]


def test_false_alarms_are_rare() -> None:
    rng = np.random.default_rng(3)
    for vocabulary in (40, 400, 4000):
        for _ in range(100):
            tokens = np.minimum(rng.zipf(1.2, 4000), vocabulary).astype(np.int64)
            assert doubled(tokens, 1) is None
            assert repeated(tokens, 1) is None
