"""Lists of names with an index each, in small files beside the data: classes, labels, tokens, features.

Lines of a text, lists and objects in JSON and YAML, the metadata of safetensors, arrays of texts in npy. An object that
gives each name a number is taken by its numbers, a list by its order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.on_data.hints import read_settings
from traindx_tools.on_data.name_list import NameList

FEWEST = 3
SURE = 5
"""Names from which numbers 0 to n - 1 are an index whatever it is called: counts are so by chance of 1 in 120."""
MOST_NAMES = 300_000
MOST_BYTES = 4 * 2**20
MOST_FILES = 1_000
LONGEST = 60
"""Characters of a name; longer lines are sentences."""
DEPTH = 5
_SAID = re.compile(r"class|label|categor|vocab|token|id2|2id|idx|index|stoi|itos|names|columns|features|channels"
                   r"|speakers|species|tags|intents|phone|chars|alphabet|targets", re.IGNORECASE)
_ANOTHER = re.compile(r"import|rank|sorted|top|report|metric|score|best|worst|stop|ignore|exclude|drop|unused|common"
                      r"|freq|shuffl|readme|note|legend|plot|colou?r|display|todo|log|history", re.IGNORECASE)
"""How lists are called whose order is another one than that of an index, on purpose."""
_FILE = re.compile(r".*(?:[\\/]|\.[A-Za-z][A-Za-z0-9]{1,7}$)")
_WEIGHTS = frozenset({".safetensors", ".pt", ".pth", ".ckpt", ".msgpack", ".onnx", ".keras"})
_PAIR = re.compile(r"(\d+)[\s:,=]+(\S.*)|(\S.*?)[\s:,=]+(\d+)")


def name_lists_of(files: Iterable[tuple[Path, str]]) -> tuple[NameList, ...]:
    """What the files say; `files`: each with its name. One that does not parse says nothing."""
    out: list[NameList] = []
    files = list(files)
    weights = {path.parent for path, _ in files if path.suffix.lower() in _WEIGHTS}
    for count, (path, name) in enumerate(f for f in files if f[0].suffix.lower() in _READERS):
        if count >= MOST_FILES:
            break
        try:
            found = _READERS[path.suffix.lower()](path, name)
            out += [replace(n, beside_weights=True) for n in found] if path.parent in weights else found
        except (OSError, ValueError, EOFError, RecursionError, MemoryError):
            continue
    return tuple(out)


def _of_text(path: Path, name: str) -> Iterator[NameList]:
    if path.stat().st_size > MOST_BYTES:
        return
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    pairs = [_PAIR.fullmatch(line) for line in lines]
    if lines and all(pairs):
        first = all(p is not None and p[1] for p in pairs)
        numbers = {(p[2] if first else p[3]): int(p[1] if first else p[4]) for p in pairs if p is not None
                   and p[1 if first else 4]}
        if (found := _numbered(numbers)) is not None and len(numbers) == len(lines):
            yield _named(name, (), found[0], True, found[1])
            return
    if _are_names(lines):
        yield _named(name, (), tuple(lines), False, False)


def _of_settings(path: Path, name: str) -> Iterator[NameList]:
    for _, said in read_settings([path]):
        yield from _in(name, (), said, DEPTH)


def _of_safetensors(path: Path, name: str) -> Iterator[NameList]:
    """The texts of `__metadata__`, JSON in them as well; the tensors are not read."""
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if not 2 <= size <= MOST_BYTES:
            return
        said = json.loads(stream.read(size)).get("__metadata__", {})
    for key, text in said.items() if isinstance(said, dict) else ():
        if isinstance(text, str) and text.lstrip()[:1] in ("[", "{"):
            yield from _in(name, (str(key),), json.loads(text), DEPTH)
        elif isinstance(text, str):
            parts = [t.strip() for t in re.split(r"[,;|\n]", text)]
            if _are_names(parts):
                yield _named(name, (str(key),), tuple(parts), False, False)


def _of_array(path: Path, name: str) -> Iterator[NameList]:
    if path.stat().st_size <= MOST_BYTES:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
        if values.ndim == 1 and values.dtype.kind == "U" and _are_names(texts := values.tolist()):
            yield _named(name, (), tuple(texts), False, False)


_READERS = {".txt": _of_text, ".names": _of_text, ".json": _of_settings, ".yaml": _of_settings, ".yml": _of_settings,
            ".safetensors": _of_safetensors, ".npy": _of_array}


def _in(file: str, keys: tuple[str, ...], said: Any, depth: int) -> Iterator[NameList]:
    if isinstance(said, Mapping):
        found = _numbered(_numbers_of(said))
        if found is not None:
            yield _named(file, keys, found[0], True, found[1])
        for key, value in list(said.items())[:5000] if depth and found is None else ():
            if isinstance(value, (Mapping, list)):
                yield from _in(file, (*keys, str(key)), value, depth - 1)
    elif isinstance(said, list) and _are_names(said):
        yield _named(file, keys, tuple(said), False, False)
    elif isinstance(said, list) and said and all(isinstance(s, Mapping) for s in said[:MOST_NAMES]):
        found = _numbered(_of_records(said))
        if found is not None:
            yield _named(file, keys, found[0], True, found[1])


def _numbers_of(said: Mapping[Any, Any]) -> dict[str, int]:
    """{"cat": 0, ...} and {"0": "cat", ...} as numbers by names, {} for anything else."""
    if not FEWEST <= len(said) <= MOST_NAMES:
        return {}
    if all(type(v) is int for v in said.values()):
        return {str(k): v for k, v in said.items()}
    if all(isinstance(v, str) for v in said.values()) and all(str(k).isdecimal() for k in said):
        numbers = {v: int(k) for k, v in said.items()}
        return numbers if len(numbers) == len(said) else {}
    return {}


def _of_records(said: Sequence[Mapping[Any, Any]]) -> dict[str, int]:
    """[{"id": 0, "name": "cat"}, ...], as categories of COCO."""
    numbers = {s.get("name"): s.get("id") for s in said[:MOST_NAMES]}
    whole = len(numbers) == len(said) and all(isinstance(k, str) and type(v) is int for k, v in numbers.items())
    return {str(k): v for k, v in numbers.items() if type(v) is int} if whole else {}


def _numbered(numbers: Mapping[str, int]) -> tuple[tuple[str, ...], bool] | None:
    """The names by their numbers, which are 0 to n - 1 or 1 to n, and whether they begin with 0; None of any other."""
    if not FEWEST <= len(numbers) <= MOST_NAMES:
        return None
    ordered = sorted(numbers, key=lambda k: numbers[k])
    first = numbers[ordered[0]]
    if first not in (0, 1) or [numbers[k] for k in ordered] != list(range(first, first + len(ordered))):
        return None
    return (tuple(ordered), first == 0) if _are_names(ordered) else None


def _are_names(said: Sequence[Any]) -> bool:
    """Whether these are texts, short, each once, and neither numbers nor files."""
    if not FEWEST <= len(said) <= MOST_NAMES or not all(isinstance(s, str) for s in said[:MOST_NAMES]):
        return False
    some = said[:: max(1, len(said) // 200)]
    if not all(0 < len(s) <= LONGEST for s in some) or len(set(said)) != len(said):
        return False
    return sum(bool(_FILE.fullmatch(s)) for s in some) < 0.5 * len(some) and not all(
        s.lstrip("-").replace(".", "", 1).isdecimal() for s in some)


def _named(file: str, keys: tuple[str, ...], names: tuple[str, ...], numbered: bool, from_zero: bool) -> NameList:
    called = " ".join((Path(file).stem, *keys))
    another = bool(_ANOTHER.search(called))
    return NameList(file, ".".join(keys), names, numbered,
                    not another and ((from_zero and len(names) >= SURE) or bool(_SAID.search(called))),
                    int(numbered and not from_zero))
