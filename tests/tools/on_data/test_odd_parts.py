"""One shard or one stretch of rows that is otherwise, in several formats; what is otherwise on purpose or by nature."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from data_making import WRITERS, records, sentence

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.odd_parts import odd_shard, odd_stretch
from traindx_tools.on_data.repairs import repaired
from traindx_tools.on_data.rules import d142_odd_part
from traindx_tools.on_data.text_statistics import text_statistics

Seen = Callable[[ModuleType, Path], list[Finding]]
FORMATS = ["npz", "csv", "jsonl", "tar", "tfrecord", "hdf5", "parquet", "mds"]


def table(folder: Path, form: str, edit: Callable[[int, Any], Any], shards: int = 6) -> None:
    """Files of four measurements, the first two of which tell each other."""
    rng = np.random.default_rng(0)
    for i in range(shards):
        x = rng.normal(size=(300, 4)) + np.array([20, 5, 3, 0])
        x[:, 1] = 0.9 * (x[:, 0] - 20) + 0.4 * rng.normal(size=300)
        WRITERS[form](folder / f"part_{i}", {"x": edit(i, x).astype(np.float32), "y": rng.integers(0, 3, 300)})


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


@pytest.mark.parametrize("form", FORMATS)
def test_a_stretch_in_another_unit(form: str, tmp_path: Path, seen_by: Seen) -> None:
    def edit(i: int, x: Any) -> Any:
        if i == 2:
            x[100:180, 0] *= 3.6
        return x

    table(tmp_path, form, edit)
    (finding,) = alarms(seen_by(d142_odd_part, tmp_path))
    first, last = finding.measured["rows"]
    assert "part_2" in finding.statement
    assert abs(first - 100) <= 3
    assert abs(last - 179) <= 3
    assert finding.measured["repair"] == "divide by 3.6"


@pytest.mark.parametrize("form", ["npz", "csv", "parquet"])
def test_a_shard_whose_column_belongs_to_other_rows(form: str, tmp_path: Path, seen_by: Seen) -> None:
    def edit(i: int, x: Any) -> Any:
        if i == 4:
            x[:, 1] = np.roll(x[:, 1], 57)
        return x

    table(tmp_path, form, edit)
    (finding,) = alarms(seen_by(d142_odd_part, tmp_path))
    assert "part_4" in finding.statement
    assert "what the other fields of its row say" in finding.statement


@pytest.mark.parametrize("edit", [
    lambda i, x: x,
    lambda i, x: x * [1 + i, 1, 1, 1],  # each device its own
    lambda i, x: x[np.argsort(x[:, 0])],  # sorted by a value
    lambda i, x: x + 3 * np.sin(np.arange(300) / 25)[:, None],  # seasons
    lambda i, x: x + np.repeat([0, 4, 0, 4, 2, 0], 50)[:, None],  # sources one behind the other
    lambda i, x: np.where(x > 1e9, x, np.exp(x / 3)),  # heavy tails
])
def test_what_is_otherwise_by_nature(edit: Callable[[int, Any], Any], tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path, "npz", edit)
    assert not alarms(seen_by(d142_odd_part, tmp_path))


def test_a_manifest_that_names_the_part_makes_it_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path, "npz", lambda i, x: x * (4 if i == 5 else 1))
    assert alarms(seen_by(d142_odd_part, tmp_path))
    told = [{"file": f"part_{i}.npz", "gain": 4 if i == 5 else 1} for i in range(6)]
    (tmp_path / "manifest.json").write_text(json.dumps(told))
    (finding,) = seen_by(d142_odd_part, tmp_path)
    assert finding.severity is Severity.INFO
    assert "manifest.json says gain 4" in finding.statement


def test_a_field_that_names_the_stretch_makes_it_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    mode = np.repeat([0, 1, 0], [400, 150, 450])
    np.savez(tmp_path / "log.npz", flow=rng.normal(size=1000) + 5 * mode, mode=mode)
    assert not alarms(seen_by(d142_odd_part, tmp_path))


@pytest.mark.parametrize(("how", "said"), [
    (lambda t: t.encode().decode("cp1252"), "beyond ASCII|other signs"),
    (lambda t: t.replace(" ", "  "), "behind a space"),
    (str.upper, "capitals"),
    (lambda t: t[::-1], "letter pairs|ends"),
])
def test_texts_of_another_form(how: Callable[[str], str], said: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(2)
    for i in range(5):
        texts = [f"{sentence(rng, int(rng.integers(0, 3)))} café über naïve.".capitalize() for _ in range(120)]
        records(tmp_path / f"part_{i}", [{"text": how(t) if i == 3 and 40 <= k < 80 else t}
                                        for k, t in enumerate(texts)])
    (finding,) = alarms(seen_by(d142_odd_part, tmp_path))
    assert "rows 40..79 of part_3.jsonl" in finding.statement
    assert any(s in finding.statement for s in said.split("|"))


def test_rows_in_no_order_give_no_stretch() -> None:
    rng = np.random.default_rng(3)
    assert not any(odd_stretch(0, rng.standard_t(1, 400), 10) for _ in range(200))
    assert not any(odd_shard([rng.normal(size=50) for _ in range(6)], 10) for _ in range(200))


def test_what_undoes_it() -> None:
    rng = np.random.default_rng(4)
    usual = rng.normal(15, 4, 500)
    assert (found := repaired(rng.normal(15, 4, 200) * 1.8 + 32, usual)) is not None
    assert found.name == "celsius"
    assert repaired(rng.uniform(0, 1, 200) ** 8, usual) is None


def test_texts_of_half_a_character_are_read(tmp_path: Path) -> None:
    told = dict(text_statistics(["\ud800 broken surrogate and more", "", "plain text of words"] * 5))
    assert all(np.isfinite(v).all() and len(v) == 15 for v in told.values())
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in ("\ud800 x" * 9, "") * 40))
    assert not examine([tmp_path]).notes


def test_names_of_one_form_are_equal_in_every_row() -> None:
    """Their digits differ and no pair of letters does: what a running sum rounds is no difference."""
    from traindx_tools.on_data.text_statistics import text_statistics

    names = [f"pictures/fastener_f{i:04d}.png" for i in range(400)]
    told = dict(text_statistics(names))
    assert len(np.unique(told["how usual its letter pairs are"])) == 1


@pytest.mark.parametrize("kind", ["index in order", "starts over", "step"])
def test_a_counter_has_no_odd_part(kind: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(0)
    count = {"index in order": np.concatenate([rng.permutation(2000)[:1500], np.arange(500)]),
             "starts over": np.concatenate([np.arange(1000) % 50, np.arange(200) + 400, np.arange(800) % 50]),
             "step": np.concatenate([np.arange(1500), np.arange(500) + 50_000])}[kind]
    WRITERS["csv"](tmp_path / "log", {"count": count, "x": rng.normal(size=2000), "y": rng.integers(0, 3, 2000)})
    assert not seen_by(d142_odd_part, tmp_path)


def test_row_numbers_written_over_a_measurement_are_told(tmp_path: Path, seen_by: Seen) -> None:
    def edit(i: int, x: Any) -> Any:
        if i == 2:
            x[:, 0] = np.arange(len(x))
        return x

    table(tmp_path, "npz", edit)
    assert any("part_2" in f.statement for f in alarms(seen_by(d142_odd_part, tmp_path)))
