"""What the names of files and arrays say: the split, the number of a shard, and what is left of the name."""

from __future__ import annotations

import re

_WORDS = {
    "train": "train",
    "training": "train",
    "trn": "train",
    "tr": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "eval": "validation",
    "test": "test",
    "testing": "test",
    "tst": "test",
    "heldout": "test",
    "holdout": "test",
}
_PARTS = re.compile(r"[A-Za-z]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def split_of(name: str) -> str:
    """The split that a file's, folder's or array's name says, "" where it says none or two."""
    said = {_WORDS[w] for w in _words(name) if w in _WORDS}
    return said.pop() if len(said) == 1 else ""


def without_split(name: str) -> str:
    """The name without the word for the split and without the digits beside it: "x_train" and "x_val" are both "x"."""
    kept = [w for w in _words(name) if w not in _WORDS]
    return "_".join(kept) or name


def pattern_of(stem: str) -> str:
    """The name with its numbers as # and its split left out: shards of one set have the same."""
    return "_".join("#" if w.isdigit() else w for w in _words(stem) if w not in _WORDS)


def number_of(stem: str) -> str:
    """The digits of the name, "" where it has none."""
    return "_".join(w for w in _words(stem) if w.isdigit())


def words_only(stem: str) -> str:
    """The name without split and numbers: what a file with one array calls its field."""
    return "_".join(w for w in _words(stem) if w not in _WORDS and not w.isdigit())


def _words(name: str) -> list[str]:
    return [w.lower() for w in _PARTS.findall(_CAMEL.sub("_", name))]
