"""Tables of very many columns and records of as many members: the same bound, the same words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx_tools.on_logs import Run, read_run
from traindx_tools.on_logs.readers.lines import WIDEST
from traindx_tools.on_logs.readers.recorder import MAX_SERIES

FORMS = ("jsonl", "csv")


def written(folder: Path, form: str, members: int, records: int = 8) -> Run:
    path = folder / f"metrics.{form}"
    rows = [{"step": i, "loss": 3 - i / 4, **{f"n{j}": j + i / 8 for j in range(members)}} for i in range(records)]
    lines = [json.dumps(r) for r in rows] if form == "jsonl" else [
        ",".join(rows[0]), *(",".join(map(str, r.values())) for r in rows)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_run([path])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("members", [3_000, 20_000])
def test_thousands_of_members_are_read(tmp_path: Path, form: str, members: int) -> None:
    run = written(tmp_path, form, members)
    told = {s.original: s for s in run.series}
    assert len(told) == min(MAX_SERIES, members + 1)
    assert list(told["loss"].values) == [3 - i / 4 for i in range(8)]
    assert list(told["n2900"].values) == [2900 + i / 8 for i in range(8)]
    assert ("only the first 5,000 metrics were kept" in run.artifacts[0].note) is (members > MAX_SERIES)


def test_wide_records_of_data_stay_data(tmp_path: Path) -> None:
    path = tmp_path / "features.jsonl"
    path.write_text("".join(json.dumps({"label": i % 3, **{f"pixel{j}": (i * j) % 255 for j in range(9_000)}}) + "\n"
                            for i in range(6)))
    run = read_run([path, _log(tmp_path)])
    assert not [s for s in run.series if s.source.endswith("features.jsonl")]


def _log(folder: Path) -> Path:
    (folder / "train.log").write_text("".join(f"step {i} loss {2 - i / 10:.2f}\n" for i in range(8)))
    return folder / "train.log"


@pytest.mark.parametrize("form", FORMS)
def test_what_is_wider_than_the_bound_is_said_to_be(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"metrics.{form}"
    wide = "9" * (WIDEST + 10)
    head, row, last = {"jsonl": ("", '{"step": %d, "loss": %s}\n', '{"step": 9, "loss": %s}\n'),
                       "csv": ("step,loss\n", "%d,%s\n", "9,%s\n")}[form]
    path.write_text(head + "".join(row % (i, 2 - i / 10) for i in range(8)) + last % wide)
    run = read_run([path])
    assert [len(s) for s in run.series] == [8]
    assert "1 lines longer than 4 MiB were not read" in run.artifacts[0].note
    assert "damaged" not in run.artifacts[0].note
