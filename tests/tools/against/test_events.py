"""Events of a broken run beside one that works."""

from __future__ import annotations

from pathlib import Path

from traindx_tools.against.events import event_differences, nearest
from traindx_tools.against.metrics import MetricDifference
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
    assert found[0].statement().startswith("`retrying read, attempt 2` stands once in the broken run (first ")


def test_a_value_that_only_one_run_has(tmp_path: Path) -> None:
    good, bad = read_run(run(tmp_path, "good.log", {})), read_run(run(tmp_path, "bad.log", {}, "node-7"))
    found = event_differences(bad, good)
    assert [(d.text, d.here) for d in found] == [("`batch on node-7`", True), ("`batch on node-1`", False)]


def parting_at(step: float) -> MetricDifference:
    return MetricDifference("loss", "step", 60, step, 2.0, 1.0, 0.1, step - 1, 0.0)


def test_the_event_at_which_the_runs_part_is_the_nearest_before(tmp_path: Path) -> None:
    """What comes all the time, what came long before and what comes behind are not it."""
    often = {t: f"compacting {t} segments" for t in range(0, 60, 2)}
    good = read_run(run(tmp_path, "good.log", {}))
    bad = read_run(run(tmp_path, "bad.log", {**often, 3: "using manifest v1", 37: "switching to manifest v2.json",
                                             43: "retrying"}))
    one = nearest(event_differences(bad, good, parting_at(39)))
    assert one is not None
    assert (one.said, one.ahead) == ("switching to manifest v2.json", 2)
    assert one.beside().startswith("2 records before it parts: `switching to manifest v2.json` stands once")
    assert nearest(event_differences(good, good, parting_at(39))) is None


def test_rows_are_no_events_and_a_shorter_run_lacks_nothing(tmp_path: Path) -> None:
    """Another format, another notation of a number, and what the longer run says behind the end of the other."""
    good = read_run(run(tmp_path, "good.log", {58: "exporting weights"}))
    text = (tmp_path / "good.log").read_text().splitlines()[:80]
    (tmp_path / "short.log").write_text("\n".join(x.replace("loss 2.", "loss 2e+00 x 2.") for x in text) + "\n")
    assert event_differences(read_run(tmp_path / "short.log"), good) == []
    rows = tmp_path / "bad.csv"
    rows.write_text("step,loss\n" + "".join(f"{t},{3 - t / 40}\n" for t in range(60)))
    assert [d for d in event_differences(read_run(rows), good) if d.here] == []


def test_what_the_run_that_works_says_and_the_broken_one_does_not(tmp_path: Path) -> None:
    good = read_run(run(tmp_path, "good.log", {30: "restored optimizer state of step 30"}))
    (one,) = event_differences(read_run(run(tmp_path, "bad.log", {})), good)
    assert (one.here, one.said) == (False, "restored optimizer state of step 30")


def test_equal_runs_and_runs_without_a_text_differ_in_nothing(tmp_path: Path) -> None:
    good = read_run(run(tmp_path, "good.log", {}))
    assert event_differences(good, good) == []
    table = tmp_path / "gone.csv"
    table.write_text("step,loss\n" + "".join(f"{t},{3 - t / 40}\n" for t in range(60)))
    other = read_run(table)
    table.unlink()
    assert event_differences(good, other) == []
