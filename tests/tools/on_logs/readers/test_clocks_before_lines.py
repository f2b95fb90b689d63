"""Times as `date`, the kernel, web servers and syslog print them before a line: a time, and no metric of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs.reading import read_run

CLOCKS = {
    "date": "Thu Dec  3 09:{:02d}:{:02d} UTC 2026: ", "asctime": "Mon Dec  7 09:{:02d}:{:02d} 2026 ",
    "dmesg": "[Sun Dec  6 09:{:02d}:{:02d} 2026] ", "apache": "[Thu Dec 03 09:{:02d}:{:02d}.123456 2026] ",
    "web server": "[03/Dec/2026:09:{:02d}:{:02d} +0000] ", "day first": "03-Dec-2026 09:{:02d}:{:02d},250 INFO ",
    "syslog": "Dec  3 09:{:02d}:{:02d} node01 python[1234]: ",
    "glog": "I1203 09:{:02d}:{:02d}.123456 1234 train.py:99] ",
}


def _log(folder: Path, before: str) -> Path:
    path = folder / "train.log"
    path.write_text("".join(f"{before.format(t // 60, t % 60)}step={t} loss={3 / (1 + t):.4f}\n" for t in range(180)))
    return path


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_time_is_read_and_is_no_metric(tmp_path: Path, clock: str) -> None:
    told = read_run(_log(tmp_path, CLOCKS[clock]))
    assert [(s.name, len(s), s.unit) for s in told.series] == [("loss", 180, "step")]
    assert (told.series[0].time[-1] - told.series[0].time[0]) == pytest.approx(179)


@pytest.mark.parametrize("before", ["Sat {:d}{:d} ", "Dec ", "Mon: "])
def test_words_that_begin_like_a_day_are_no_time(tmp_path: Path, before: str) -> None:
    loss = next(s for s in read_run(_log(tmp_path, before)).series if s.name == "loss")
    assert (len(loss), loss.values[1]) == (180, 1.5)


def test_a_time_that_is_none_costs_no_value(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"Thu Dec 99 99:99:99 2026 step={t} loss={3 / (1 + t):.4f}\n" for t in range(9)))
    assert next(len(s) for s in read_run(path).series if s.name == "loss") == 9
