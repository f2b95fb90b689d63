"""`traindx data` and the MCP tool: output, exit codes, one line where nothing can be read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from traindx.cli import run
from traindx.mcp_paths import Reach
from traindx.mcp_tools import TOOLS, call


def shards(folder: Path, factor: float) -> None:
    rng = np.random.default_rng(0)
    for i in range(6):
        x = rng.normal(size=(200, 6)).astype(np.float32)
        np.savez(folder / f"part_{i}.npz", x=x * factor if i == 2 else x, y=rng.integers(0, 3, 200))


def test_a_fault_ends_with_1_and_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards(tmp_path, 255.0)
    assert run(["data", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "part_2.npz: D104 high" in out
    assert "1,200 rows in 6 files" in out


def test_healthy_data_end_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards(tmp_path, 1.0)
    assert run(["data", str(tmp_path / "part_*.npz")]) == 0
    assert "read: " in capsys.readouterr().out


def test_json_holds_findings_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards(tmp_path, 255.0)
    assert run(["data", str(tmp_path), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert [f["rule"] for f in said["findings"] if f["severity"] != "info"] == ["D104"]
    assert len(said["files"]) == 6
    assert said["sets"][0]["fields"] == ["x", "y"]


@pytest.mark.parametrize("words", [["data"], ["data", "nothing.npz"], ["data", "--seconds", "0", "."]])
def test_bad_usage_ends_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_what_cannot_be_read_ends_with_2_and_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", np.array([{}, {}], object), allow_pickle=True)
    assert run(["data", str(tmp_path / "a.npy")]) == 2
    err = capsys.readouterr().err
    assert "refused: it holds Python objects" in err
    assert err.count("\n") == 1


def test_the_page_of_a_rule_and_of_a_mode(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "D104"]) == 0
    assert "`data.shard-scale`" in capsys.readouterr().out
    assert run(["explain", "data.shard-labels"]) == 0


def test_the_tool_answers_below_its_root(tmp_path: Path) -> None:
    shards(tmp_path, 255.0)
    assert TOOLS["examine_data"].read_only
    answer = call("examine_data", {"paths": ["."]}, Reach.of(tmp_path), lambda text: None)
    assert answer.startswith("part_2.npz: D104 high")


@pytest.mark.parametrize(("broken", "lines"), [(2, 2), (5, 1)])
def test_many_files_that_could_not_be_read_for_one_reason_are_one_line(
        broken: int, lines: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards(tmp_path, 1.0)
    for i in range(broken):
        (tmp_path / f"cut_{i}.npz").write_bytes(b"PK\x03\x04 cut off")
    run(["data", str(tmp_path)])
    told = [row for row in capsys.readouterr().out.splitlines() if ": not read: " in row]
    assert len(told) == lines, told
    assert told[0].startswith(f"{broken} files, such as ") == (broken == 5)


def test_a_folder_of_data_alone_is_judged_and_one_of_junk_refused(tmp_path):
    from traindx_tools.errors import UnreadableInput
    from traindx_tools.examine import examine

    (tmp_path / "data").mkdir()
    rows = np.random.default_rng(0).normal(size=(200, 4))
    rows[7, 2] = np.nan
    np.save(tmp_path / "data" / "rows.npy", rows)
    seen = examine([tmp_path / "data"], root=tmp_path)
    assert [f.rule for f in seen.findings] == ["D101"]
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "a.zip").write_bytes(b"PK\x03\x04junk")
    with pytest.raises(UnreadableInput, match="Nothing could be read"):
        examine([tmp_path / "junk"], root=tmp_path)


def test_a_large_set_says_what_was_looked_at_and_all_rows_are_on_demand(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx_tools.on_data.set_samples.WHOLE_SET", 5000)
    monkeypatch.setattr("traindx_tools.on_data.set_samples.SAMPLE", 1000)
    monkeypatch.setattr("traindx_tools.on_data.set_samples.FEWEST_ROWS", 100)
    shards(tmp_path, 1.0)

    assert run(["data", str(tmp_path)]) == 0
    assert "of 200 rows were looked at, in blocks over the file; all rows were looked at for" in capsys.readouterr().out
    assert run(["data", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert all("of 200 rows were looked at" in f["note"] for f in said["files"])
    assert all(s["read"] < s["rows"] == 200 for d in said["sets"] for s in d["shards"])
    assert run(["data", str(tmp_path), "--all"]) == 0
    assert "were looked at" not in capsys.readouterr().out
    reach = Reach.of(tmp_path)
    assert "were looked at" in call("examine_data", {"paths": ["."]}, reach, lambda text: None)
    assert "were looked at" not in call("examine_data", {"paths": ["."], "all_rows": True}, reach, lambda text: None)
