"""D141 of pictures and the words beside them in a tar: flags, and what they show."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d141_fields_apart as d141

Seen = Callable[[ModuleType, Path], list[Finding]]
COLOURS = {"red": (200, 40, 40), "blue": (40, 60, 190), "green": (50, 160, 60), "yellow": (220, 210, 60),
           "white": (235, 235, 235), "black": (25, 25, 25)}
Flag = tuple[str, str, str]
Words = Callable[[int, Sequence[str]], Sequence[str]]


def flag(rng: np.random.Generator) -> Flag:
    field, bar = rng.choice(list(COLOURS), 2, replace=False).tolist()
    return str(field), str(bar), str(rng.choice(["at the left", "at the right", "on top", "at the bottom"]))


def painted(one: Flag, rng: np.random.Generator) -> Any:
    x = np.tile(np.array(COLOURS[one[0]], np.float64), (36, 36, 1))
    place = {"at the left": np.s_[:, :9], "at the right": np.s_[:, 27:], "on top": np.s_[:9],
             "at the bottom": np.s_[27:]}
    x[place[one[2]]] = COLOURS[one[1]]
    return np.clip(x + rng.normal(0, 8, x.shape), 0, 255).astype(np.uint8)


def write(folder: Path, words: Words, order: Callable[[list[Flag]], list[Flag]] = lambda f: f) -> None:
    """Two tars; `words`: the words of a file as they are stored."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for k in range(2):
        flags = order([flag(rng) for _ in range(500)])
        said = words(k, [f"a {f[0]} flag with a {f[1]} bar {f[2]}" for f in flags])
        with tarfile.open(folder / f"flags-{k:03d}.tar", "w") as tar:
            for i, one in enumerate(flags):
                image.fromarray(painted(one, rng)).save(png := io.BytesIO(), "PNG")
                for ending, data in (("png", png.getvalue()), ("json", json.dumps({"words": said[i]}).encode())):
                    info = tarfile.TarInfo(f"{k * 500 + i:06d}.{ending}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))


def test_words_that_are_those_of_the_next_picture_from_some_row_on(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, lambda k, said: [*said[:180], *said[181:], said[0]] if k else said)
    (found,) = seen_by(d141, tmp_path)
    assert "words of flags-001.tar does not belong to png in rows 1" in found.statement
    assert "off by 1 row" in found.statement


def test_words_of_all_rows_but_the_first_are_late(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, lambda k, said: [*said[:120], said[0], *said[120:-1]] if k else said)
    (found,) = seen_by(d141, tmp_path)
    assert "flags-001.tar" in found.statement


def of_neighbours(k: int, said: Sequence[str]) -> Sequence[str]:
    return [said[i // 8 * 8] for i in range(len(said))]


@pytest.mark.parametrize(("words", "order"), [
    (lambda k, said: said, lambda f: f),
    (lambda k, said: said, sorted),  # neighbours are alike
    (of_neighbours, lambda f: [f[i // 8 * 8] for i in range(len(f))]),  # frames of one scene
    (lambda k, said: np.random.default_rng(1).permutation(said).tolist(), lambda f: f),  # of nothing of it
    (lambda k, said: ["a flag in the wind" for _ in said], lambda f: f),
])
def test_words_that_belong_or_tell_nothing_are_quiet(words: Words, order: Any, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, words, order)
    assert seen_by(d141, tmp_path) == []


def test_a_picture_that_is_none_is_read(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, lambda k, said: [*said[:180], *said[181:], said[0]] if k else said)
    path = tmp_path / "flags-000.tar"
    data = bytearray(path.read_bytes())
    data[1200:1300] = bytes(100)
    path.write_bytes(bytes(data[: len(data) // 2]))
    assert all(f.rule == "D141" for f in seen_by(d141, tmp_path))
