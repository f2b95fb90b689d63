"""What configuration, manifests and code say of the data: sizes of vocabulary, positions and classes, rows of files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.merges import merges_of
from traindx_tools.on_data.pieces import pieces_of
from traindx_tools.on_data.view import Hints, NamedNumbers
from traindx_tools.on_logs.configs.yaml_files import load_yaml

MOST_JSON = 4 * 2**20
"""Bytes of a JSON file that may be a configuration or a manifest."""
MOST_YAML = 2**16
"""Of a YAML file: a parser in Python is slow."""
NAMES = {
    "vocabulary": ("vocab_size", "n_vocab", "vocabulary_size", "num_embeddings"),
    "positions": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "context_length"),
    "rate": ("sample_rate", "sampling_rate", "samplerate", "sr", "target_sr", "target_sample_rate"),
    "classes": ("num_classes", "n_classes", "num_labels"),
}
"""What the sizes are called by transformers, nanoGPT, torchvision and timm."""
FEWEST_NAMED, MOST_NAMED = 3, 1000
"""Names to which a file gives numbers."""
FEWEST_WORDS = 100
"""Words of a vocabulary."""
_TOKEN_DTYPE = re.compile(r"dtype=(?:np\.|numpy\.)?(uint16|uint32)$")
"""No other numbers of a training run are of these types."""
_SPECIAL = re.compile(r"<[^<>]{1,38}>|\[[A-Z_]{2,20}\]")
"""<|endoftext|>, </s>, [SEP]."""
_PATH = re.compile(r"[\w./\\~ -]{1,200}\.[A-Za-z][A-Za-z0-9]{1,7}")
_ROWS = ("rows", "num_rows", "n_rows", "num_examples", "num_samples", "samples", "nsamples", "count", "n", "length")


def hints_of(
    settings: Iterable[tuple[str, str, Any]], jsons: Iterable[tuple[str, Any]], files: frozenset[str]
) -> Hints:
    """From settings (where, name, value), parsed JSON files (where, value) and the base names of the data files.

    Of a size that is told twice with different values nothing is taken.
    """
    told: dict[str, dict[int, str]] = {}
    manifests = list(jsons)
    every = [*settings, *((where, k, v) for where, data in manifests for k, v in _items(data))]
    for where, name, value in every:
        for size, names in NAMES.items():
            if name.rpartition(".")[2].lower() in names and isinstance(value, int) and value > 1:
                told.setdefault(size, {}).setdefault(value, where)
    sizes = {k: next(iter(v)) for k, v in told.items() if len(v) == 1}
    counts, manifest = _counts(manifests, files)
    widths = {found[-1]: where for where, name, value in every if (found := _TOKEN_DTYPE.findall(f"{name}={value}"))}
    width = next(iter(widths)) if len(widths) == 1 else ""
    highest, source = max(((n, where) for where, data in manifests if (n := _highest_id(data)) is not None),
                          default=(None, ""))
    return Hints(
        vocabulary=sizes.get("vocabulary"),
        positions=sizes.get("positions"),
        classes=sizes.get("classes"),
        rate=sizes.get("rate"),
        told_by={**{k: told[k][v] for k, v in sizes.items()}, **({"token_dtype": widths[width]} if width else {}),
                 **({"highest_id": source} if source else {})},
        highest_id=highest,
        day_first=next((where for where, name, value in every
                        if name.rpartition(".")[2].lower() == "dayfirst" and value is True), ""),
        counts=counts,
        manifest=manifest,
        token_names={i: n for _, data in manifests for n, i in _special_tokens(data)},
        token_dtype=width,
        merges=merges_of(manifests),
        pieces=pieces_of(manifests),
        by_name=tuple(s for where, data in manifests for s in _by_name(where, data)),
        named=frozenset(v for _, _, v in every if isinstance(v, str) and _PATH.fullmatch(v)),
        tables=tuple(t for where, data in manifests if (t := _table(where, data, files)) is not None),
    )


def _table(where: str, data: Any, files: frozenset[str]) -> tuple[str, dict[str, Sequence[object]]] | None:
    """What a JSON says of files: {"a.npz": {"gain": 2}, ...}, or a list of objects that name them."""
    lists = [data, *(data.values() if isinstance(data, dict) else ())]
    for found in lists:
        if isinstance(found, dict):
            found = [{"file": k, **v} for k, v in found.items() if isinstance(v, dict) and Path(str(k)).name in files]
        if not isinstance(found, list) or len(found) < 3 or not all(isinstance(r, dict) for r in found[:10_000]):
            continue
        rows = found[:10_000]
        keys = set.intersection(*(set(r) for r in rows))
        if any(Path(str(rows[0][k])).name in files for k in keys):
            return where, {str(k): [r[k] for r in rows] for k in keys}
    return None


def _by_name(where: str, data: Any, depth: int = 2) -> Iterator[NamedNumbers]:
    """The numbers of an object of objects, or of an object of numbers, by name."""
    if not isinstance(data, dict) or len(data) > MOST_NAMED:
        return
    inner = {str(k): v for k, v in data.items() if isinstance(v, dict)}
    if len(inner) >= FEWEST_NAMED:
        for name in dict.fromkeys(n for v in inner.values() for n in v):
            values = {k: float(v[name]) for k, v in inner.items() if type(v.get(name)) in (int, float)}
            if len(values) >= FEWEST_NAMED:
                yield NamedNumbers(Path(where).name, where, str(name), values)
    for key, value in inner.items() if depth else ():
        numbers = {str(k): float(v) for k, v in value.items() if type(v) in (int, float)}
        if len(numbers) >= FEWEST_NAMED:
            yield NamedNumbers(Path(where).name, where, key, numbers)
        yield from _by_name(where, value, depth - 1)


def _highest_id(data: Any, depth: int = 3) -> int | None:
    """The highest id of a vocabulary {"the": 5, ...}: most numbers from 0 on, each once."""
    if not isinstance(data, dict) or not depth:
        return None
    ids = [v for v in data.values() if type(v) is int]
    if len(ids) >= FEWEST_WORDS and len(ids) == len(data) and min(ids) >= 0 and len(set(ids)) == len(ids):
        return max(ids) if max(ids) < 2 * len(ids) else None
    inner = [n for k in ("vocab", "model", "token_to_id", "stoi") if (n := _highest_id(data.get(k), depth - 1))]
    added = [t["id"] for t in data.get("added_tokens") or () if isinstance(t, dict) and type(t.get("id")) is int]
    return max([*inner, *added]) if inner else None


def _special_tokens(data: Any) -> Iterator[tuple[str, int]]:
    """Names in brackets with their ids: of a vocabulary {"<eos>": 2, ...} or a tokenizer.json of Hugging Face."""
    if not isinstance(data, dict):
        return
    for token in data.get("added_tokens") or ():
        if isinstance(token, dict) and isinstance(token.get("id"), int) and isinstance(token.get("content"), str):
            yield token["content"][:40], token["id"]
    for name in ("vocab", "token_to_id", "stoi"):
        yield from _special_tokens(data.get(name))
    for name, number in data.items():
        if isinstance(number, int) and not isinstance(number, bool) and _SPECIAL.fullmatch(str(name)):
            yield str(name), number


def _items(data: Any, depth: int = 4) -> Iterator[tuple[str, Any]]:
    if isinstance(data, dict) and depth:
        for key, value in list(data.items())[:5000]:
            yield str(key), value
            yield from _items(value, depth - 1)


def _counts(manifests: Iterable[tuple[str, Any]], files: frozenset[str]) -> tuple[dict[str, int], str]:
    """Rows by file, from the first JSON that names files and their rows."""
    for where, data in manifests:
        found = dict(_rows_of(data, files))
        if found:
            return found, where
    return {}, ""


def _rows_of(data: Any, files: frozenset[str], depth: int = 5) -> Iterator[tuple[str, int]]:
    if not depth:
        return
    if isinstance(data, list):
        for item in data[:100_000]:
            yield from _rows_of(item, files, depth - 1)
        return
    if not isinstance(data, dict):
        return
    count = next((data[k] for k in _ROWS if isinstance(data.get(k), int)), None)
    named = next((Path(v).name for v in data.values() if isinstance(v, str) and Path(v).name in files), None)
    if named is not None and count is not None:
        yield named, count
    for key, value in data.items():
        base = Path(str(key)).name
        if base in files and isinstance(value, int):
            yield base, value
        elif base in files and isinstance(value, dict):
            inner = next((value[k] for k in _ROWS if isinstance(value.get(k), int)), None)
            if inner is not None:
                yield base, inner
        else:
            yield from _rows_of(value, files, depth - 1)


def read_settings(paths: Iterable[Path]) -> Iterator[tuple[str, Any]]:
    """The JSON and YAML files that are small enough for a configuration; what does not parse is none."""
    for path in paths:
        ending = path.suffix.lower()
        try:
            if ending == ".json" and path.stat().st_size <= MOST_JSON:
                yield path.name, json.loads(path.read_bytes())
            elif ending in (".yaml", ".yml") and path.stat().st_size <= MOST_YAML:
                yield path.name, load_yaml(path.name, path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError, UnreadableInput, ImportError):
            continue  # damaged, or YAML where nothing reads it: the instruments run without PyYAML as well


def flattened_settings(config: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Any]]:
    """A configuration as settings."""
    yield from ((where, name, value) for name, value in _items(config))
