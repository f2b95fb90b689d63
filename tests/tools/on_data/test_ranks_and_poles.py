"""Samples that ranks share, fields at the poles of what the code does with them, temperatures in another unit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examination
from traindx_tools.on_data.code_poles import at_poles
from traindx_tools.on_data.degrees import degrees_apart
from traindx_tools.on_data.rules import d101_not_finite as d101
from traindx_tools.on_data.rules import d104_other_scale as d104
from traindx_tools.on_data.rules import d105_other_form as d105
from traindx_tools.on_data.rules import d113_copies as d113
from traindx_tools.on_data.rules import d174_ranks_overlap as d174

Seen = Callable[[ModuleType, Path], list[Finding]]
Rows = np.ndarray[Any, Any]


def ranks(folder: Path, orders: list[Rows]) -> None:
    for i, order in enumerate(orders):
        np.save(folder / f"epoch1_rank{i}.npy", order)


def test_a_rank_with_another_seed_is_named(tmp_path: Path, seen_by: Seen) -> None:
    one, two = (np.random.default_rng(s).permutation(4000) for s in (0, 1))
    ranks(tmp_path, [two[i::4] if i == 3 else one[i::4] for i in range(4)])
    (found,) = seen_by(d174, tmp_path)
    assert found.severity is Severity.HIGH
    assert "rank 3 (epoch1_rank3.npy) has samples of rank 0, 1, 2" in found.statement


@pytest.mark.parametrize("name", ["epoch_{e}/rank{r}.npy", "rank{r}/epoch_{e}.npy", "e{e}_worker{r}.npy"])
def test_the_orders_of_several_epochs_are_told_once(name: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(4)
    for epoch in range(4):
        one, two = rng.permutation(4000), rng.permutation(4000)
        for rank in range(4):
            path = tmp_path / name.format(e=epoch, r=rank)
            path.parent.mkdir(exist_ok=True)
            np.save(path, two[2::4] if rank == 2 and epoch else one[rank::4])
    (found,) = seen_by(d174, tmp_path)
    assert found.measured["rank"] == 2
    assert found.statement.endswith("so in 2 more orders")


@pytest.mark.parametrize("make", [
    lambda one, rng: [one[i::4] for i in range(4)],
    lambda one, rng: [np.append(one[i::4], one[:5][(i + 1) % 4]) for i in range(4)],  # filled up by one sample
    lambda one, rng: [rng.permutation(4000)[:1000] for _ in range(4)],  # each for itself
    lambda one, rng: [rng.integers(0, 4000, 1000) for _ in range(4)],  # with replacement
    lambda one, rng: [one[i::2] for i in range(2)],
])
def test_parts_of_one_order_and_ranks_that_draw_alone_are_quiet(
        make: Callable[[Rows, Any], list[Rows]], tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(2)
    ranks(tmp_path, make(rng.permutation(4000), rng))
    assert seen_by(d174, tmp_path) == []


def poles(folder: Path, code: str, zeros: int = 5) -> list[Finding]:
    rng = np.random.default_rng(3)
    for part in range(3):
        price = rng.gamma(2, 10, 300).round(2) + 0.01
        if part == 1:
            price[10:10 + zeros] = 0.0
        body = "\n".join(f"{p},{q}" for p, q in zip(price, rng.integers(1, 9, 300), strict=True))
        (folder / f"part{part}.csv").write_text(f"price,pieces\n{body}\n")
    (folder / "train.py").write_text(code)
    return list(at_poles(examination.examine([folder]).sets, [folder / "train.py"]))


@pytest.mark.parametrize(("code", "kind"), [
    ('y = np.log(rows["price"])\n', "log"),
    ('y = torch.log(torch.tensor(batch["price"]))\n', "log"),
    ('price = row.pop("price")\ny = price.log()\n', "log"),
    ('share = row["pieces"] / row["price"].astype("float32")\n', "division"),
])
def test_what_is_not_finite_at_zero_is_told_with_its_line(code: str, kind: str, tmp_path: Path) -> None:
    (found,) = poles(tmp_path, code)
    assert found.measured["kind"] == kind
    assert found.measured["rows"] == tuple(range(10, 15))
    assert "price of part1.csv is 0 in 5 of 300 rows" in found.statement
    assert "train.py:" in found.statement


@pytest.mark.parametrize("code", [
    'y = np.log1p(rows["price"])\n', 'y = np.log(rows["price"] + 1)\n', 'y = np.log(rows["price"].clip(0.01))\n',
    'rows = rows[rows["price"] > 0]\ny = np.log(rows["price"])\n',
    'rows = rows.query("price > 0")\ny = np.log(rows["price"])\n',
    'y = np.nan_to_num(np.log(rows["price"]))\n', 'y = np.log(rows["pieces"])\n', 'y = np.sqrt(rows["price"])\n',
    'config = json.load(open("c.json"))\ny = x / config["price"]\n', 'y = x / self.price\n', "y = (\n", "",
    'price = rows["price"]\nprice = price + 1\ny = np.log(price)\n',
])
def test_code_that_sees_to_it_or_bears_zero_is_quiet(code: str, tmp_path: Path) -> None:
    assert poles(tmp_path, code) == []


MARKED = """age,size,share
{rows}
"""


def marked(folder: Path, code: str) -> list[Finding]:
    """Ages from 0 on, sizes from 1 on, shares within 0 and 1; four rows of one file hold -1, 5 and 1."""
    rng = np.random.default_rng(9)
    for part in range(2):
        table = np.stack([rng.integers(0, 40, 200), 1 + rng.gamma(2, 20, 200).round(1), rng.uniform(0.02, 0.9, 200)], 1)
        if part:
            table[20:24] = -1, 5, 1
        rows = "\n".join(f"{int(a)},{s},{h:.3f}" for a, s, h in table)
        (folder / f"part{part}.csv").write_text(MARKED.format(rows=rows))
    (folder / "train.py").write_text(f"import numpy as np, pandas as pd\ndf = pd.read_csv('part1.csv')\n{code}")
    return list(at_poles(examination.examine([folder]).sets, [folder / "train.py"]))


@pytest.mark.parametrize(("code", "fields"), [
    ('y = np.log1p(df["age"])', ["age"]), ("y = np.log1p(df.age.values)", ["age"]),
    ('y = np.log(df["age"] + 1)', ["age"]), ('y = 1 / (1 + df["age"])', ["age"]), ("y = np.sqrt(df.age)", ["age"]),
    ("y = np.sqrt(0.95 - df.share)", ["share"]), ("y = np.arctanh(df['share'])", ["share"]),
    ("y = torch.logit(torch.tensor(df['share'].values))", ["share"]), ("y = np.arccos(2 * df.share - 0.9)", ["share"]),
    ('C = ["age", "size"]\ndf[C] = np.log1p(df[C])', ["age"]), ('y = np.log1p(df[["size", "age"]])', ["age"]),
    ('for c in ["age", "size"]:\n    df[c] = np.log1p(df[c])', ["age"]),
    ('C = ("size", "age")\nx = [np.log1p(df[c]) for c in C]', ["age"]),
    ('y = df["age"].apply(np.log1p)', ["age"]), ("y = (1 - df.share) ** -0.5", ["share"]),
    ('y = pl.col("age").log1p()', ["age"]), ("EPS = 1\ny = x / (df.age + EPS)", ["age"]),
])
def test_functions_with_other_poles_and_tables_name_the_rows(code: str, fields: list[str], tmp_path: Path) -> None:
    found = marked(tmp_path, code)
    assert [f.measured["field"] for f in found] == fields
    assert all(f.measured["rows"] == (20, 21, 22, 23) for f in found)


@pytest.mark.parametrize("code", [
    'y = np.log1p(df["size"])', 'y = np.log(df["age"] + 2)', 'y = 1 / (df["age"] + 0.5)', "y = np.sqrt(1 - df.share)",
    "df.age = df.age.clip(0)\ny = np.log1p(df.age)", 'df["age"] = fixed(df)\ny = np.log1p(df["age"])',
    "df = df[df.age >= 0]\ny = np.log1p(df.age)", "y = np.log1p(np.age)", "y = np.log1p(self.age)",
    'for c in names:\n    df[c] = np.log1p(df[c])', "y = np.arccos(df.share)", "y = np.log1p(df[1:])", "y = np.log1p()",
    "y = np.log1p(df.age.max())", "a = a\ny = np.log1p(a)",
    "net = Net(4)\ny = np.log1p(net.age)",
])
def test_functions_that_bear_the_mark_are_quiet(code: str, tmp_path: Path) -> None:
    assert marked(tmp_path, code) == []


def test_values_off_the_pole_are_quiet(tmp_path: Path) -> None:
    assert poles(tmp_path, 'y = np.log(rows["price"])\n', zeros=0) == []


def months(folder: Path, change: Callable[[Rows], Rows], at: int) -> None:
    rng = np.random.default_rng(4)
    for i, level in enumerate((7, 11, 17, 20, 23, 22)):
        temperature = rng.normal(level, 4, 2000)
        np.savez(folder / f"2023-0{i + 1}.npz", temperature=change(temperature) if i == at else temperature,
                 wind=rng.gamma(2, 6, 2000), humidity=rng.normal(60, 10, 2000))


@pytest.mark.parametrize("change", [lambda t: 1.8 * t + 32, lambda t: t + 273.15])
def test_a_month_in_other_degrees_is_named(change: Callable[[Rows], Rows], tmp_path: Path, seen_by: Seen) -> None:
    months(tmp_path, change, 3)
    (found,) = seen_by(d104, tmp_path)
    assert "temperature of 2023-04.npz" in found.statement


@pytest.mark.parametrize("change", [lambda t: t, lambda t: t + 9, lambda t: 1.3 * t, lambda t: 1.4 * (t - 20) + 20])
def test_a_warm_and_a_changeable_month_are_quiet(change: Callable[[Rows], Rows], tmp_path: Path, seen_by: Seen) -> None:
    months(tmp_path, change, 3)
    assert seen_by(d104, tmp_path) == []


def test_few_files_have_no_usual_unit() -> None:
    assert not degrees_apart(np.array([10.0, 11.0, 52.0]), np.array([4.0, 4.0, 7.2]), 2)


def test_a_stretch_of_a_series_that_wanders_has_less_spread(tmp_path: Path, seen_by: Seen) -> None:
    walk = np.cumsum(np.random.default_rng(5).normal(0, 1, 2200))
    windows = np.stack([walk[i:i + 32] for i in range(2100)])
    np.savez(tmp_path / "train.npz", x=windows[:2000])
    np.savez(tmp_path / "val.npz", x=windows[2000:])
    assert seen_by(d104, tmp_path) == []
    mixed = np.random.default_rng(6).permutation(2100)
    np.savez(tmp_path / "train.npz", x=windows[mixed[:2000]])
    np.savez(tmp_path / "val.npz", x=0.06 * windows[mixed[2000:]])
    assert [f.measured["kind"] for f in seen_by(d104, tmp_path)] == ["split"]


def test_rows_that_recur_in_training_recur_across_splits_too(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(7)

    def table(rows: int) -> list[str]:
        price = rng.lognormal(1, 0.6, rows).round(1)
        return [f"{p},{q},{(p * q).round(1)}" for p, q in zip(price, rng.integers(1, 6, rows), strict=True)]

    train, val = table(3000), table(400)

    def write(held: list[str]) -> None:
        for name, part in (("train", train), ("val", held)):
            (tmp_path / f"{name}.csv").write_text("\n".join(["price,pieces,total", *part]) + "\n")

    write(val)
    assert [f for f in seen_by(d113, tmp_path) if f.severity is not Severity.INFO] == []


@pytest.mark.parametrize("gap", ["", "nan"])
def test_an_empty_cell_is_named_by_its_line(gap: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(8)
    lines = [f"{a},{b}" for a, b in rng.normal(0, 1, (300, 2)).round(3)]
    lines[100] = f"{gap},0.5"
    (tmp_path / "train.csv").write_text("\n".join(["first,second", *lines]) + "\n")
    (found,) = seen_by(d101, tmp_path)
    assert (found.where.line, "row 100" in found.statement) == (102, True)


@pytest.mark.parametrize("declared", [True, False])
def test_a_type_that_a_manifest_names_is_a_remark(declared: bool, tmp_path: Path, seen_by: Seen) -> None:
    names = [f"site{i}.npz" for i in range(4)]
    for i, name in enumerate(names):
        t = np.random.default_rng(i).normal(50, 9, 400)
        np.savez(tmp_path / name, t=(100 * t).astype(np.int16) if i == 1 else t.astype(np.float32))
    if declared:
        table = [{"file": n, "dtype": "int16" if i == 1 else "float32"} for i, n in enumerate(names)]
        (tmp_path / "manifest.json").write_text(json.dumps({"sites": table}))
    (found,) = seen_by(d105, tmp_path)
    assert found.severity is (Severity.INFO if declared else Severity.MEDIUM)
