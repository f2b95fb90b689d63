"""Texts of one part in another encoding or still escaped, and texts that only look so."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from part_making import WORDS, write_csv, write_lines

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d164_misread_text

Seen = Callable[[ModuleType, Path], list[Finding]]
OWN = [*WORDS, "naïve", "R&D", "Q&A", "it’s", "São", "NÃO", "€5"]


def text(rng: np.random.Generator, words: Any = OWN) -> str:
    return " ".join(rng.choice(words, 12))


def misread(text: str, codec: str = "cp1252", times: int = 1) -> str:
    for _ in range(times):
        text = text.encode().decode(codec, "replace")
    return text


FAULTS: dict[str, tuple[Callable[[str], str], str, str]] = {
    "latin-1": (lambda t: misread(t, "latin-1"), "misread", "text.encode('latin-1').decode('utf-8')"),
    "cp1252": (misread, "misread", "text.encode('cp1252').decode('utf-8')"),
    "twice": (lambda t: misread(t, "latin-1", 2), "misread", "text.encode('latin-1').decode('utf-8'), twice"),
    "mac": (lambda t: misread(t, "mac_roman"), "misread", "text.encode('mac_roman').decode('utf-8')"),
    "lost": (lambda t: t.encode("cp1252").decode("utf-8", "replace"), "replaced", ""),
    "entities": (lambda t: html.escape(t), "entities", "html.unescape(text)"),
    "escapes": (lambda t: json.dumps(t)[1:-1], "escaped", "json.loads(f'\"{text}\"')"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("layout", ["files", "csv", "source", "stretch"])
def test_one_part_of_another_encoding(fault: str, layout: str, seen_by: Seen, tmp_path: Path) -> None:
    change, kind, repair = FAULTS[fault]
    rng = np.random.default_rng(0)
    if layout in ("files", "csv"):
        for s in range(5):
            rows = [change(text(rng)) if s == 2 else text(rng) for _ in range(60)]
            if layout == "csv":
                write_csv(tmp_path / f"part_{s}.csv", {"text": rows, "label": [i % 3 for i in range(60)]})
            else:
                write_lines(tmp_path / f"part_{s}.jsonl", [{"text": t, "label": i % 3} for i, t in enumerate(rows)])
    else:
        odd = [i % 5 == 2 if layout == "source" else 90 <= i < 150 for i in range(300)]
        write_lines(tmp_path / "train.jsonl", [
            {"text": change(text(rng)) if o else text(rng),
             **({"source": "abcde"[i % 5]} if layout == "source" else {})}
            for i, o in enumerate(odd)])
    (told,) = seen_by(d164_misread_text, tmp_path)
    assert (told.measured["kind"], told.measured["repair"]) == (kind, repair)
    where = {"files": "part_2.jsonl", "csv": "part_2.csv", "source": "source 'c'", "stretch": "rows "}[layout]
    assert where in told.statement
    assert told.measured["before"] != told.measured["after"] or not repair


def test_an_example_goes_there_and_back(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for s in range(4):
        made = ["Größe – " + text(rng) for _ in range(40)]
        write_lines(tmp_path / f"p{s}.jsonl", [{"text": misread(t) if s == 1 else t} for t in made])
    (told,) = seen_by(d164_misread_text, tmp_path)
    assert "'GrÃ¶ÃŸe' is 'Größe'" in told.statement
    assert misread(str(told.measured["after"])) == told.measured["before"]


def test_a_whole_set_that_was_misread(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    write_lines(tmp_path / "train.jsonl", [{"text": misread(text(rng), "latin-1")} for _ in range(120)])
    (told,) = seen_by(d164_misread_text, tmp_path)
    assert told.severity is Severity.MEDIUM
    assert "all parts" in told.statement


def test_classes_of_one_file_that_were_misread(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for s in range(5):
        names = rng.choice(["München", "Köln", "Berlin"], 80)
        cities = [misread(str(n)) if s == 3 else str(n) for n in names]
        write_csv(tmp_path / f"part_{s}.csv", {"size": rng.normal(size=80).round(3).tolist(),
                                               "rent": rng.normal(size=80).round(3).tolist(), "city": cities})
    told = [f for f in examine([tmp_path]).findings if f.severity is not Severity.INFO]
    assert [f.rule for f in told if f.rule in ("D164", "D149", "D106")] == ["D164"]


def languages(folder: Path, rng: np.random.Generator) -> None:
    """French, Portuguese and Romanian with capitals that are the first bytes of UTF-8, each in a file."""
    own = {"fr": ["Âge", "ÇA", "déjà", "à", "où"], "pt": ["NÃO", "ÃÕ", "SÃO", "ação"],
           "ro": ["ÎN", "Âla", "și", "română"], "de": ["Öl", "ÄÖÜ", "Straße"],
           "ru": ["Рёв", "Рис", "Сё", "привет", "Ђ", "№5"]}
    for name, words in own.items():
        write_lines(folder / f"{name}.jsonl", [{"text": text(rng, [*words, *WORDS])} for _ in range(80)])


def a_few_of_the_web(folder: Path, rng: np.random.Generator) -> None:
    """One row in fifty was misread, in all files."""
    for s in range(5):
        write_lines(folder / f"part_{s}.jsonl", [{"text": misread(text(rng)) if i % 50 == 7 else text(rng)}
                                                 for i in range(150)])


def one_of_four(folder: Path, rng: np.random.Generator, made: Callable[[], str]) -> None:
    write_lines(folder / "train.jsonl", [{"source": "abcd"[i % 4], "text": made() if i % 4 == 1 else text(rng)}
                                         for i in range(320)])


def pages(folder: Path, rng: np.random.Generator) -> None:
    """One source is HTML and holds entities by right."""
    one_of_four(folder, rng, lambda: f"<p>{html.escape(text(rng))}</p>")


def programs(folder: Path, rng: np.random.Generator) -> None:
    """One source is code, with escapes in its strings and letters beyond ASCII beside them."""
    code = ['s = "\\u00e9t\\u00e9"  # été', 'x = re.compile("[\\u4e00-\\u9fa5]")  # 漢字', "print(1)  # größer"]
    one_of_four(folder, rng, lambda: str(rng.choice(code)))


def addresses(folder: Path, rng: np.random.Generator) -> None:
    one_of_four(folder, rng, lambda: "see https://de.wikipedia.org/wiki/M%C3%BCnchen now")


def about_encodings(folder: Path, rng: np.random.Generator) -> None:
    """Two questions of a forum in which somebody asks why he sees such letters."""
    asked = ["why Ã© and â€™ here?", "and â€™ there?"]
    one_of_four(folder, rng, lambda: asked.pop() if asked else text(rng))


def no_text(folder: Path, rng: np.random.Generator) -> None:
    """Empty texts and half a letter."""
    for s in range(4):
        write_lines(folder / f"part_{s}.jsonl", [{"text": "", "y": i} for i in range(30)])
    (folder / "part_4.jsonl").write_bytes(b'{"text": "\xc3", "y": 1}\n{"text": ')


@pytest.mark.parametrize("make", [languages, a_few_of_the_web, pages, programs, addresses, about_encodings, no_text])
def test_texts_that_only_look_so(make: Any, seen_by: Seen, tmp_path: Path) -> None:
    make(tmp_path, np.random.default_rng(5))
    assert seen_by(d164_misread_text, tmp_path) == []
