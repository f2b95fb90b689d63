"""D222: letters to a town hall, some of which were cut where a column ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d222_texts_cut as d222

Seen = Callable[[ModuleType, Path], list[Finding]]
Edit = Callable[[str, str, int], str]
WORDS = ["street", "the", "lamp", "is", "broken", "near", "school", "since", "we", "ask", "that", "tree", "noise",
         "água", "permit", "for", "a", "fence", "at", "number"]


def letter(rng: np.random.Generator) -> str:
    sentences = []
    for _ in range(int(rng.integers(2, 9))):
        words = [str(w) for w in rng.choice(WORDS, int(rng.integers(4, 14)))]
        sentences.append(" ".join(words).capitalize() + str(rng.choice([".", ".", "!", "?"])))
    return " ".join(sentences)


def write(folder: Path, edit: Edit, files: int = 1, rows: int = 900) -> None:
    rng = np.random.default_rng(0)
    for k in range(files):
        with (folder / f"letters_{k}.jsonl").open("w") as file:
            for row in range(rows):
                office = str(rng.choice(["north", "south", "port", "mill"]))
                file.write(json.dumps({"office": office, "text": edit(letter(rng), office, row + k * rows)}) + "\n")


@pytest.mark.parametrize(("edit", "files", "said"), [
    (lambda t, office, row: t[:160] if row >= 500 else t, 1, "rows 500..899 of letters_0.jsonl is cut at 160 cha"),
    (lambda t, office, row: t[:128] if office == "port" else t, 1, "the rows of office 'port' is cut at 128 "),
    (lambda t, office, row: t[:128] + "…" if row // 300 == 2 else t, 4, "text of letters_2.jsonl is cut at"),
    (lambda t, office, row: t.encode()[:160].decode(errors="ignore") if row >= 500 else t, 1,
     "rows 500..899 of letters_0.jsonl is cut at 160"),
])
def test_texts_of_a_part_that_end_at_one_length(edit: Edit, files: int, said: str, tmp_path: Path, seen_by: Seen
                                                ) -> None:
    write(tmp_path, edit, files, rows=900 if files == 1 else 300)
    (found,) = seen_by(d222, tmp_path)
    head, _, tail = said.partition("rows 500..899")
    assert head in found.statement
    assert tail in found.statement


def short(text: str, office: str, row: int) -> str:
    return text[: text.find(".") + 1] or "Yes." if row >= 500 else text


def by_sentence(text: str, office: str, row: int) -> str:
    if row < 500 or len(text) < 160:
        return text
    return max(text[:160].rpartition(s)[0] for s in (".", "!", "?")) + "."


def in_blocks(text: str, office: str, row: int) -> str:
    return (text * 4)[row % 37 + 3 :][:160] if row >= 500 else text


@pytest.mark.parametrize("edit", [
    lambda t, office, row: t,
    lambda t, office, row: t[:160],  # all are cut alike
    short,  # another source, of short letters
    by_sentence,  # cut behind a sentence: no one length
    in_blocks,  # a running text in blocks
    lambda t, office, row: t if row % 30 else t[:100],  # few
])
def test_short_texts_blocks_and_texts_that_are_all_cut_are_quiet(edit: Edit, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, edit)
    assert seen_by(d222, tmp_path) == []


def test_empty_texts_and_a_broken_line_are_read(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, lambda t, office, row: "" if row % 11 == 0 else t[:160] if row >= 500 else t)
    path = tmp_path / "letters_0.jsonl"
    path.write_text(path.read_text()[:-40])
    assert [f.rule for f in seen_by(d222, tmp_path)] == ["D222"]
