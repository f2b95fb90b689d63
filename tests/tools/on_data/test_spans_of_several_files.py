"""D157 where more than one of the files counts spans otherwise: words tell what cuts them, and no majority."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d157_span_units as d157

Seen = Callable[[ModuleType, Path], list[Finding]]
WORDS = ("září", "město", "před", "úřad", "řeka", "škola", "most", "dvůr", "pole", "kůň", "vlak", "dům")
PLAIN = ("river", "town", "bridge", "train", "yard", "house", "field", "horse", "road", "mill")


def write(folder: Path, in_bytes: Sequence[str], plain: Sequence[str] = (), within: Sequence[str] = ()) -> None:
    """Five batches of notes with the words that a person marked; `within`: batches whose marks lie within words."""
    rng = np.random.default_rng(3)
    for batch in "abcde":
        words = PLAIN if batch in plain else WORDS
        with (folder / f"notes_{batch}.jsonl").open("w") as file:
            for k in range(60):
                said = [str(w) for w in rng.choice(words, 24)]
                text = " ".join(said)
                marks = []
                for i in sorted(rng.choice(24, 3, replace=False).tolist()):
                    start = len(" ".join(said[:i])) + (i > 0)
                    end = start + len(said[i])
                    if batch in within:
                        start, end = start + 1, end - 1
                    if batch in in_bytes:
                        start, end = (len(text[:n].encode()) for n in (start, end))
                    marks.append({"from": start, "to": end, "kind": "PLACE"})
                file.write(json.dumps({"note": f"{batch}{k}", "said": text, "marks": marks}) + "\n")


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


@pytest.mark.parametrize("odd", ["b", "bd", "abd"])
def test_every_file_that_counts_bytes_is_named(odd: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, odd)
    found = alarms(seen_by(d157, tmp_path))
    assert [f.measured["part"] for f in found] == [f"notes_{b}.jsonl" for b in odd]
    assert all("bytes of UTF-8" in f.statement and "100.0 % of all others" in f.statement for f in found)


@pytest.mark.parametrize(("in_bytes", "plain", "within"), [
    ("", "", ""), ("abcde", "", ""),
    ("abc", "de", ""),  # all in bytes, where two files have no letter that shows it
    ("", "", "bd"),  # endings of words
])
def test_files_of_one_unit_are_quiet(in_bytes: str, plain: str, within: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, in_bytes, plain, within)
    assert not alarms(seen_by(d157, tmp_path))


def test_marks_that_are_no_records(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "bd")
    for batch in "ad":
        path = tmp_path / f"notes_{batch}.jsonl"
        lines = path.read_text().splitlines()
        lines[4] = json.dumps({"note": "x", "said": "most a vlak", "marks": [{"from": "0"}, 7, None]})
        path.write_text("\n".join(lines))
    seen_by(d157, tmp_path)
