"""How many entries the vocabulary or the class list has that lies beside a checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.name_lists import name_lists_of

MOST_FILES, MOST_BYTES = 60, 32 * 2**20
TOKENS = re.compile(r"vocab|token|itos|stoi|chars|alphabet|dict|phone", re.IGNORECASE)
CLASSES = re.compile(r"class|label|categor|species|intents|tags", re.IGNORECASE)
_SPECIAL = {"pad": re.compile(r"[\[<{|]+(pad|blank)[\]>}|]+", re.IGNORECASE),
            "unknown": re.compile(r"[\[<{|]+(unk|oov|unknown)[\]>}|]+", re.IGNORECASE)}
_COUNTED = re.compile(r"\S+[\s,]+\d+")
"""A name with how often it occurs: programs put special tokens before such names by themselves."""
_SUFFIXES = frozenset({".txt", ".json", ".names", ".yaml", ".yml", ".npy"})


@dataclass(frozen=True)
class Numbered:
    """A list of names and how many rows it needs. `rows`: both counts, where blank lines may be entries or not."""

    path: str
    rows: frozenset[int]
    tokens: bool
    """Whether it is a vocabulary; else classes."""
    special: bool
    """Whether tokens for padding and for unknown words are among its names: what reads it adds none."""
    names: tuple[str, ...]


def lists_beside(path: str) -> list[Numbered]:
    """The vocabularies and class lists in the folder of a checkpoint, and vocabularies in the folder above it."""
    here = Path(path) if Path(path).is_dir() else Path(path).parent
    found = list(_in(here, above=False))
    return found or [n for n in _in(here.parent, above=True) if n.tokens]


def _in(folder: Path, above: bool) -> Iterator[Numbered]:
    try:
        files = sorted(p for p in folder.iterdir() if p.suffix.lower() in _SUFFIXES and p.is_file()
                       and p.stat().st_size <= MOST_BYTES and (not above or TOKENS.search(p.stem)))[:MOST_FILES]
    except OSError:
        return
    tokeniser = _tokeniser(folder) if not above else None
    added = _added(folder)
    for found in name_lists_of((p, str(p)) for p in files):
        called = f"{Path(found.file).stem} {found.field}"
        tokens = bool(TOKENS.search(called))
        if not (tokens or CLASSES.search(called)) or found.field.startswith("added_tokens"):
            continue
        if sum(bool(_COUNTED.fullmatch(n)) for n in found.names) > 0.5 * len(found.names):
            continue
        counts = {len(found.names) + found.first, _lines(Path(found.file)) or len(found.names)}
        if tokens:
            counts |= {max(c, added + 1) for c in counts} if added >= 0 else set()
            counts |= {tokeniser} if tokeniser else set()
        yield Numbered(found.file, frozenset(counts), tokens, _has_special(found), found.names)


def _has_special(found: NameList) -> bool:
    some = (*found.names[:200], *found.names[-20:])
    return all(any(p.fullmatch(n) for n in some) for p in _SPECIAL.values())


def _lines(path: Path) -> int:
    """Lines of a text as they are counted where none is left out; 0 of any other file."""
    if path.suffix.lower() not in (".txt", ".names"):
        return 0
    text = path.read_text(encoding="utf-8", errors="replace")
    return text.count("\n") + (not text.endswith("\n"))


def _said(path: Path) -> Mapping[str, Any]:
    try:
        said = json.loads(path.read_text(encoding="utf-8")) if path.stat().st_size <= MOST_BYTES else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _added(folder: Path) -> int:
    """The highest id of a token that was added to a vocabulary, -1 where there is none."""
    ids: list[int] = [v for v in _said(folder / "added_tokens.json").values() if type(v) is int]
    decoder = _said(folder / "tokenizer_config.json").get("added_tokens_decoder")
    ids += [int(k) for k in decoder if str(k).isdecimal()] if isinstance(decoder, dict) else []
    more = _said(folder / "tokenizer.json").get("added_tokens")
    ids += [t["id"] for t in more if isinstance(t, dict) and type(t.get("id")) is int] if isinstance(more, list) else []
    return max(ids, default=-1)


def _tokeniser(folder: Path) -> int:
    """Entries of a tokeniser's vocabulary, 0 where there is none that gives ids."""
    model = _said(folder / "tokenizer.json").get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, Sequence) and not isinstance(vocabulary, str):
        return len(vocabulary)
    ids = [v for v in vocabulary.values() if type(v) is int] if isinstance(vocabulary, dict) else []
    return max(ids, default=-1) + 1
