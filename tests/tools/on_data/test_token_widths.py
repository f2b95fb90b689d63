"""Files of tokens of another width than their siblings or than is declared, and what looks like it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data import run_data
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.tokens import read_tokens
from traindx_tools.on_data.rules import d105_other_form, d118_damaged

Seen = Callable[[ModuleType, Path], list[Finding]]


def text(rng: np.random.Generator, vocabulary: int = 50_000, count: int = 20_000) -> Any:
    return rng.zipf(1.25, count) % vocabulary


def even(rng: np.random.Generator, vocabulary: int = 50_000, count: int = 20_000) -> Any:
    return rng.integers(0, vocabulary, count)


@pytest.mark.parametrize("make", [text, even])
@pytest.mark.parametrize(("usual", "other"), [("uint16", "uint32"), ("uint32", "uint16")])
def test_one_file_of_another_width(make: Any, usual: str, other: str, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(5):
        make(rng).astype(other if i == 3 else usual).tofile(tmp_path / f"train_{i:03d}.bin")
    (told,) = seen_by(d105_other_form, tmp_path)
    assert told.measured["shard"] == "train_003.bin"
    assert (told.measured["dtype"], told.measured["expected"]) == (other, usual)
    assert ("40,000" if other == "uint32" else "10,000") in told.statement


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_a_declared_width(dtype: str, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    other = "uint32" if dtype == "uint16" else "uint16"
    for name in ("train", "val"):
        (tmp_path / name).mkdir()
        text(rng).astype(other if name == "val" else dtype).tofile(tmp_path / name / "tokens.bin")
    (tmp_path / "meta.json").write_text(json.dumps({"vocab_size": 50_000, "token_dtype": dtype}))
    (told,) = seen_by(d105_other_form, tmp_path)
    assert "val" in told.source
    assert f"its 1 sibling as {dtype} and meta.json says {dtype}" in told.statement


def test_all_files_of_another_width_than_declared(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for i in range(4):
        text(rng).astype(np.uint32).tofile(tmp_path / f"shard_{i}.bin")
    (tmp_path / "config.json").write_text(json.dumps({"data": {"dtype": "np.uint16"}, "dtype": "bfloat16"}))
    (told,) = seen_by(d105_other_form, tmp_path)
    assert "shard_0.bin and 3 more hold tokens as uint32, config.json says uint16" in told.statement


def test_the_width_that_the_code_reads(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    text(rng).astype(np.uint32).tofile(tmp_path / "train.bin")
    code = tmp_path / "train.py"
    code.write_text(
        "import numpy as np\n"
        "np.memmap('out.bin', dtype=np.uint32, mode='w+', shape=(9,))\n"
        "data = np.memmap('train.bin', dtype=np.uint16, mode='r')\n")
    (told,) = [f for f in run_data.of_run([], [code], tmp_path).findings if f.rule == "D105"]
    assert "train.py:3 says uint16" in told.statement


def two_widths(folder: Path, rng: np.random.Generator) -> None:
    for i in range(4):
        text(rng).astype(np.uint16 if i % 2 else np.uint32).tofile(folder / f"train_{i}.bin")


def two_series(folder: Path, rng: np.random.Generator) -> None:
    for i in range(3):
        text(rng).astype(np.uint16).tofile(folder / f"stories_{i}.bin")
    text(rng, 150_000).astype(np.uint32).tofile(folder / "web_0.bin")


def a_file_of_rare_words(folder: Path, rng: np.random.Generator) -> None:
    for i in range(4):
        (text(rng) if i else 20_000 + text(rng, 9000)).astype(np.uint16).tofile(folder / f"train_{i}.bin")


@pytest.mark.parametrize("make", [two_widths, two_series, a_file_of_rare_words])
def test_what_nothing_decides(make: Any, seen_by: Seen, tmp_path: Path) -> None:
    make(tmp_path, np.random.default_rng(4))
    assert seen_by(d105_other_form, tmp_path) == []


def test_files_that_are_broken(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for i in range(5):
        text(rng).astype(np.uint32 if i == 3 else np.uint16).tofile(tmp_path / f"train_{i}.bin")
    whole = (tmp_path / "train_3.bin").read_bytes()
    (tmp_path / "train_3.bin").write_bytes(whole[:-3])
    (tmp_path / "train_4.bin").write_bytes(rng.bytes(50_000))
    (tmp_path / "train_5.bin").write_bytes(b"\0" * 40)
    assert [f.measured["shard"] for f in seen_by(d105_other_form, tmp_path)] == ["train_3.bin"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_the_width_of_any_text(dtype: str, tmp_path: Path) -> None:
    """Six hundred texts of vocabularies from 4 to 60,000, short and long: not one is taken for the other width."""
    path = tmp_path / "tokens.bin"
    for seed in range(600):
        rng = np.random.default_rng(seed)
        vocabulary = int(4 * 15_000 ** rng.uniform())
        make = text if rng.random() < 0.5 else even
        ids = make(rng, vocabulary, int(rng.integers(300, 5000)))
        ids[0] = vocabulary  # a mark of the beginning that no other place has
        ids.astype(dtype).tofile(path)
        (shard,) = read_tokens(path, "tokens.bin", Bounds())
        assert shard.format == f"tokens ({dtype})", (seed, vocabulary)


def characters(count: int, seed: int = 0) -> Any:
    """Bytes of English-like text: sixty kinds, most of them letters."""
    rng = np.random.default_rng(seed)
    words = [bytes(rng.choice(list(b"etaoinshrdlucmfwypvbgkjqxz"), rng.integers(2, 9))) for _ in range(400)]
    made = b" ".join(words[i] for i in np.minimum(rng.zipf(1.3, count // 3), 400) - 1)
    return np.frombuffer(made[:count], np.uint8)


@pytest.mark.parametrize("size", [13_047, 400_001, 90_000])
def test_bytes_as_tokens_are_read_as_bytes(size: int, seen_by: Seen, tmp_path: Path) -> None:
    characters(size).tofile(tmp_path / "train.bin")
    (shard,) = read_tokens(tmp_path / "train.bin", "train.bin", Bounds())
    assert (shard.format, shard.total, shard.damage) == ("tokens (uint8)", size, ())
    assert seen_by(d118_damaged, tmp_path) == []


def test_a_cut_token_is_told_where_something_says_its_width(seen_by: Seen, tmp_path: Path) -> None:
    whole = text(np.random.default_rng(6)).astype(np.uint16).tobytes()
    (tmp_path / "train.bin").write_bytes(whole[:-1])
    assert seen_by(d118_damaged, tmp_path) == []  # nothing says that its numbers have two bytes
    meta = tmp_path / "meta.json"
    for said in ({"vocab_size": 50_000}, {"dtype": "uint16"}):
        meta.write_text(json.dumps(said))
        (told,) = seen_by(d118_damaged, tmp_path)
        assert "no multiple of 2: the last token is cut" in told.statement
    meta.write_text(json.dumps({"vocab_size": 256}))
    assert seen_by(d118_damaged, tmp_path) == []
    meta.unlink()
    (tmp_path / "train.bin").rename(tmp_path / "train_0.bin")
    for i in range(1, 6):
        text(np.random.default_rng(i)).astype(np.uint16).tofile(tmp_path / f"train_{i}.bin")
    (told,) = seen_by(d118_damaged, tmp_path)
    assert told.measured["shard"] == "train_0.bin"


def test_a_file_of_bytes_among_files_of_ids(seen_by: Seen, tmp_path: Path) -> None:
    for i in range(5):
        ids = characters(40_000) if i == 3 else text(np.random.default_rng(i)).astype(np.uint16)
        ids.tofile(tmp_path / f"train_{i}.bin")
    (told,) = seen_by(d105_other_form, tmp_path)
    assert "train_3.bin holds tokens as uint8, its 4 siblings as uint16" in told.statement
    assert "two tokens become one number, and its 40,000 tokens become 20,000" in told.statement


def test_a_text_beside_ids_of_a_declared_width(seen_by: Seen, tmp_path: Path) -> None:
    characters(40_000).tofile(tmp_path / "raw.bin")
    text(np.random.default_rng(0)).astype(np.uint16).tofile(tmp_path / "train.bin")
    (tmp_path / "meta.json").write_text(json.dumps({"dtype": "uint16"}))
    assert seen_by(d105_other_form, tmp_path) == []
