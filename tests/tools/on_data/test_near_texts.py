"""D203: held-out texts that are training texts in another case, with other marks or a few other words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d203_near_texts as d203

Seen = Callable[[ModuleType, Path], list[Finding]]
WORDS = [f"{a}{b}" for a in ("ba", "co", "du", "fe", "gi", "lo", "mu", "ne") for b in ("r", "st", "nd", "lt", "m", "x")]


def texts(seed: int, count: int, frame: str = "") -> list[str]:
    rng = np.random.default_rng(seed)
    return [frame + " ".join(rng.choice(WORDS, rng.integers(14, 30))).capitalize() + "." for _ in range(count)]


def written(folder: Path, train: list[str], test: list[str]) -> None:
    for name, some in (("train", train), ("test", test)):
        lines = [f'"{t}",{i % 2}' for i, t in enumerate(some)]
        (folder / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")


def one_word_less(text: str) -> str:
    return " ".join(w for i, w in enumerate(text.split()) if i != 6)


@pytest.mark.parametrize("change", [
    str.upper, lambda t: t.rstrip(".").lower(), lambda t: t.replace(" ", "  "), lambda t: t.replace(" ", ", ", 4),
    one_word_less, lambda t: "Well, " + t])
def test_written_otherwise(change: Callable[[str], str], tmp_path: Path, seen_by: Seen) -> None:
    train = texts(0, 400)
    written(tmp_path, train, [*texts(1, 60), *(change(t) for t in train[10:50])])
    (told,) = seen_by(d203, tmp_path)
    assert told.severity is Severity.HIGH
    assert 0.35 <= told.measured["share"] <= 0.4  # type: ignore[operator]
    assert told.measured["rows"][0] == 60  # type: ignore[index]


@pytest.mark.parametrize("design", ["new", "equal", "template", "greeting", "few", "train as near", "short"])
def test_texts_that_may_be_alike(design: str, tmp_path: Path, seen_by: Seen) -> None:
    train, test = texts(0, 400), texts(1, 100)
    if design == "equal":
        test[:40] = train[:40]
    if design == "template":
        frame = "Dear guest thank you for your stay at our house and we hope to see you again soon in room "
        train, test = ([f"{frame}{i % 97} {t[:30]}" for i, t in enumerate(s)] for s in (train, test))
    if design == "greeting":
        train, test = texts(0, 400, "To whom it may concern in our house of many rooms "), texts(
            1, 100, "To whom it may concern in our house of many rooms ")
    if design == "few":
        test[:5] = [t.upper() for t in train[:5]]
    if design == "train as near":
        train = [*train, *(one_word_less(t) for t in train)]
        test[:40] = [t.upper() for t in train[:40]]
    if design == "short":
        train, test = ([" ".join(t.split()[:6]) for t in s] for s in (train, [t.upper() for t in train[:100]]))
    written(tmp_path, train, test)
    assert not seen_by(d203, tmp_path)


def test_texts_that_hold_nothing(tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, [""] * 50, ["..."] * 50)
    assert not seen_by(d203, tmp_path)
