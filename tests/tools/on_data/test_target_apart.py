"""D208: a number that in one part runs against its row, was moved by rows, or is of other rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d208_target_apart as d208

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]
GOOD, BAD = ["fine", "clear", "careful", "rich", "apt"], ["poor", "vague", "thin", "rash", "dull"]
COMMON = ["text", "on", "the", "school", "and", "its", "rules", "today"]
Rows = list[dict[str, Any]]


def essays(seed: int, count: int = 1200, raters: int = 6) -> Rows:
    """Scores of 1 to 6 by how many good and bad words an essay holds."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        quality = rng.normal()
        words = [*rng.choice(GOOD, rng.poisson(max(0.2, 3 + 2 * quality))),
                 *rng.choice(BAD, rng.poisson(max(0.2, 3 - 2 * quality))), *rng.choice(COMMON, 12)]
        rng.shuffle(words)
        score = int(np.clip(np.rint(3.5 + 1.4 * quality + 0.4 * rng.normal()), 1, 6))
        out.append({"rater": f"r{rng.integers(0, raters)}", "text": " ".join(words), "score": score})
    return out


def of_rater(rows: Rows, change: Callable[[Array], Array]) -> None:
    own = [i for i, r in enumerate(rows) if r["rater"] == "r2"]
    for i, score in zip(own, change(np.array([rows[i]["score"] for i in own])), strict=True):
        rows[i]["score"] = int(score)


def in_a_stretch(rows: Rows, change: Callable[[Array], Array]) -> None:
    for i, score in zip(range(400, 640), change(np.array([r["score"] for r in rows[400:640]])), strict=True):
        rows[i]["score"] = int(score)


def written(folder: Path, rows: Rows, files: int = 1) -> None:
    size = -(-len(rows) // files)
    for k in range(files):
        (folder / f"part-{k}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows[k * size:(k + 1) * size]))


def shuffled(scores: Array) -> Array:
    return np.random.default_rng(5).permutation(scores)


@pytest.mark.parametrize(("change", "kind"), [(lambda s: 7 - s, "against"), (shuffled, "lost"),
                                              (lambda s: np.roll(s, 9), "moved")])
@pytest.mark.parametrize("part", [of_rater, in_a_stretch])
def test_one_part(change: Callable[[Array], Array], kind: str, part: Callable[..., None], tmp_path: Path,
                  seen_by: Seen) -> None:
    rows = essays(0)
    part(rows, change)
    written(tmp_path, rows)
    (told,) = seen_by(d208, tmp_path)
    assert told.severity is Severity.HIGH
    assert (told.measured["field"], told.measured["kind"]) == ("score", kind)
    if part is of_rater:
        assert told.measured["part"] == "'r2'"
    else:
        first, last = told.measured["rows"]  # type: ignore[misc]
        assert abs(first - 400) < 20 > abs(last - 639)


def stricter(scores: Array) -> Array:
    return np.clip(scores - 2, 1, 6)


def on_another_scale(scores: Array) -> Array:
    return scores * 10


@pytest.mark.parametrize("change", [None, stricter, on_another_scale])
def test_raters_with_a_level_of_their_own(change: Callable[[Array], Array] | None, tmp_path: Path, seen_by: Seen
                                          ) -> None:
    rows = essays(1)
    if change is not None:
        of_rater(rows, change)
    written(tmp_path, rows, files=3)
    assert not seen_by(d208, tmp_path)


def test_a_rater_who_looks_at_something_else(tmp_path: Path, seen_by: Seen) -> None:
    rows = essays(2)
    for row in rows:
        if row["rater"] == "r2":
            row["score"] = min(6, 1 + row["text"].count("school") * 2)
    written(tmp_path, rows)
    assert not seen_by(d208, tmp_path)


def test_texts_that_say_less(tmp_path: Path, seen_by: Seen) -> None:
    rows = essays(3)
    for row in rows[400:640]:
        row["text"] = " ".join(w for w in row["text"].split() if w in COMMON)
    written(tmp_path, rows)
    assert not seen_by(d208, tmp_path)


def test_bases_by_place_and_wells_in_another_order(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(0)
    seq = rng.integers(0, 4, (1500, 40), np.uint8)
    weight = rng.normal(size=(40, 4))
    value = weight[np.arange(40), seq].sum(axis=1) + 0.5 * rng.normal(size=1500)
    value[800:1000] = np.roll(value[800:1000], 8)
    np.savez(tmp_path / "train.npz", seq=seq, activity=value.astype(np.float32))
    (told,) = seen_by(d208, tmp_path)
    assert (told.measured["kind"], told.measured["lag"]) == ("moved", 8)


def test_rows_that_hold_nothing(tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, [{"rater": f"r{i % 5}", "text": "", "score": i % 6} for i in range(300)])
    np.savez(tmp_path / "a.npz", x=np.zeros((300, 12)), y=np.full(300, np.nan))
    assert not seen_by(d208, tmp_path)


def test_numbers_of_the_rows_that_copies_came_from(tmp_path: Path, seen_by: Seen) -> None:
    """What a copy came from is known from other copies, and from no more: rows of single ones are no other part."""
    rng = np.random.default_rng(0)
    base, at = rng.normal(size=(900, 24)).astype(np.float32), rng.permutation(900)
    source = np.concatenate([at[:90], np.tile(at[90:180], 5)])
    x = base[source] + 0.05 * rng.normal(size=(len(source), 24)).astype(np.float32)
    np.savez(tmp_path / "copies.npz", x=x.astype(np.float32), source_row=source)
    assert not seen_by(d208, tmp_path)
