"""Labels beside ids, moved by one or by two, and held-out strands that are training strands turned around."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d195_sequences_apart as d195
from traindx_tools.on_data.rules import d196_other_strand as d196

Seen = Callable[[ModuleType, Path], list[Finding]]
Edit = Callable[[int, int, list[int], list[int]], list[int]]


def left(ids: list[int], by: int) -> list[int]:
    return ids[by:] + [-100] * by if by else list(ids)


def shards(folder: Path, edit: Edit, usual: int = 0) -> None:
    rng = np.random.default_rng(0)
    for i in range(4):
        lines = []
        for row in range(60):
            ids = rng.integers(3, 200, int(rng.integers(20, 60))).tolist()
            masked = [-100 if k < 8 else v for k, v in enumerate(left(ids, usual))]
            lines.append(json.dumps({"input_ids": ids, "labels": edit(i, row, ids, masked)}))
        (folder / f"train-{i:05d}.jsonl").write_text("\n".join(lines))


@pytest.mark.parametrize(("usual", "odd"), [(0, 1), (1, 2), (1, 0)])
def test_labels_that_are_moved_otherwise_in_one_file(usual: int, odd: int, tmp_path: Path, seen_by: Seen) -> None:
    shards(tmp_path, lambda i, r, ids, labels: left(ids, odd) if i == 2 else labels, usual)
    (found,) = seen_by(d195, tmp_path)
    assert (found.measured["usual"], found.measured["move"], found.measured["shard"]) == (usual, odd,
                                                                                         "train-00002.jsonl")
    assert found.severity is Severity.HIGH
    assert ("once too often" in found.statement) == (odd == 2)


def test_labels_that_are_turned_around_in_a_stretch(tmp_path: Path, seen_by: Seen) -> None:
    shards(tmp_path, lambda i, r, ids, labels: ids[::-1] if i == 1 and 20 <= r < 45 else labels)
    (found,) = seen_by(d195, tmp_path)
    assert (found.measured["kind"], found.measured["rows"]) == ("reversed", (20, 44))


def test_tasks_that_are_mixed_row_by_row_and_constant_ids_are_left_alone(tmp_path: Path, seen_by: Seen) -> None:
    shards(tmp_path, lambda i, r, ids, labels: left(ids, 1) if (r * 7 + i) % 5 == 0 else labels)
    assert seen_by(d195, tmp_path) == []
    shards(tmp_path, lambda i, r, ids, labels: [-100] * len(ids) if i == 2 else [7] * len(ids))
    assert seen_by(d195, tmp_path) == []


def test_labels_of_other_lengths_are_borne(tmp_path: Path, seen_by: Seen) -> None:
    shards(tmp_path, lambda i, r, ids, labels: labels[:-1] if i == 0 else [])
    assert seen_by(d195, tmp_path) == []


_PAIRS = str.maketrans("ACGT", "TGCA")
TURNS: dict[str, Callable[[str], str]] = {
    "reverse-complement": lambda s: s.translate(_PAIRS)[::-1], "complement": lambda s: s.translate(_PAIRS),
    "reverse": lambda s: s[::-1]}


def strands(folder: Path, turn: Callable[[str], str], form: str, share: float = 0.2) -> None:
    rng = np.random.default_rng(1)
    train = ["".join(rng.choice(list("ACGT"), 80)) for _ in range(400)]
    test = ["".join(rng.choice(list("ACGT"), 80)) for _ in range(100)]
    test[: int(100 * share)] = [turn(s) for s in train[7: 7 + int(100 * share)]]
    for name, some in (("train", train), ("test", test)):
        y = rng.integers(0, 2, len(some))
        if form == "csv":
            lines = [f"{s},{k}" for s, k in zip(some, y, strict=True)]
            (folder / f"{name}.csv").write_text("\n".join(["sequence,label", *lines]))
        else:
            ids = np.array([["ACGT".index(c) for c in s] for s in some], np.int8)
            np.savez(folder / f"{name}.npz", x=ids if form == "ids" else np.eye(4, dtype=np.int8)[ids], y=y)


@pytest.mark.parametrize("form", ["csv", "ids", "one-hot"])
@pytest.mark.parametrize("how", TURNS)
def test_held_out_strands_that_are_training_strands_turned(how: str, form: str, tmp_path: Path, seen_by: Seen) -> None:
    strands(tmp_path, TURNS[how], form)
    (found,) = seen_by(d196, tmp_path)
    assert (found.measured["kind"], found.measured["share"]) == (how, 0.2)
    assert found.measured["rows"] == tuple(range(20))


def test_strands_that_were_cut_otherwise_are_found(tmp_path: Path, seen_by: Seen) -> None:
    strands(tmp_path, lambda s: TURNS["reverse-complement"](s)[6:] + "ACGTTC", "csv")
    assert [f.measured["share"] for f in seen_by(d196, tmp_path)] == [0.2]


@pytest.mark.parametrize("turn", [
    lambda s: s, lambda s: "ACGTTGCA" * 10, lambda s: TURNS["reverse-complement"](s[:25]) + "GATTACA" * 8],
    ids=["as they stand", "palindromes", "motifs"])
def test_copies_palindromes_and_motifs_are_left_alone(turn: Callable[[str], str], tmp_path: Path, seen_by: Seen
                                                      ) -> None:
    strands(tmp_path, turn, "csv")
    assert seen_by(d196, tmp_path) == []


def test_few_and_short_strands_and_empty_ones_are_borne(tmp_path: Path, seen_by: Seen) -> None:
    lines = [f"{'ACGT' * (i % 3)},{i % 2}" for i in range(40)]
    (tmp_path / "train.csv").write_text("\n".join(["sequence,label", *lines]))
    (tmp_path / "test.csv").write_text("sequence,label\n" + "\n".join(f",{i % 2}" for i in range(20)))
    assert seen_by(d196, tmp_path) == []
