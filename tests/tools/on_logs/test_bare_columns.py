"""Logs of numbers alone: the print of the code beside them says what the columns are."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from traindx_tools.on_logs import read_run
from traindx_tools.printed_values.columns import bare_prints

TRAIN = """
import torch
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for epoch in range(20):
    for x, y in batches():
        opt.zero_grad()
        cost = ((net(x) - y) ** 2).mean()
        cost.backward()
        opt.step()
    {print}
"""
ROWS = "".join(f"{i} {0.9 / (i + 1):.4f}\n" for i in range(9)) + "9 nan\n10 nan\n"


def folder(tmp_path: Path, how: str, rows: str = ROWS) -> Path:
    (tmp_path / "train.py").write_text(TRAIN.replace("{print}", how))
    (tmp_path / "run.log").write_text(rows)
    return tmp_path / "run.log"


@pytest.mark.parametrize(("how", "name"), [
    ("print(epoch, cost.item())", "cost"),
    ("print(epoch, round(float(cost), 4), sep=' ')", "cost"),
    ("print(f'{epoch} {cost.item():.4f}')", "cost"),
    ("total = cost.item()\n    print(epoch, total / 8)", "total"),
])  # fmt: skip
def test_columns_are_what_the_code_prints(tmp_path: Path, how: str, name: str) -> None:
    run = read_run(folder(tmp_path, how))
    (loss,) = [s for s in run.series if s.original == name]
    assert len(loss) == 11
    assert math.isnan(loss.values[-1])
    assert loss.values[0] == pytest.approx(0.9)
    assert loss.epoch.tolist() == list(range(11))
    assert loss.line.tolist() == list(range(1, 12))
    assert "columns are epoch" in run.artifacts[0].note


@pytest.mark.parametrize("rows", [
    ROWS.replace(" ", "\t"), ROWS.replace(" ", ", "), ROWS.replace("\n", "\r\n"), "start\n" + ROWS + "done\n",
])  # fmt: skip
def test_columns_however_they_are_set_apart(tmp_path: Path, rows: str) -> None:
    run = read_run([folder(tmp_path, "print(epoch, cost.item())", rows), tmp_path / "train.py"])
    assert [len(s) for s in run.series if s.original == "cost"] == [11]


@pytest.mark.parametrize("how", [
    "print(epoch, cost.item()); print(opt, x.mean())",  # two prints of so many values
    "print(epoch, cost.item(), x.mean())",  # another number of values
    "print('row', epoch, cost.item())",  # a word stands there
    "print(*history)",
    "print(epoch, epoch)",
    "print(epoch, 'of', cost)",
    "logging.info('%d', epoch)",
    "print(",  # no Python
])  # fmt: skip
def test_nothing_is_named_where_the_code_does_not_say_it(tmp_path: Path, how: str) -> None:
    assert read_run(folder(tmp_path, how)).series == ()


@pytest.mark.parametrize("rows", ["1 2\n3 4\n", "1\n2\n3\n4\n", "1 2 3\n" * 9, "a 1 2\n" * 9, "1 2 x\n" * 9])
def test_other_lines_are_left_alone(tmp_path: Path, rows: str) -> None:
    assert not any(s.original == "cost" for s in read_run(folder(tmp_path, "print(epoch, cost.item())", rows)).series)


def test_a_log_with_names_is_read_by_them(tmp_path: Path) -> None:
    rows = "".join(f"epoch {i} loss {1 / (i + 1):.4f}\n" for i in range(9)) + "".join(f"{i} 5\n" for i in range(9))
    run = read_run(folder(tmp_path, "print(epoch, cost.item())", rows))
    assert {s.original for s in run.series} == {"loss"}


def test_what_does_not_parse_prints_nothing() -> None:
    assert bare_prints([("a.py", "print(a, b"), ("b.py", "print(a.item(), b)\n"), ("c.py", "x = 1\n")])[0].names == (
        "a", "b")  # fmt: skip
