"""D200: files whose tokens, decoded with the tokeniser beside them, lack line ends, indentation or capitals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.pieces import pieces_of
from traindx_tools.on_data.rules import d200_lost_characters as d200

Seen = Callable[[ModuleType, Path], list[Finding]]
CHARACTERS = "\n\t ABCDEFGHIJabcdefghijklmnop0123456789()[].,:_\"'"


def text(seed: int, lines: int = 600) -> str:
    rng = np.random.default_rng(seed)
    words = ["abc", "def", "Bad", "fig_1", "(a)", "gem", "hi", "2.", "\"no\""]
    return "".join(" " * 4 * int(rng.integers(0, 3)) + " ".join(rng.choice(words, 6)) + "\n" for _ in range(lines))


def vocabulary(folder: Path, kind: str) -> None:
    ids = {c: i for i, c in enumerate(CHARACTERS)}
    made = {"map": ids, "stoi": {"stoi": ids, "name": "characters"}, "list": {"itos": list(CHARACTERS)},
            "byte level": {"model": {"type": "BPE", "vocab": {c.replace(" ", "\u0120").replace("\n", "\u010a").replace(
                "\t", "\u0109"): i for c, i in ids.items()}, "merges": []}}}[kind]
    (folder / "vocab.json").write_text(json.dumps(made))


def written(folder: Path, form: str, texts: list[str]) -> None:
    for k, one in enumerate(texts):
        ids = np.array([CHARACTERS.index(c) for c in one], np.uint16)
        if form == "bin":
            ids.tofile(folder / f"train_{k}.bin")
        elif form == "npy":
            np.save(folder / f"train_{k}.npy", ids[: len(ids) // 50 * 50].reshape(-1, 50).astype(np.int32))
        else:
            rows = np.array_split(ids, 30)
            (folder / f"train_{k}.jsonl").write_text("\n".join(json.dumps({"ids": r.tolist()}) for r in rows))


@pytest.mark.parametrize("kind", ["map", "stoi", "list", "byte level"])
@pytest.mark.parametrize("form", ["bin", "npy", "jsonl"])
def test_without_line_ends(form: str, kind: str, tmp_path: Path, seen_by: Seen) -> None:
    vocabulary(tmp_path, kind)
    written(tmp_path, form, [text(k) if k != 2 else text(k).replace("\n", " ") for k in range(5)])
    (told,) = seen_by(d200, tmp_path)
    assert (told.severity, told.measured["shard"]) == (Severity.HIGH, f"train_2.{form}")
    assert "line ends" in told.measured["kinds"]  # type: ignore[operator]


@pytest.mark.parametrize(("lost", "kind"), [
    (lambda t: t.lower(), "capitals"), (lambda t: "\n".join(x.lstrip() for x in t.split("\n")), "spaces at the beg"),
    (lambda t: t.replace("(", "").replace(")", ""), "brackets")])
def test_other_kinds(lost: Callable[[str], str], kind: str, tmp_path: Path, seen_by: Seen) -> None:
    vocabulary(tmp_path, "map")
    written(tmp_path, "jsonl", [lost(text(k)) if k == 0 else text(k) for k in range(4)])
    (told,) = seen_by(d200, tmp_path)
    assert kind in told.statement
    assert "train_0" in told.statement


@pytest.mark.parametrize("design", ["sound", "rarer", "no two alike", "all", "another vocabulary", "two vocabularies"])
def test_texts_that_are_so(design: str, tmp_path: Path, seen_by: Seen) -> None:
    vocabulary(tmp_path, "map")
    texts = [text(k) for k in range(5)]
    if design == "rarer":
        texts[1] = "".join(t if i % 12 == 0 else t.replace("\n", " ") for i, t in enumerate(texts[1].splitlines(True)))
    if design == "no two alike":
        texts = [t.replace("\n", " ", 600 - 600 // (k * k + 1)) for k, t in enumerate(texts)]
    if design == "all":
        texts = [t.replace("\n", " ") for t in texts]
    if design == "another vocabulary":
        (tmp_path / "vocab.json").write_text(json.dumps({f"w{i}": i for i in range(12)}))
        texts[2] = texts[2].replace("\n", " ")
    if design == "two vocabularies":
        (tmp_path / "other.json").write_text(json.dumps({c: i for i, c in enumerate(CHARACTERS[::-1])}))
        texts[2] = texts[2].replace("\n", " ")
    written(tmp_path, "jsonl", texts)
    assert not seen_by(d200, tmp_path)


@pytest.mark.parametrize("broken", [
    None, 3, [], {}, {"a": "b"}, {"model": {"vocab": 4}}, {"model": {"vocab": [["a"], 3, []]}}, {"itos": [1, 2]},
    {"stoi": dict.fromkeys(CHARACTERS, -1)}, {"stoi": dict.fromkeys(CHARACTERS, 0)}, {"itos": {"a": "b"}},
    {"vocab": {c: 10**9 + i for i, c in enumerate(CHARACTERS)}}])
def test_what_is_no_vocabulary(broken: object) -> None:
    assert pieces_of([("vocab.json", broken)]) is None


def test_pieces_of_words() -> None:
    fill = [[f"f{i}", -1.0] for i in range(20)]
    unigram = {"model": {"type": "Unigram", "vocab": [["<s>", 0.0], ["\u2581The", -1.0], ["<0x0A>", -2.0], *fill]},
               "added_tokens": [{"id": 0, "content": "<s>"}]}
    pieces = pieces_of([("tokenizer.json", unigram)])
    assert pieces is not None
    assert pieces.texts[:3] == ("", " The", "\n")
    names = {"[CLS]": 0, "play": 1, "##ing": 2, **{f"f{i}": 3 + i for i in range(20)}}
    words = pieces_of([("tokenizer.json", {"model": {"type": "WordPiece", "vocab": names}})])
    assert words is not None
    assert words.texts[1:3] == (" play", "ing")
