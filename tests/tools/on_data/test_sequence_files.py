"""FASTA and FASTQ: names, letters, what is said behind the name, and files that break off."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding
from traindx_tools.on_data.readers import format_of
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.fasta import read_fasta
from traindx_tools.on_data.rules import d196_other_strand as d196

Seen = Callable[[ModuleType, Path], list[Finding]]


def letters(seed: int, count: int, length: int = 120) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("ACGT"), length)) for _ in range(count)]


def fasta(some: list[str]) -> str:
    return "".join(f">r{i:03d} chr{i % 3}:{i}-{i + 9} label={i % 2}\n{s[:60]}\n{s[60:]}\n" for i, s in enumerate(some))


@pytest.mark.parametrize("packed", [False, True])
def test_fasta(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("a.fa.gz" if packed else "a.fa")
    some = letters(0, 12)
    with gzip.open(path, "wt") if packed else path.open("w") as out:
        out.write(fasta(some))
    assert format_of(path) == "fasta"
    (shard,) = read_fasta(path, "a.fa", Bounds())
    assert shard.columns["sequence"].texts == tuple(some)
    assert shard.columns["label"].values.tolist() == [0, 1] * 6
    assert shard.columns["description"].texts[1] == "chr1:1-10"


def test_fastq_with_a_record_that_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "a.fastq"
    whole = "".join(f"@q{i}\n{s}\n+\n{'I' * len(s)}\n" for i, s in enumerate(letters(1, 5, 40)))
    path.write_text(whole)
    (shard,) = read_fasta(path, "a", Bounds())
    assert (shard.rows, shard.damage) == (5, ())
    assert shard.columns["mean_quality"].values.tolist() == [73.0] * 5
    path.write_text(whole[:-10])
    (shard,) = read_fasta(path, "a", Bounds())
    assert [d.row for d in shard.damage] == [4]


@pytest.mark.parametrize("text", ["", "hello\nworld\n", ">one\nACGT\n", "@", "\x00\x01\x02"])
def test_no_sequences(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.fasta"
    path.write_text(text)
    with pytest.raises(UnreadableInput):
        read_fasta(path, "a", Bounds())


def test_held_out_sequences_that_are_the_other_strand(tmp_path: Path, seen_by: Seen) -> None:
    train, test = letters(2, 200), letters(3, 60)
    turned = [s[::-1].translate(str.maketrans("ACGT", "TGCA")) for s in train[:40]]
    (tmp_path / "train.fa").write_text(fasta(train))
    (tmp_path / "test.fa").write_text(fasta(test + turned))
    assert [f.measured["field"] for f in seen_by(d196, tmp_path)] == ["sequence"]
    (tmp_path / "test.fa").write_text(fasta(test))
    assert not seen_by(d196, tmp_path)
