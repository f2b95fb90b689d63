"""Edges that name rows by a field of numbers, while the rows lie in another order."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.used_by_code import with_use

READS = """import pandas as pd
nodes = pd.read_csv("nodes.csv")
edges = pd.read_csv("edges.csv").to_numpy()
x = nodes[["a"]]
"""


def graph(folder: Path, *, in_order: bool = False, alike: bool = True) -> None:
    """400 nodes of four groups, sorted by their year unless `in_order`; edges join rows of a group."""
    rng = np.random.default_rng(0)
    group, year = rng.integers(0, 4, 400), rng.integers(1990, 2020, 400)
    features = rng.normal(size=(400, 3)) + 3 * np.eye(4)[group][:, :3]
    rows = np.arange(400) if in_order else np.argsort(year, kind="stable")
    with (folder / "nodes.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["node_id", "year", "a", "b", "c"])
        out.writerows([int(i), int(year[i]), *map(float, features[i])] for i in rows)
    one = rng.integers(0, 400, 1500)
    other = np.array([rng.choice(np.flatnonzero(group == group[i])) if alike else rng.integers(0, 400) for i in one])
    with (folder / "edges.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["citing", "cited"])
        out.writerows(zip(one.tolist(), other.tolist(), strict=True))


def told(folder: Path) -> list[Finding]:
    return [f for f in examine([folder]).findings if f.rule == "D171"]


def test_a_remark_without_code_and_an_alarm_where_the_code_never_names_the_field(tmp_path: Path) -> None:
    graph(tmp_path)
    (found,) = told(tmp_path)
    assert found.severity is Severity.INFO
    assert "name rows of nodes.csv by node_id" in found.statement
    code = tmp_path / "train.py"
    code.write_text(READS)
    (judged,) = with_use([found], [code])
    assert judged.severity is Severity.HIGH
    assert "the code never names node_id" in judged.statement


@pytest.mark.parametrize("line", ["nodes.sort_values('node_id')\n", "at = dict(zip(nodes.node_id, range(400)))\n"])
def test_code_that_names_the_field_is_quiet(line: str, tmp_path: Path) -> None:
    graph(tmp_path)
    (tmp_path / "train.py").write_text(READS + line)
    assert with_use(told(tmp_path), [tmp_path / "train.py"]) == []


def test_a_comment_is_no_use_and_code_of_something_else_decides_nothing(tmp_path: Path) -> None:
    graph(tmp_path)
    code = tmp_path / "train.py"
    code.write_text("# by node_id\n" + READS)
    assert [f.severity for f in with_use(told(tmp_path), [code])] == [Severity.HIGH]
    code.write_text("print(1)\n")
    assert [f.severity for f in with_use(told(tmp_path), [code])] == [Severity.INFO]
    code.write_text("def broken(:\n")
    assert [f.severity for f in with_use(told(tmp_path), [code])] == [Severity.INFO]


@pytest.mark.parametrize("made", [{"in_order": True}, {"alike": False}])
def test_rows_in_order_and_links_that_say_nothing_are_quiet(made: dict[str, bool], tmp_path: Path) -> None:
    graph(tmp_path, **made)
    assert told(tmp_path) == []
