"""W174: the rows of a table belong to other names than the list beside it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import write

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights import of_run

WORDS, WIDTH, LOST = 600, 24, 140
Rows = Any


def told(folder: Path) -> list[Finding]:
    files = sorted(str(p) for p in folder.rglob("*") if p.is_file())
    return [f for f in of_run([], beside=files).findings if f.rule == "W174"]


def words() -> list[str]:
    rng = np.random.default_rng(1)
    found: dict[str, None] = {}
    while len(found) < WORDS:
        found["".join(rng.choice(list("bdfglmnprstvz"), 3)) + "".join(rng.choice(list("aeiou"), 2))] = None
    return list(found)


def table() -> Rows:
    return np.random.default_rng(2).standard_normal((WORDS, WIDTH)).astype(np.float32)


def listed(folder: Path, names: list[str], form: str = "txt") -> None:
    if form == "json":
        (folder / "vocab.json").write_text(json.dumps({n: i for i, n in enumerate(names)}))
    else:
        (folder / "vocab.txt").write_text("\n".join(names) + "\n")


def named(folder: Path, rows: Rows, header: bool = True) -> None:
    lines = [f"{WORDS} {WIDTH}"] if header else []
    lines += [f"{w} " + " ".join(f"{v:.4f}" for v in row) for w, row in zip(words(), rows, strict=True)]
    (folder / "corpus.vec").write_text("\n".join(lines) + "\n")


def without(rows: Rows, at: int = LOST) -> Rows:
    """One row lost, and one more at the end: the number is the same."""
    return np.concatenate([np.delete(rows, at, axis=0), rows[:1] * 0.5])


@pytest.mark.parametrize("form", ["npz", "safetensors", "torch"])
@pytest.mark.parametrize("header", [True, False])
def test_a_row_was_lost(form: str, header: bool, tmp_path: Path) -> None:
    if form == "torch":
        pytest.importorskip("torch")
    listed(tmp_path, words(), "json" if header else "txt")
    named(tmp_path, table(), header)
    write(form, tmp_path, {"emb.weight": without(table()), "out.weight": table()[:5]})
    (found,) = told(tmp_path)
    assert (found.severity, found.bearing) == (Severity.HIGH, Bearing.CAUSE)
    assert (found.measured["rows"], found.measured["first"], found.measured["name"]) == (-1, LOST + 1, "emb.weight")


def test_whole_tables_and_what_programs_put_before_them(tmp_path: Path) -> None:
    for name, rows in {"same": table(), "unused": np.concatenate([table(), np.zeros((6, WIDTH), np.float32)]),
                       "tuned": table() + 0.02 * np.random.default_rng(3).standard_normal(table().shape),
                       "other": np.random.default_rng(5).standard_normal((WORDS, WIDTH))}.items():
        folder = tmp_path / name
        folder.mkdir()
        listed(folder, words())
        named(folder, table())
        write("npz", folder, {"emb.weight": np.asarray(rows, np.float32)})
        assert told(folder) == [], name
    folder = tmp_path / "two before"
    folder.mkdir()
    listed(folder, words())
    named(folder, table())
    write("npz", folder, {"emb.weight": np.concatenate([np.zeros((2, WIDTH), np.float32), table()])})
    (found,) = told(folder)
    assert found.severity is Severity.INFO


def frequencies() -> Rows:
    return np.random.default_rng(4).zipf(1.4, WORDS).clip(1, 400)


def texts(folder: Path, often: Rows, names: list[str]) -> None:
    rng = np.random.default_rng(6)
    drawn = rng.choice(names, 20_000, p=often / often.sum())
    rows = [{"text": " ".join(drawn[i:i + 20]), "label": int(i % 3)} for i in range(0, len(drawn), 20)]
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


@pytest.mark.parametrize("norms", [True, False])
def test_the_list_has_an_entry_too_many(norms: bool, tmp_path: Path) -> None:
    often = frequencies()
    texts(tmp_path, often, words())
    held = table() * (1 + np.log(often))[:, None].astype(np.float32)
    arrays = {"emb": held} if norms else {"emb": table(), "logp": np.log(often / often.sum()).astype(np.float32)}
    write("npz", tmp_path, arrays)
    listed(tmp_path, words())
    assert told(tmp_path) == []
    names = words()
    listed(tmp_path, [*names[:4], "[url]", *names[4:-1]])
    (found,) = told(tmp_path)
    assert (found.measured["rows"], found.where.file) == (-1, str(tmp_path / "vocab.txt"))
    assert ("norms" in str(found.measured["name"])) is norms
    assert int(found.measured["first"]) < 40  # type: ignore[arg-type]


def test_counts_that_tell_nothing(tmp_path: Path) -> None:
    often = np.sort(frequencies())[::-1]
    texts(tmp_path, often, words())
    names = words()
    write("npz", tmp_path, {"emb": table(), "logp": np.log(often).astype(np.float32)})
    listed(tmp_path, [*names[:4], "[url]", *names[4:-1]])  # sorted by how often they occur: neighbours are alike
    assert told(tmp_path) == []
    other = np.random.default_rng(9).permutation(frequencies())
    write("npz", tmp_path, {"emb": table(), "logp": np.log(other).astype(np.float32)})
    assert told(tmp_path) == []


def test_broken_files(tmp_path: Path) -> None:
    listed(tmp_path, words())
    (tmp_path / "corpus.vec").write_text("a 1 2 3 4 5\nb 1 2\n\x00\n" + "c nan nan nan nan nan\n" * 80)
    (tmp_path / "train.jsonl").write_bytes(b"\xff\xfe{broken" * 50)
    write("npz", tmp_path, {"emb": np.full((WORDS, 5), np.nan, np.float32), "logp": np.full(WORDS, np.inf, np.float32)})
    assert told(tmp_path) == []
