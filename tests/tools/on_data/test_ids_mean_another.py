"""Ids that stand for something else in one part: another order of the same catalogue, in one file or one month."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.examination import examine
from traindx_tools.on_data.rules import d187_ids_mean_another as d187

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]
ITEMS, ROWS = 60, 1500


@dataclass
class Shop:
    """Items with names, a popularity, an effect and a region each, and the rows of one file."""

    rng: np.random.Generator
    power: float = 0.7

    def __post_init__(self) -> None:
        letters = self.rng.permutation(list("ABCDEFGHIJKLMNOPQRST" * 3))[:ITEMS]
        self.names = [f"{a}{b}" for a, b in zip(letters, self.rng.integers(100, 999, ITEMS), strict=True)]
        self.effect = self.rng.normal(size=ITEMS)
        self.region = self.rng.integers(0, 4, ITEMS)
        popularity = self.rng.permutation(1 / np.arange(1, ITEMS + 1) ** self.power)
        self.popularity = popularity / popularity.sum()
        self.place = np.empty(ITEMS, int)
        self.place[np.argsort(self.names)] = np.arange(ITEMS)

    def rows(self, shift: float = 0.0) -> dict[str, Array]:
        item = self.rng.choice(ITEMS, ROWS, p=self.popularity)
        return {"item": item, "demand": self.effect[item] * 1.5 + self.rng.normal(size=ROWS) + shift,
                "price": np.exp(self.effect[item] * 0.3 + self.rng.normal(size=ROWS) * 0.3),
                "region": np.array(list("NESW"))[self.region[item]]}


Edit = Callable[[Shop, dict[str, Array]], dict[str, Array]]


def write(path: Path, rows: dict[str, Array]) -> None:
    lines = zip(*([f"{v:.4f}" if isinstance(v, float) else str(v) for v in c.tolist()] for c in rows.values()),
                strict=True)
    path.write_text(",".join(rows) + "\n" + "\n".join(map(",".join, lines)) + "\n")


def files(folder: Path, edit: Edit | None, odd: int = 3, parts: int = 5, table: bool = False, seed: int = 0,
          drop: tuple[str, ...] = (), names: tuple[str, ...] = (), power: float = 0.7) -> None:
    shop = Shop(np.random.default_rng(seed), power)
    for part in range(parts):
        rows = shop.rows(0.2 * part)
        rows = edit(shop, rows) if edit is not None and part == odd else rows
        write(folder / (names[part] if names else f"part{part}.csv"), {k: v for k, v in rows.items() if k not in drop})
    if table:
        body = "".join(f"{i},{n}\n" for i, n in enumerate(shop.names))
        (folder / "items.csv").write_text(f"item,name\n{body}")


def alphabetical(shop: Shop, rows: dict[str, Array]) -> dict[str, Array]:
    return {**rows, "item": shop.place[rows["item"]]}


def renumbered(shop: Shop, rows: dict[str, Array]) -> dict[str, Array]:
    return {**rows, "item": shop.rng.permutation(ITEMS)[rows["item"]]}


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_an_alphabetical_order_of_a_table_beside_the_data_is_named(seed: int, tmp_path: Path, seen_by: Seen) -> None:
    files(tmp_path, alphabetical, table=True, seed=seed)
    (found,) = seen_by(d187, tmp_path)
    assert found.severity is Severity.HIGH
    assert (found.measured["field"], found.measured["part"], found.measured["kind"]) == ("item", "part3.csv", "ordered")
    assert "alphabetical by name in items.csv" in found.statement
    assert abs(float(str(found.measured["here"]))) < 0.3
    assert float(str(found.measured["after"])) > 0.8


def test_an_order_by_count_is_named_without_a_table(tmp_path: Path, seen_by: Seen) -> None:
    def by_count(shop: Shop, rows: dict[str, Array]) -> dict[str, Array]:
        place = np.empty(ITEMS, int)
        place[np.argsort(-shop.popularity)] = np.arange(ITEMS)
        return {**rows, "item": place[rows["item"]]}

    files(tmp_path, by_count, drop=("region",), power=1.3)
    (found,) = seen_by(d187, tmp_path)
    assert found.measured["kind"] == "ordered"
    assert "how often they occur" in str(found.measured["order"])


def test_another_numbering_without_a_known_order_is_told_by_several_quantities(tmp_path: Path, seen_by: Seen) -> None:
    files(tmp_path, renumbered)
    (found,) = seen_by(d187, tmp_path)
    assert (found.severity, found.measured["kind"]) == (Severity.HIGH, "several")
    assert "no order that is known here" in found.statement


def test_one_quantity_alone_is_medium(tmp_path: Path, seen_by: Seen) -> None:
    files(tmp_path, renumbered, drop=("price", "region"), power=0.0)
    (found,) = seen_by(d187, tmp_path)
    assert (found.severity, found.measured["kind"]) == (Severity.MEDIUM, "one")


def test_one_finding_tells_what_other_rules_see_of_it(tmp_path: Path) -> None:
    files(tmp_path, alphabetical, table=True)
    assert [f.rule for f in examine([tmp_path]).wrong] == ["D187"]


def test_a_month_within_one_file_is_a_part(tmp_path: Path, seen_by: Seen) -> None:
    shop = Shop(np.random.default_rng(3))
    every: list[dict[str, Array]] = []
    for month in range(1, 7):
        rows = shop.rows()
        rows = renumbered(shop, rows) if month == 4 else rows
        days = shop.rng.integers(1, 28, ROWS)
        every.append({"date": np.array([f"2023-{month:02d}-{d:02d}" for d in days]), **rows})
    write(tmp_path / "sales.csv", {k: np.concatenate([e[k] for e in every]) for k in every[0]})
    (found,) = seen_by(d187, tmp_path)
    assert (found.measured["by"], found.measured["part"]) == ("date", "2023-04")


def test_held_out_ids_in_another_order_are_told_where_the_order_is_known(tmp_path: Path, seen_by: Seen) -> None:
    files(tmp_path, alphabetical, odd=1, parts=2, table=True, names=("train.csv", "test.csv"))
    (found,) = seen_by(d187, tmp_path)
    assert found.measured["kind"] == "ordered"


def shuffled(shop: Shop, rows: dict[str, Array]) -> dict[str, Array]:
    return {**rows, "demand": shop.rng.permutation(rows["demand"])}


def sale(shop: Shop, rows: dict[str, Array]) -> dict[str, Array]:
    return {**rows, "price": shop.rng.lognormal(size=ITEMS)[rows["item"]]}


def popular(shop: Shop, rows: dict[str, Array]) -> dict[str, Array]:
    other = Shop(np.random.default_rng(99))
    shop.popularity = other.popularity
    return shop.rows()


def reversed_sign(shop: Shop, rows: dict[str, Array]) -> dict[str, Array]:
    return {**rows, "demand": -rows["demand"], "price": 1 / rows["price"]}


@pytest.mark.parametrize("edit", [None, shuffled, sale, popular, reversed_sign])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_what_changes_without_another_numbering_is_quiet(edit: Edit | None, seed: int, tmp_path: Path, seen_by: Seen
                                                         ) -> None:
    files(tmp_path, edit, table=True, seed=seed)
    assert seen_by(d187, tmp_path) == []


def test_files_with_ids_of_their_own_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    shop = Shop(np.random.default_rng(5))
    for part in range(5):
        write(tmp_path / f"site{part}.csv", renumbered(shop, shop.rows()))
    assert seen_by(d187, tmp_path) == []


def test_two_files_with_ids_of_their_own_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    files(tmp_path, renumbered, odd=1, parts=2, table=True)
    assert seen_by(d187, tmp_path) == []


def test_a_number_that_measures_is_no_id(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(6)
    for part in range(5):
        age = rng.integers(18, 80, ROWS)
        bent = np.sin(age / 9.0) if part == 2 else age / 30.0
        write(tmp_path / f"part{part}.csv", {"age": age, "cost": bent + rng.normal(size=ROWS) * 0.3})
    assert seen_by(d187, tmp_path) == []


def test_parts_of_few_rows_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    shop = Shop(np.random.default_rng(7))
    for part in range(5):
        rows = {k: v[:60] for k, v in shop.rows().items()}
        write(tmp_path / f"part{part}.csv", renumbered(shop, rows) if part == 3 else rows)
    assert seen_by(d187, tmp_path) == []


def test_empty_cells_and_empty_files_are_read(tmp_path: Path, seen_by: Seen) -> None:
    files(tmp_path, renumbered)
    (tmp_path / "part0.csv").write_text("item,demand,price,region\n")
    text = (tmp_path / "part1.csv").read_text().splitlines()
    (tmp_path / "part1.csv").write_text("\n".join([text[0], ",,,", *text[1:]]) + "\n")
    assert seen_by(d187, tmp_path) == []


@pytest.mark.slow
def test_unrelated_tables_of_items_are_in_no_order(tmp_path: Path) -> None:
    """What goes along with few items by chance is no order of theirs (D167, D169)."""
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        files(folder, None, table=True, seed=seed)
        rng = np.random.default_rng(seed)
        body = "".join(f"{w:.3f},{h:.3f}\n" for w, h in rng.normal(size=(ITEMS, 2)))
        (folder / "weights.csv").write_text(f"weight,height\n{body}")
        assert examine([folder]).wrong == ()


def _lengths(rng: np.random.Generator, low: int, high: int, rows: int = 1500) -> Array:
    sizes = np.clip(np.rint(rng.lognormal(np.log(0.7 * high), 0.4, rows)), low, high)
    return sizes.astype(int)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize("named", [False, True])
def test_a_length_by_which_rows_were_put_into_buckets_is_no_id(named: bool, seed: int, tmp_path: Path, seen_by: Seen
                                                               ) -> None:
    rng = np.random.default_rng(seed)
    for part, (low, high) in enumerate([(2, 12), (2, 24), (13, 48), (25, 96)]):
        length = _lengths(rng, low, high)
        texts = {"text": np.array(["x" * n for n in length])} if named else {}
        write(tmp_path / f"bucket{part}.csv", {"length": length, "score": rng.normal(size=len(length)), **texts})
    assert seen_by(d187, tmp_path) == []


def test_a_number_that_counts_the_row_s_own_items_is_no_id(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(8)
    share = rng.dirichlet(np.full(40, 0.5))
    for part in range(5):
        size = rng.choice(40, ROWS, p=share[::-1] if part == 2 else share) + 1
        write(tmp_path / f"part{part}.csv", {"size": size, "text": np.array(["x" * n for n in size]),
                                             "cost": rng.normal(size=ROWS)})
    assert seen_by(d187, tmp_path) == []
