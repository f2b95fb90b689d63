"""Records whose texts quote errors are data; records of a log, and anything else that tells an error, are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.examine import examine
from traindx_tools.on_data.quoting import is_records

SOURCE = "def check(x):\n    if not x:\n        raise ValueError('empty sequence')\n    return x\n"
TRACE = "the worker of this batch stopped: ValueError('no rows are left')\n"


def written(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records))


def test_source_code_in_records(tmp_path: Path) -> None:
    written(tmp_path / "part-0.jsonl", [{"file": f"m{i}.py", "content": SOURCE + TRACE * (i % 5 == 0)}
                                        for i in range(40)])
    assert is_records(tmp_path / "part-0.jsonl")
    found = examine([tmp_path])
    assert not found.run.errors
    assert any(a.path.endswith("part-0.jsonl") for a in found.run.artifacts)


@pytest.mark.parametrize("extra", [{"ts": "2026-03-01 10:00:00"}, {"severity": "ERROR"}, {"at": 1_750_000_000}])
def test_records_of_a_log(extra: dict[str, Any], tmp_path: Path) -> None:
    own = [{k: v + i if k == "at" else v for k, v in extra.items()} for i in range(40)]
    written(tmp_path / "app.jsonl", [{**own[i], "text": TRACE if i == 30 else f"a line of this log, number {i}"}
                                     for i in range(40)])
    assert not is_records(tmp_path / "app.jsonl")


@pytest.mark.parametrize("rows", [3, 40])
def test_few_or_broken_records(rows: int, tmp_path: Path) -> None:
    written(tmp_path / "part.jsonl", [{"file": "a", "content": TRACE} for _ in range(rows)])
    if rows == 40:
        with (tmp_path / "part.jsonl").open("a") as out:
            out.write('{"file": "b", "cont\n')
    assert not is_records(tmp_path / "part.jsonl")


def test_a_log_of_text_keeps_its_error(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1 loss 2.0\n" + TRACE)
    assert [e.type for e in examine([tmp_path]).run.errors] == ["ValueError"]
