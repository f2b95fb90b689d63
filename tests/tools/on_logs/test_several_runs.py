"""A folder with several runs: a person is told so; the several files of one run are one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from traindx_tools.examine import examine


def loss(i: int, run: int = 0) -> float:
    return 2.3 * (0.97 - 0.01 * run) ** i + 0.1 + 0.003 * (i * 7919 % (7 + run))


def log(path: Path, steps: range, run: int = 0, digits: int = 4) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"step {i} loss {loss(i, run):.{digits}f}\n" for i in steps))


def table(path: Path, steps: range, run: int = 0, digits: int = 4) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("step,loss\n" + "".join(f"{i},{loss(i, run):.{digits}f}\n" for i in steps))


def notes(folder: Path) -> list[str]:
    return [n for n in examine([folder], root=folder).notes if "several runs" in n]


def two_logs(folder: Path) -> None:
    log(folder / "first.log", range(100))
    log(folder / "second.log", range(100), 1)


def two_folders(folder: Path) -> None:
    table(folder / "a" / "metrics.csv", range(100))
    table(folder / "b" / "metrics.csv", range(80), 2)


def log_and_tables(folder: Path) -> None:
    two_folders(folder)
    log(folder / "out.log", range(100))


@pytest.mark.parametrize(("make", "named"), [
    (two_logs, ["first.log", "second.log"]), (two_folders, ["a/metrics.csv", "b/metrics.csv"]),
    (log_and_tables, ["a/metrics.csv", "b/metrics.csv"]),
])
def test_files_of_several_runs_are_named(make: Callable[[Path], None], named: list[str], tmp_path: Path) -> None:
    make(tmp_path)
    (note,) = notes(tmp_path)
    how = "over the same steps" if make is two_logs else "each in a folder of its own and from its beginning"
    assert f"{how}: {', '.join(named)}. " in note
    assert "Each was judged by itself; give the path of one run's file or folder to see that one alone" in note
    assert not notes(tmp_path / named[0])


def one_file(folder: Path) -> None:
    log(folder / "run.log", range(100))


def written_twice(folder: Path) -> None:
    table(folder / "metrics.csv", range(100))
    table(folder / "rounded.csv", range(100), digits=3)


def averages_beside_values(folder: Path) -> None:
    log(folder / "console.log", range(100), 3)
    table(folder / "metrics.csv", range(100))


def resumed(folder: Path) -> None:
    log(folder / "part1.log", range(100))
    log(folder / "part2.log", range(90, 200), 1)


def ranks(folder: Path) -> None:
    log(folder / "rank_0.log", range(100))
    log(folder / "rank_1.log", range(100), 1)


@pytest.mark.parametrize("make", [one_file, written_twice, averages_beside_values, resumed, ranks])
def test_the_files_of_one_run_are_one_run(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path)
    assert not notes(tmp_path)


def test_each_file_is_judged_by_itself_with_what_lies_beside_it(tmp_path: Path) -> None:
    two_folders(tmp_path)
    (tmp_path / "a" / "output.log").write_text(
        'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    y\nValueError: boom\n')
    seen = examine([tmp_path], root=tmp_path)
    a, b = sorted(seen.runs, key=lambda r: r.one.file)
    assert [len(a.run.loss or ()), len(b.run.loss or ())] == [100, 80]
    assert [len(a.run.errors), len(b.run.errors)] == [1, 0]


def test_the_symptom_names_the_file_that_is_judged(tmp_path: Path) -> None:
    two_logs(tmp_path)
    seen = examine([tmp_path], root=tmp_path, symptom="the first run is slow")
    assert seen.run.loss is not None
    assert seen.run.loss.source.endswith("first.log")
