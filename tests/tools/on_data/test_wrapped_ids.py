"""Ids beyond the stored type, in files of tokens and arrays, and large vocabularies of which the data use a part."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d147_ids_wrapped

Seen = Callable[[ModuleType, Path], list[Finding]]
END = 100_257


def documents(rng: np.random.Generator, words: int, end: int, count: int = 300) -> Any:
    """Ids of documents one behind the other, each with its end."""
    ids = [np.append(np.minimum(rng.zipf(1.2, 200), rng.integers(1, words, 200)), end) for _ in range(count)]
    return np.concatenate(ids)


def stored(folder: Path, form: str, ids: Any, dtype: str) -> None:
    wrapped = ids.astype(np.int64).astype(dtype)
    if form == "bin":
        wrapped.tofile(folder / "train.bin")
    elif form == "npz":
        np.savez(folder / "train.npz", input_ids=wrapped[: len(wrapped) // 64 * 64].reshape(-1, 64))
    else:
        np.save(folder / "tokens.npy", wrapped)


@pytest.mark.parametrize("form", ["bin", "npz", "npy"])
def test_the_end_of_a_document_became_a_word(form: str, tmp_path: Path, seen_by: Seen) -> None:
    stored(tmp_path, form, documents(np.random.default_rng(0), 60_000, END), "uint16")
    (tmp_path / "vocab.json").write_text(json.dumps({"<|endoftext|>": END, "a": 1}))
    (finding,) = seen_by(d147_ids_wrapped, tmp_path)
    assert finding.severity is Severity.HIGH
    assert finding.measured["kind"] == "special"
    assert "34,721" in finding.statement


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "kind"), [("uint16", "full"), ("int16", "negative")])
def test_ids_of_a_large_vocabulary_reach_the_end_of_the_type(
    dtype: str, kind: str, tmp_path: Path, seen_by: Seen
) -> None:
    stored(tmp_path, "npz", documents(np.random.default_rng(1), 100_000, 5), dtype)
    (tmp_path / "vocab.json").write_text(json.dumps({f"w{k}": k for k in range(100_000)}))
    (finding,) = seen_by(d147_ids_wrapped, tmp_path)
    assert finding.measured["kind"] == kind
    assert finding.measured["highest"] == 99_999


@pytest.mark.parametrize("form", ["bin", "npz"])
def test_a_vocabulary_of_which_the_data_use_the_lower_part(form: str, tmp_path: Path, seen_by: Seen) -> None:
    stored(tmp_path, form, documents(np.random.default_rng(2), 50_000, 50_256), "uint16")
    told = {"vocab_size": 100_352, "<|endoftext|>": 50_256, "<|fim_prefix|>": 100_258}
    (tmp_path / "config.json").write_text(json.dumps(told))
    assert not seen_by(d147_ids_wrapped, tmp_path)


def test_ignored_labels_are_no_ids(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 30_000, (200, 32)).astype(np.int16)
    ids[:, :9] = -100
    np.savez(tmp_path / "train.npz", labels=ids)
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 50_000}))
    assert not seen_by(d147_ids_wrapped, tmp_path)


def test_vocabularies_that_are_none(tmp_path: Path) -> None:
    stored(tmp_path, "npz", documents(np.random.default_rng(4), 500, 5), "uint16")
    for k, said in enumerate(({"vocab": 3}, {"vocab": {"a": [1]}}, {f"w{i}": -i for i in range(200)},
                              {"added_tokens": [3, {"id": None}]}, {f"w{i}": 10**30 + i for i in range(200)})):
        (tmp_path / f"vocab_{k}.json").write_text(json.dumps(said))
    assert not examine([tmp_path]).notes
