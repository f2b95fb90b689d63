"""Classes and words that look the same and are not, by split, file and group; cases and languages that differ."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from data_making import WORDS
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d149_written_otherwise

Seen = Callable[[ModuleType, Path], list[Finding]]
CITIES = ["Zürich", "Köln", "Besançon", "Málaga", "Oslo", "Bern"]
WIDE = str.maketrans({chr(c): chr(c + 0xFEE0) for c in range(33, 127)})
HOWS = [
    (lambda t: unicodedata.normalize("NFD", t), "Unicode form NFC"),
    (lambda t: t + " ", "white space stripped"),
    (str.upper, "case folded"),
    (lambda t: t.translate(WIDE), "Unicode form NFKC (width, ligatures)"),
]


def cities(rng: np.random.Generator, rows: int, how: Callable[[str], str] = str) -> dict[str, Any]:
    return {"x": rng.normal(size=rows), "city": [how(str(c)) for c in rng.choice(CITIES, rows)]}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("how", "repair"), HOWS)
def test_classes_of_the_held_out_data(
    form: str, how: Callable[[str], str], repair: str, tmp_path: Path, seen_by: Seen
) -> None:
    rng = np.random.default_rng(0)
    table(tmp_path / "train", form, cities(rng, 400))
    table(tmp_path / "test", form, cities(rng, 100, how))
    (finding,) = seen_by(d149_written_otherwise, tmp_path)
    assert finding.severity is Severity.HIGH
    assert finding.measured["repair"] == repair
    assert finding.measured["part"] == "test"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_words_of_one_file_are_decomposed(form: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    words = [w.replace("a", "á").replace("o", "ö") for w in WORDS]
    for k in range(4):
        texts = [" ".join(rng.choice(words, 15)) for _ in range(120)]
        table(tmp_path / f"part_{k}", form, {"text": [unicodedata.normalize("NFD" if k == 1 else "NFC", t)
                                                      for t in texts]})
    (finding,) = seen_by(d149_written_otherwise, tmp_path)
    assert "part_1" in str(finding.measured["part"])
    assert finding.measured["repair"] == "Unicode form NFC"


def test_classes_of_one_annotator(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(2)
    made = cities(rng, 600)
    who = [f"a{k}" for k in rng.integers(0, 4, 600)]
    made["city"] = [c.lower() if w == "a2" else c for c, w in zip(made["city"], who, strict=True)]
    table(tmp_path / "rows", "jsonl", made | {"annotator": who})
    (finding,) = seen_by(d149_written_otherwise, tmp_path)
    assert finding.measured["by"] == "annotator"


def letters(rng: np.random.Generator) -> list[str]:
    return [str(c) for c in rng.choice(list("aAbBcC"), 300)]


def sentences(rng: np.random.Generator) -> list[str]:
    return [" ".join(rng.choice(WORDS, 15)).capitalize() + "." for _ in range(200)]


def one_language(rng: np.random.Generator) -> list[str]:
    own = ["".join(rng.choice(list("abcdefghijklmnopäöü"), 6)) for _ in range(200)]
    return [" ".join(rng.choice(own, 12)) for _ in range(200)]


@pytest.mark.parametrize("make", [letters, sentences, one_language])
def test_what_only_looks_so(
    make: Callable[[np.random.Generator], list[str]], tmp_path: Path, seen_by: Seen
) -> None:
    rng = np.random.default_rng(3)
    for name in ("train_de", "train_fr", "train_it", "test_es"):
        table(tmp_path / name, "jsonl", {"text": make(rng)})
    assert not seen_by(d149_written_otherwise, tmp_path)


def test_a_class_that_only_few_rows_write_otherwise_is_left_alone(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(4)
    for k in range(4):
        made = cities(rng, 300)
        made["city"][:5] = ["oslo", "BERN", "Bern ", "köln", "oslo"]
        table(tmp_path / f"part_{k}", "csv", made)
    assert not seen_by(d149_written_otherwise, tmp_path)


def test_texts_of_half_a_character_are_read(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"city": "\\ud800"}\n{"city": ""}\n' * 60)
    (tmp_path / "test.jsonl").write_text('{"city": "\\ud800 "}\n{"city": null}\n' * 60)
    assert not examine([tmp_path]).notes
