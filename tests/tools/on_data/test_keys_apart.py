"""D177: rows that find no partner in the table that they name, and their healthy twins."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.examination import examine
from traindx_tools.on_data.used_by_code import with_use

STORES = [f"{n:05d}" for n in range(7, 7 + 13 * 40, 13)]


def table(path: Path, head: str, rows: Sequence[Sequence[object]]) -> None:
    path.write_text(head + "\n" + "".join(",".join(map(str, r)) + "\n" for r in rows))


def named(folder: Path, keys: Sequence[str] = STORES, field: str = "store",
          extra: Sequence[Sequence[object]] = ()) -> None:
    rng = random.Random(0)
    table(folder / "stores.csv", f"{field},area,kind", [*((k, round(rng.uniform(50, 900), 1), rng.choice("ABC"))
                                                          for k in keys), *extra])


def sales(folder: Path, name: str, keys: Sequence[str], field: str = "store", seed: int = 1) -> None:
    rng = random.Random(seed)
    table(folder / f"{name}.csv", f"day,{field},amount", [
        (i, rng.choice(keys), round(rng.gauss(20, 3), 2)) for i in range(400)])


def seen(folder: Path) -> list[Finding]:
    return [f for f in examine([folder]).findings if f.rule == "D177"]


@pytest.mark.parametrize(("wrong", "form"), [
    (lambda k: f"{k}.0", "leading zeros"), (lambda k: f" {k}", "white space"),
    (lambda k: k.replace("0", "0-", 1), "separators")])
def test_keys_that_match_only_after_normalising(wrong, form, tmp_path):
    named(tmp_path, [f"s{k}" for k in STORES] if form == "separators" else STORES)
    keys = [f"s{k}" for k in STORES] if form == "separators" else STORES
    sales(tmp_path, "sales", [wrong(k) if i % 3 == 0 else k for i, k in enumerate(keys)])
    (found,) = seen(tmp_path)
    assert found.measured["way"] == "written"
    assert form in found.measured["form"]
    assert found.severity is Severity.MEDIUM


def test_numbers_that_lost_their_zeros(tmp_path):
    named(tmp_path)
    sales(tmp_path, "sales", [k.lstrip("0") for k in STORES])
    (found,) = seen(tmp_path)
    assert found.measured["share"] > 0.9


def test_one_file_of_another_release(tmp_path):
    named(tmp_path, [f"a{k}" for k in STORES])
    for i in range(5):
        sales(tmp_path, f"sales_{i}", [f"{'b' if i == 3 else 'a'}{k}" for k in STORES], seed=i)
    (found,) = seen(tmp_path)
    assert (found.measured["way"], found.measured["part"]) == ("strange part", "sales_3.csv")


def test_a_key_that_stands_twice_with_other_contents(tmp_path):
    named(tmp_path, extra=[(STORES[3], 1.0, "A")])
    sales(tmp_path, "sales", STORES)
    (found,) = seen(tmp_path)
    assert (found.measured["way"], found.severity) == ("doubled", Severity.LOW)


def healthy_new_users(folder):
    named(folder)
    sales(folder, "sales", [*STORES, *(f"9{k}" for k in STORES[:8])])


def healthy_more_stores(folder):
    named(folder)
    sales(folder, "sales", STORES[:9])


def healthy_unrelated_ids(folder):
    table(folder / "images.csv", "id,width,height", [(i, 64 + i % 7, 64) for i in range(300)])
    for part in range(3):
        table(folder / f"notes_{part}.csv", "id,label", [(200 * part + i, i % 3) for i in range(200)])


def healthy_same_row_twice(folder):
    named(folder)
    text = (folder / "stores.csv").read_text().splitlines()
    (folder / "stores.csv").write_text("\n".join([*text, text[4]]) + "\n")
    sales(folder, "sales", STORES)


def healthy_versions(folder):
    rng = random.Random(0)
    table(folder / "stores.csv", "store,time,area", [
        (k, t, rng.uniform(1, 9)) for k in STORES for t in range(2 if k < "00100" else 1)])
    sales(folder, "sales", STORES)


def healthy_case_is_another_key(folder):
    named(folder, [f"k{c}{d}" for c in "aAbBcC" for d in range(8)])
    sales(folder, "sales", [f"k{c}{d}" for c in "aAbBcCdD" for d in range(8)])


@pytest.mark.parametrize("make", [healthy_new_users, healthy_more_stores, healthy_unrelated_ids, healthy_same_row_twice,
                                  healthy_versions, healthy_case_is_another_key])
def test_healthy_twins(make, tmp_path):
    make(tmp_path)
    assert [f for f in seen(tmp_path) if f.severity.rank >= Severity.LOW.rank] == []


@pytest.mark.parametrize(("code", "severity"), [
    ("t = {r['store']: r for r in rows}\nx = [t.get(s['store']) for s in sales]", Severity.HIGH),
    ("t = {r['store'].zfill(5): r for r in rows}", Severity.INFO), ("print('hello')", Severity.MEDIUM),
    ("x = int('3')\nt = {r['store']: r for r in rows}", Severity.HIGH),
    ("t = {int(r['store']): r for r in rows}", Severity.INFO)])
def test_the_code_decides(code, severity, tmp_path):
    named(tmp_path)
    sales(tmp_path, "sales", [k.lstrip("0") for k in STORES])
    (tmp_path / "train.py").write_text(code)
    assert [f.severity for f in with_use(seen(tmp_path), [tmp_path / "train.py"])] == [severity]


def test_torn_tables_say_nothing(tmp_path):
    (tmp_path / "stores.csv").write_text("store,area\n00007,")
    (tmp_path / "sales.csv").write_bytes(b"store,amount\n\xff\xfe\x00,1\n")
    assert seen(tmp_path) == []
