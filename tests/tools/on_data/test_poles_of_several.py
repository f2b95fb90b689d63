"""Expressions of several columns that the code divides by, or takes the logarithm of, and the rows at their poles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examination
from traindx_tools.on_data.code_poles import at_poles

ROWS = (20, 21, 22, 23)


def told(folder: Path, code: str, plant: bool = True) -> list[Finding]:
    """Quotes of four files; in four rows of one ask equals bid, and the volume is as large as price times count."""
    rng = np.random.default_rng(5)
    for part in range(4):
        bid = rng.uniform(10, 20, 200).round(2)
        ask = bid + rng.uniform(0.02, 0.5, 200).round(2)
        count = rng.integers(2, 9, 200)
        volume = (bid * count * rng.uniform(0.2, 0.8, 200)).round(3)
        if plant and part == 2:
            ask[list(ROWS)] = bid[list(ROWS)]
            volume[list(ROWS)] = bid[list(ROWS)] * count[list(ROWS)] + 1
        table = np.stack([bid, ask, count, volume, rng.normal(size=200)], 1)
        body = "\n".join(",".join(f"{v:.12g}" for v in row) for row in table)
        (folder / f"part{part}.csv").write_text(f"bid,ask,count,volume,move\n{body}\n")
    (folder / "train.py").write_text(f"import math\nimport numpy as np, pandas as pd\ndf = pd.read_csv('a')\n{code}\n")
    return list(at_poles(examination.examine([folder]).sets, [folder / "train.py"]))


@pytest.mark.parametrize(("code", "expression", "kind"), [
    ('y = df["move"] / (df["ask"] - df["bid"])', "df['ask'] - df['bid']", "division"),
    ("y = df.move / (df.ask - df.bid)", "df.ask - df.bid", "division"),
    ("gap = df.ask - df.bid\ny = df.move / gap", "df.ask - df.bid", "division"),
    ('df["gap"] = df["ask"] - df["bid"]\ny = df["move"] / df["gap"]', "df['gap']", "division"),
    ("b, a = df.bid.values, df.ask.values\ny = df.move / (a - b)", "a - b", "division"),
    ('b, a = df[["bid", "ask"]].to_numpy().T\ny = np.log(a - b)', "a - b", "log"),
    ("for b, a in zip(df.bid, df.ask):\n    y = math.log(a - b)", "a - b", "log"),
    ("y = [1.0 / (row['ask'] - row['bid']) for row in rows]", "row['ask'] - row['bid']", "division"),
    ("y = np.log(df.bid * df['count'] - df.volume)", "df.bid * df['count'] - df.volume", "log"),
    ("y = np.sqrt(np.subtract(df.bid * df['count'], df.volume))",
     "np.subtract(df.bid * df['count'], df.volume)", "domain"),
    ("def f(m, a, b):\n    return m / (a - b)\ny = f(df.move, df.ask, df.bid)", "a - b", "division"),
    ("y = np.log(df.ask / df.bid - 1)", "df.ask / df.bid - 1", "log"),
    ("y = (df.ask - df.bid) ** -0.5", "df.ask - df.bid", "division"),
    ("y = df.move / (df.ask - df.bid).abs()", "(df.ask - df.bid).abs()", "division"),
    ("df = df[df.move > -9]\ny = df.move / (df.ask - df.bid)", "df.ask - df.bid", "division"),
    ("df = df[df.bid > 0]\ny = df.move / (df.ask - df.bid)", "df.ask - df.bid", "division"),  # guards another thing
    ("df = df.dropna()\ny = df.move / (df.ask - df.bid)", "df.ask - df.bid", "division"),
])
def test_rows_at_the_pole_of_an_expression_are_named(code: str, expression: str, kind: str, tmp_path: Path) -> None:
    (found,) = told(tmp_path, code)
    assert found.severity is Severity.HIGH
    assert found.measured["rows"] == ROWS
    assert (found.measured["expression"], found.measured["kind"]) == (expression, kind)
    assert "of 200 rows of part2.csv" in found.statement
    assert "train.py:" in found.statement
    assert "3 other files hold none" in found.statement


@pytest.mark.parametrize("code", [
    "y = df.move / (df.ask - df.bid + 1e-6)",
    "y = df.move / (df.ask - df.bid).clip(1e-3)",
    "y = df.move / np.maximum(df.ask - df.bid, 1e-3)",
    "gap = df.ask - df.bid\ny = np.where(gap > 0, df.move / gap, 0)",
    "gap = df.ask - df.bid\ngap[gap == 0] = 1\ny = df.move / gap",
    "df = df[df.ask > df.bid]\ny = df.move / (df.ask - df.bid)",
    "df = df[df.ask - df.bid > 0.001]\ny = df.move / (df.ask - df.bid)",
    'df = df.query("ask > bid")\ny = df.move / (df.ask - df.bid)',
    "for b, a in zip(df.bid, df.ask):\n    if a == b:\n        continue\n    y = 1 / (a - b)",
    "for b, a in zip(df.bid, df.ask):\n    try:\n        y = 1 / (a - b)\n    except ZeroDivisionError:\n        y = 0",
    "y = np.nan_to_num(df.move / (df.ask - df.bid))",
    "y = df.move / (df.ask - df.bid)\ny = y.replace([np.inf, -np.inf], 0)",
    "y = np.log(df.bid * df['count'] - df.volume)\ny = y.fillna(0)",
    "df['ask'] = repaired(df)\ny = df.move / (df.ask - df.bid)",
    "y = df.move / (df.ask + df.bid)",
    "y = df.move / (df.ask - unknown(df.bid))",
    "y = df.move / (df.ask - df.bid.shift(1))",
    "y = df.move / (df.ask - df.bid.mean())",
    "y = np.log1p(df.ask - df.bid)",
    "y = 1 / (1 + np.exp(df.bid - df.ask))",
    "df['g'] = df['g'] + df['ask']\ny = 1 / df['g']",
    "y = 1 / (",
    "",
])
def test_guards_and_expressions_off_the_pole_are_quiet(code: str, tmp_path: Path) -> None:
    assert told(tmp_path, code) == []


@pytest.mark.parametrize("code", ["y = df.move / (df.ask - df.bid)", "y = np.log(df.bid * df['count'] - df.volume)"])
def test_rows_off_the_pole_are_quiet(code: str, tmp_path: Path) -> None:
    assert told(tmp_path, code, plant=False) == []


def test_an_expression_that_most_rows_are_at_is_not_believed(tmp_path: Path) -> None:
    assert told(tmp_path, "y = 1 / np.floor(df.ask - df.bid)") == []


def test_what_rounding_leaves_is_nothing(tmp_path: Path) -> None:
    rows = "\n".join(f"{a},{b},{a * b if i != 7 else 0.3:.12g}" for i, (a, b) in enumerate(
        zip([0.1, 0.2, 0.5] * 20, [3, 4, 5] * 20, strict=True)))
    lines = rows.split("\n")
    lines = [f"{line.rsplit(',', 1)[0]},{float(line.rsplit(',', 1)[1]) + 1 if i != 9 else 0.3}" for i, line in
             enumerate(lines)]
    (tmp_path / "t.csv").write_text("a,b,c\n" + "\n".join(lines) + "\n")
    (tmp_path / "t.py").write_text("import pandas as pd\ndf = pd.read_csv('t.csv')\ny = 1 / (df.a * df.b - df.c)\n")
    (found,) = at_poles(examination.examine([tmp_path]).sets, [tmp_path / "t.py"])
    assert found.measured["rows"] == (9,)


WINDOWS = """import numpy as np
rows = [dict(np.load(f)) for f in FILES]
P = np.concatenate([r["p_mw"] for r in rows])
Q = np.concatenate([r["q_mvar"] for r in rows])
pf = P / np.sqrt(P ** 2 + Q ** 2)
angle = np.arccos(np.clip(pf, -1, 1))
"""


def windows(folder: Path, code: str, *, off: bool = True) -> list[Finding]:
    rng = np.random.default_rng(4)
    for part in range(3):
        p, q = (rng.uniform(1, 9, (300, 24)) for _ in range(2))
        if part == 1 and off:
            p[40:60, 5:] = q[40:60, 5:] = 0.0
        np.savez(folder / f"feeder_{part}.npz", p_mw=p.astype(np.float32), q_mvar=q.astype(np.float32))
    (folder / "train.py").write_text(code)
    report = examination.examine([folder])
    return list(at_poles(report.sets, [folder / "train.py"]))


def test_rows_of_many_numbers(tmp_path: Path) -> None:
    (found,) = windows(tmp_path, WINDOWS)
    rows = found.measured["rows"]
    assert isinstance(rows, tuple)
    assert (found.measured["count"], rows[:2]) == (20, (40, 41))
    assert "the first has p_mw 0, q_mvar 0" in found.statement


@pytest.mark.parametrize(("old", "new"), [
    ("P / np.sqrt", "P / np.maximum(1e-6, np.sqrt"), ("Q = ", "P = P[P > 0]\nQ = "), ("pf = ", "keep = P > 0.5\npf = "),
    ("np.clip(pf, -1, 1)", "np.nan_to_num(pf)"), ('r["q_mvar"]', 'r["q_other"]'),
])
def test_rows_of_many_numbers_that_are_guarded(old: str, new: str, tmp_path: Path) -> None:
    code = WINDOWS.replace(old, new)
    code = code.replace("Q ** 2)", "Q ** 2))") if "maximum" in new else code
    assert not windows(tmp_path, code)


def test_rows_of_many_numbers_off_the_pole(tmp_path: Path) -> None:
    assert not windows(tmp_path, WINDOWS, off=False)
