"""D157 of words that a row quotes, with a number that says where they stand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d157_span_units as d157

Seen = Callable[[ModuleType, Path], list[Finding]]
WORDS = {"sk": ["dážď", "včela", "môže", "žltý", "ráno", "účet", "strom", "kôň", "dom", "čas"],
         "nl": ["regen", "bij", "kan", "geel", "ochtend", "rekening", "boom", "paard", "huis", "café"]}
Place = Callable[[str, int, str, int], int]


def write(folder: Path, place: Place, ending: str = ".") -> None:
    """Letters of two languages; `place`: what is stored of a text, where the words stand, the language, the row."""
    rng = np.random.default_rng(0)
    with (folder / "letters.jsonl").open("w") as file:
        for row in range(600):
            lang = "sk" if rng.random() < 0.4 else "nl"
            words = [str(rng.choice(WORDS[lang])) for _ in range(18)]
            product = f"model {rng.integers(100, 999)}{ending}"
            at = int(rng.integers(3, 15))
            text = " ".join([*words[:at], product, *words[at:]])
            start = place(text, text.index(product), lang, row)
            file.write(json.dumps({"letter": text, "lang": lang, "said": product, "said_at": start}) + "\n")


def in_bytes(text: str, start: int) -> int:
    return len(text[:start].encode())


@pytest.mark.parametrize(("place", "said"), [
    (lambda t, s, lang, row: in_bytes(t, s) if lang == "sk" else s, "of the rows of lang 'sk' is counted in bytes"),
    (lambda t, s, lang, row: in_bytes(t, s) if row >= 350 else s, "of rows 350..598 of letters.jsonl is counted in"),
    (lambda t, s, lang, row: s + 1 if lang == "nl" else s, "of the rows of lang 'nl' is counted in characters from 1"),
])
def test_places_of_a_part_that_are_counted_otherwise(place: Place, said: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, place)
    (found,) = [f for f in seen_by(d157, tmp_path) if f.severity is not Severity.INFO]
    assert said in found.statement
    assert found.measured["fields"] == ("said_at", "letter", "said")


@pytest.mark.parametrize("place", [
    lambda t, s, lang, row: s,
    lambda t, s, lang, row: in_bytes(t, s),  # in bytes throughout: a remark
    lambda t, s, lang, row: row % 7,  # a number that says no place
    lambda t, s, lang, row: s if row % 9 else max(0, s - 11),  # some rows are wrong, and by no unit
])
@pytest.mark.parametrize("ending", [".", "", "(x)+"])
def test_one_unit_throughout_and_other_numbers_are_quiet(place: Place, ending: str, tmp_path: Path, seen_by: Seen
                                                         ) -> None:
    write(tmp_path, place, ending)
    assert not [f for f in seen_by(d157, tmp_path) if f.severity is not Severity.INFO]


def test_rows_without_words_and_broken_lines_are_read(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, lambda t, s, lang, row: in_bytes(t, s) if lang == "sk" else s)
    path = tmp_path / "letters.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({"letter": "", "lang": "nl", "said": "", "said_at": 0}), *lines[:400],
                               lines[400][:30]]) + "\n")
    assert [f for f in seen_by(d157, tmp_path) if f.severity is not Severity.INFO]
