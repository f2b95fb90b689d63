"""The piece of text of each id, of the tokeniser or vocabulary beside the data, and which kinds of characters it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from traindx_tools.on_data.column import Array

FEWEST, MOST = 20, 2**19
"""Ids of a vocabulary."""
_BRACKETS = frozenset("()[]{}<>")
_MARKS = frozenset(".,;:!?")


def _bytes_by_letter() -> dict[str, int]:
    """The letters that byte-level encodings write bytes as: printable ones stand for themselves (GPT-2)."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [b for b in range(256) if b not in kept]
    return {**{chr(b): b for b in kept}, **{chr(256 + i): b for i, b in enumerate(moved)}}


_BYTES = _bytes_by_letter()


@dataclass(frozen=True, eq=False)
class Pieces:
    """What each id stands for; "" of special tokens and of ids that have none."""

    where: str
    texts: tuple[str, ...]

    @cached_property
    def kinds(self) -> dict[str, Array]:
        """By kind of character, float64 shape (ids,): how many of it the piece of each id holds."""
        return {told: np.array([count(t) for t in self.texts], np.float64) for told, count in KINDS.items()}


    @cached_property
    def seams(self) -> tuple[Array, Array]:
        """bool shape (ids,): whether the piece begins with a space, and whether it ends with a line."""
        return (np.array([t.startswith(" ") for t in self.texts], bool),
                np.array([t.endswith("\n") for t in self.texts], bool))


WIDE = "spaces at the beginning of a line"
KINDS: dict[str, Callable[[str], int]] = {
    "line ends": lambda t: t.count("\n"),
    WIDE: lambda t: t.count("\n "),
    "spaces behind a space": lambda t: t.count("  "),
    "tabulators": lambda t: t.count("\t"),
    "spaces": lambda t: t.count(" "),
    "capitals": lambda t: sum("A" <= c <= "Z" for c in t),
    "small letters": lambda t: sum("a" <= c <= "z" for c in t),
    "digits": lambda t: sum("0" <= c <= "9" for c in t),
    "brackets": lambda t: sum(c in _BRACKETS for c in t),
    "marks of punctuation": lambda t: sum(c in _MARKS for c in t),
    "underscores": lambda t: t.count("_"),
    "quotation marks": lambda t: t.count('"') + t.count("'"),
}


def pieces_of(jsons: Iterable[tuple[str, Any]]) -> Pieces | None:
    """Of the only tokenizer.json, vocab.json or list of characters; None where there is none or several."""
    found = [Pieces(where, texts) for where, data in jsons if (texts := _texts(data))]
    return found[0] if len(found) == 1 else None


def _texts(data: Any) -> tuple[str, ...]:
    if not isinstance(data, dict):
        return ()
    model = data.get("model")
    if isinstance(model, dict):
        return _of_model(model.get("vocab"), _special(data), str(model.get("type", "")))
    for name in ("stoi", "vocab", "token_to_id", "char_to_id", "char2id", "word2idx", "token2id"):
        if isinstance(data.get(name), dict):
            return _of_model(data[name], frozenset(), "")
    for name in ("itos", "id_to_token", "chars", "idx2word"):
        if (texts := _listed(data.get(name))):
            return texts
    return _of_model(data, frozenset(), "")


def _special(data: Mapping[str, Any]) -> frozenset[str]:
    added = data.get("added_tokens")
    return frozenset(t["content"] for t in added if isinstance(t, dict) and isinstance(t.get("content"), str)
                     ) if isinstance(added, list) else frozenset()


def _of_model(vocabulary: Any, special: frozenset[str], kind: str) -> tuple[str, ...]:
    """Pieces in the order of their ids, which are all those from 0 on but a few."""
    if isinstance(vocabulary, list):  # Unigram: pieces with their scores
        pairs = [(v[0], i) for i, v in enumerate(vocabulary) if isinstance(v, list) and v and isinstance(v[0], str)]
    elif isinstance(vocabulary, dict):
        pairs = [(str(k), v) for k, v in vocabulary.items() if type(v) is int]
        if len(pairs) < len(vocabulary):
            return ()
    else:
        return ()
    ids = [i for _, i in pairs]
    if not FEWEST <= len(pairs) <= MOST or min(ids) < 0 or max(ids) > 2 * len(pairs) or len(set(ids)) < len(ids):
        return ()
    by_id = {i: "" if t in special else t for t, i in pairs}
    return _readable([by_id.get(i, "") for i in range(max(ids) + 1)], kind)


def _listed(names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        names = list(names)
    if isinstance(names, dict) and all(str(k).isdigit() for k in names):
        names = [names.get(k, "") for k in sorted(names, key=int)]
    good = isinstance(names, list) and FEWEST <= len(names) <= MOST and all(isinstance(n, str) for n in names)
    return _readable(names, "") if good else ()


def _readable(pieces: Sequence[str], kind: str) -> tuple[str, ...]:
    """With bytes, word beginnings and continuations as the text that they stand for."""
    if any("\u0120" in p for p in pieces):
        return tuple(_decoded(p) for p in pieces)
    if any(p.startswith("\u2581") for p in pieces):
        return tuple(_byte(p.replace("\u2581", " ")) for p in pieces)
    if any(p.startswith("##") and len(p) > 2 for p in pieces) or kind == "WordPiece":
        return tuple(p[2:] if p.startswith("##") else f" {p}" for p in pieces)
    return tuple(pieces)


def _decoded(piece: str) -> str:
    if any(c not in _BYTES for c in piece):
        return ""
    return bytes(_BYTES[c] for c in piece).decode("utf-8", "replace")


def _byte(piece: str) -> str:
    """`<0x0A>` of SentencePiece as the character."""
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        try:
            return chr(int(piece[3:5], 16))
        except ValueError:
            return ""
    return piece
