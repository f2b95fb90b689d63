"""Files of tokens beside a byte-pair encoding: whether it made them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d192_unmerged_pairs as d192

tokenizers = pytest.importorskip("tokenizers")
Seen = Callable[[ModuleType, Path], list[Finding]]
TEXTS = ("gradient tensor batch layer epoch learning weight momentum schedule token vocabulary attention residual "
         "normal sample dataset loader worker gather reduce scatter kernel stride padding",
         "river mountain forest meadow valley glacier harbour lighthouse orchard village bridge castle windmill "
         "station platform railway tunnel garden fountain market")
WORDS, OTHER = (t.split() for t in TEXTS)


def text(words: list[str], seed: int, count: int = 6000) -> str:
    rng = np.random.default_rng(seed)
    return " ".join(w + ("\n\n    " if i % 11 == 0 else "") for i, w in enumerate(rng.choice(words, count)))


def encoding(words: list[str], size: int = 420) -> Any:
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, special_tokens=["<eot>"], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator([text(words, 9)], trainer)
    return made


ONE, ANOTHER = encoding(WORDS + OTHER), encoding(OTHER)


def written(folder: Path, encodings: list[Any], dropout: float | None = None, texts: list[list[str]] | None = None
            ) -> Path:
    for i, one in enumerate(encodings):
        ids = one.encode(text((texts or [WORDS] * 9)[i], i)).ids
        np.array(ids, np.uint16).tofile(folder / f"train_{i:03d}.bin")
    told = json.loads(ONE.to_str())
    told["model"]["dropout"] = dropout
    (folder / "tokenizer.json").write_text(json.dumps(told))
    (folder / "meta.json").write_text(json.dumps({"vocab_size": 420, "dtype": "uint16"}))
    return folder


def test_a_file_of_another_encoding_is_named(tmp_path: Path, seen_by: Seen) -> None:
    (one,) = seen_by(d192, written(tmp_path, [ONE, ONE, ANOTHER, ONE]))
    assert one.severity is Severity.HIGH
    assert (one.measured["shard"], one.measured["kind"]) == ("train_002.bin", "shard")
    assert float(one.measured["usual"]) < 1e-3 < 0.02 < float(one.measured["share"])  # type: ignore[arg-type]


@pytest.mark.parametrize(("encodings", "dropout", "texts"), [
    ([ONE] * 4, None, None), ([ONE, ONE, ONE, ONE], None, [WORDS, WORDS, OTHER, WORDS]),
    ([ONE, ONE, ANOTHER, ONE], 0.1, None),
])
def test_its_own_files_and_texts_of_another_topic_are_quiet(
        encodings: list[Any], dropout: float | None, texts: list[list[str]] | None, tmp_path: Path, seen_by: Seen
        ) -> None:
    assert seen_by(d192, written(tmp_path, encodings, dropout, texts)) == []


def test_rows_of_tokens_do_not_meet_over_their_ends(tmp_path: Path, seen_by: Seen) -> None:
    """Padded rows and lists: what stands at the end of one and the beginning of the next is no pair."""
    written(tmp_path, [ONE])
    (tmp_path / "train_000.bin").unlink()
    for part in range(3):
        rows = [(ANOTHER if part == 1 else ONE).encode(text(WORDS, i, 30)).ids[:40] for i in range(200)]
        (tmp_path / f"part{part}.jsonl").write_text("".join(json.dumps({"input_ids": r}) + "\n" for r in rows))
    assert [f.measured["shard"] for f in seen_by(d192, tmp_path)] == ["part1.jsonl"]


@pytest.mark.parametrize("model", [{}, {"model": {"vocab": {}, "merges": "x"}}, {"model": {"vocab": [], "merges": [1]}},
                                   {"model": {"vocab": {"a": 1}, "merges": [["a", "b", "c"], "a", ["a", 3]]}}])
def test_what_is_no_encoding_is_left_alone(model: dict[str, Any], tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, [ONE, ONE, ANOTHER])
    (tmp_path / "tokenizer.json").write_text(json.dumps(model))
    assert seen_by(d192, tmp_path) == []
