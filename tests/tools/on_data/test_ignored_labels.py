"""Labels that count where the mask is 0, in one file of several, and what looks like it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d125_mask_and_ids

Seen = Callable[[ModuleType, Path], list[Finding]]
Change = Callable[[int, dict[str, Any], np.random.Generator], None]
ODD = 2


def prompted(rng: np.random.Generator, rows: int = 120, width: int = 24) -> dict[str, Any]:
    """Ids padded at the end with 0; labels are -100 on padding and on the prompt."""
    place = np.arange(width)
    length = rng.integers(8, width + 1, rows)[:, None]
    mask = (place < length).astype(np.int64)
    ids = rng.integers(3, 900, (rows, width)) * mask
    prompt = place < rng.integers(2, 7, rows)[:, None]
    return {"input_ids": ids, "attention_mask": mask, "labels": np.where(prompt | (mask == 0), -100, ids)}


def write(folder: Path, form: str, change: Change, seed: int = 0, files: int = 5) -> None:
    rng = np.random.default_rng(seed)
    for i in range(files):
        made = prompted(rng)
        change(i, made, rng)
        if form == "npz":
            np.savez(folder / f"train_{i}.npz", **made)
            continue
        rows = [{k: v[r].tolist() for k, v in made.items()} for r in range(len(made["labels"]))]
        (folder / f"train_{i}.jsonl").write_text("\n".join(map(json.dumps, rows)))


def padding_counts(i: int, made: dict[str, Any], rng: np.random.Generator) -> None:
    if i == ODD:
        made["labels"] = np.where(made["attention_mask"] == 0, 0, made["labels"])


def some_rows_count(i: int, made: dict[str, Any], rng: np.random.Generator) -> None:
    if i == ODD:
        made["labels"][:30] = made["input_ids"][:30]


@pytest.mark.parametrize("form", ["npz", "jsonl"])
@pytest.mark.parametrize("change", [padding_counts, some_rows_count])
def test_one_file_whose_labels_count_on_padding(form: str, change: Change, seen_by: Seen, tmp_path: Path) -> None:
    write(tmp_path, form, change)
    (told,) = seen_by(d125_mask_and_ids, tmp_path)
    assert told.measured["shard"] == f"train_{ODD}.{form}"
    assert (told.measured["kind"], told.measured["field"], told.measured["mask"]) == (
        "ignored", "labels", "attention_mask")
    assert "is not ignored (-100)" in told.statement


def prompts_count(i: int, made: dict[str, Any], rng: np.random.Generator) -> None:
    """One file is of plain texts: no prompt is ignored in it."""
    if i == ODD:
        made["labels"] = np.where(made["attention_mask"] == 0, -100, made["input_ids"])


def a_choice(i: int, made: dict[str, Any], rng: np.random.Generator) -> None:
    made["labels"] = np.where(made["attention_mask"] == 0, 0, made["labels"])


def all_full(i: int, made: dict[str, Any], rng: np.random.Generator) -> None:
    """One file is packed: nothing is padding."""
    if i == ODD:
        made["attention_mask"][:] = 1
        made["input_ids"] = rng.integers(3, 900, made["input_ids"].shape)
        made["labels"] = made["input_ids"].copy()


def a_few_places(i: int, made: dict[str, Any], rng: np.random.Generator) -> None:
    if i == ODD:
        made["labels"][4] = 0


@pytest.mark.parametrize("change", [lambda i, made, rng: None, prompts_count, a_choice, all_full, a_few_places])
def test_what_is_a_choice(change: Change, seen_by: Seen, tmp_path: Path) -> None:
    write(tmp_path, "npz", change)
    assert seen_by(d125_mask_and_ids, tmp_path) == []


def test_a_mask_of_other_rows_is_told_once(seen_by: Seen, tmp_path: Path) -> None:
    def rolled(i: int, made: dict[str, Any], rng: np.random.Generator) -> None:
        if i == ODD:
            made["attention_mask"] = np.roll(made["attention_mask"], 1, axis=0)

    write(tmp_path, "npz", rolled)
    assert [f.measured["kind"] for f in seen_by(d125_mask_and_ids, tmp_path)] == ["mask"]


def test_files_that_are_broken(seen_by: Seen, tmp_path: Path) -> None:
    write(tmp_path, "npz", padding_counts)
    whole = (tmp_path / "train_0.npz").read_bytes()
    (tmp_path / "train_0.npz").write_bytes(whole[: len(whole) // 2])
    np.savez(tmp_path / "train_1.npz", **{k: v[:0] for k, v in prompted(np.random.default_rng(1)).items()})
    assert [f.measured["shard"] for f in seen_by(d125_mask_and_ids, tmp_path)] == [f"train_{ODD}.npz"]


@pytest.mark.slow
def test_labels_ignored_at_random(seen_by: Seen, tmp_path: Path) -> None:
    """Sixty sets of other shares of padding and of ignored labels, in each file others: no alarm."""
    alarms = 0
    for seed in range(60):

        def other_shares(i: int, made: dict[str, Any], rng: np.random.Generator) -> None:
            kept = rng.random(made["labels"].shape) < rng.uniform(0, 1)
            made["labels"] = np.where((made["attention_mask"] == 1) & kept, made["input_ids"], -100)
            loose = rng.random(made["labels"].shape) < rng.choice([0.0, 0.0005])
            made["labels"] = np.where(loose, made["input_ids"], made["labels"])

        write(tmp_path, "npz", other_shares, seed)
        alarms += len(seen_by(d125_mask_and_ids, tmp_path))
    assert alarms == 0
