"""Events of a broken run beside one that works."""

from __future__ import annotations

from pathlib import Path

from traindx_tools.against.events import event_differences
from traindx_tools.on_logs import read_run


def run(folder: Path, name: str, extra: dict[int, str], host: str = "node-1") -> Path:
    lines = []
    for t in range(60):
        lines += [extra[t]] if t in extra else []
        lines += [f"batch on {host}", f"step {t} loss {3 - t / 40:.4f}"]
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_what_only_the_broken_run_says_is_told_in_order(tmp_path: Path) -> None:
    good = read_run(run(tmp_path, "good.log", {5: "evaluation 5 done"}))
    more = {5: "evaluation 5 done", 20: "retrying read, attempt 2", 40: "cache dropped"}
    bad = read_run(run(tmp_path, "bad.log", more))
    found = event_differences(bad, good)
    assert [d.text for d in found] == ["`retrying read, attempt *`", "`cache dropped`"]
    assert found[0].statement().startswith("`retrying read, attempt *` stands once in the broken run (first ")


def test_a_value_that_only_one_run_has(tmp_path: Path) -> None:
    good, bad = read_run(run(tmp_path, "good.log", {})), read_run(run(tmp_path, "bad.log", {}, "node-7"))
    assert [d.text for d in event_differences(bad, good)] == ["`batch on node-7`"]


def test_equal_runs_and_runs_without_a_text_differ_in_nothing(tmp_path: Path) -> None:
    good = read_run(run(tmp_path, "good.log", {}))
    assert event_differences(good, good) == []
    table = tmp_path / "gone.csv"
    table.write_text("step,loss\n" + "".join(f"{t},{3 - t / 40}\n" for t in range(60)))
    other = read_run(table)
    table.unlink()
    assert event_differences(good, other) == []
