"""Of very many files some of each kind of name: thousands of one kind leave the others their places."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from traindx_tools.on_logs.artifacts import discover, first_files
from traindx_tools.on_logs.folder_shares import spread_of_names
from traindx_tools.on_logs.reading import read_parts
from traindx_tools.on_ranks.logs import examine as ranks
from traindx_tools.on_ranks.logs.examine import rank_logs


def _kept(paths: list[str], most: int) -> list[str]:
    return [paths[i] for i in spread_of_names(paths, most)]


def test_small_kinds_are_kept_whole() -> None:
    paths = [f"train/{k:04d}" for k in range(900)] + [f"val/{k}" for k in range(30)] + ["train.log"]
    kept = _kept(paths, 100)
    assert kept[-31:] == paths[900:]
    assert len(kept) == 100
    assert {"train/0000", "train/0899"} < set(kept)


def test_folders_of_one_size_share() -> None:
    paths = [f"{f}/{k}" for f in "abc" for k in range(10)]
    assert [sum(p[0] == f for p in _kept(paths, 10)) for f in "abc"] == [4, 3, 3]
    assert _kept(paths, 30) == paths
    assert spread_of_names([], 3) == []
    assert len(_kept([str(k) for k in range(9)], 4)) == 4


def test_runs_of_a_sweep_are_one_kind_and_spread() -> None:
    paths = [f"sweep/run_{k:05d}/out.log" for k in range(5_000)] + ["sweep/summary.csv"]
    kept = _kept(paths, 50)
    assert (kept[0], kept[-2], kept[-1]) == (paths[0], paths[-2], paths[-1])
    assert sum(k < "sweep/run_02500" for k in kept) in range(10, 40)


def test_all_ranks_stay_beside_thousands_of_others() -> None:
    paths = [f"a/part-{k:05d}.log" for k in range(9_000)] + [f"a/rank_{k}.log" for k in range(64)]
    assert set(paths[9_000:]) < set(_kept(paths, 200))


def test_files_that_belong_together_stay_together() -> None:
    stems = [f"{k:05d}" for k in range(3_000)]
    kept = _kept([f"images/{s}.png" for s in stems] + [f"labels/{s}.txt" for s in stems if s != "00007"], 400)
    pictures, labels = ({Path(p).stem for p in kept if p.startswith(f)} for f in ("images", "labels"))
    assert len(pictures & labels) > 0.97 * len(pictures)


def test_the_newest_are_among_them(tmp_path: Path) -> None:
    for k in range(300):
        (tmp_path / f"{k:03d}.log").write_text("x")
        os.utime(tmp_path / f"{k:03d}.log", (1_000 + k * 7 % 300, 1_000 + k * 7 % 300))
    newest = max(range(300), key=lambda k: k * 7 % 300)
    paths = [str(tmp_path / f"{k:03d}.log") for k in range(300)]
    assert newest in spread_of_names(paths, 20)
    (tmp_path / f"{newest:03d}.log").unlink()
    assert len(spread_of_names(paths, 20)) == 20


def test_a_folder_of_thousands_does_not_hide_the_next(tmp_path: Path) -> None:
    for folder, files in (("a", 60), ("b", 3)):
        (tmp_path / folder).mkdir()
        for k in range(files):
            (tmp_path / folder / f"{k:02d}.txt").write_text("x")
    found = discover([tmp_path], most=20)
    assert [Path(s.name).parent.name for s in found.sources] == ["a"] * 17 + ["b"] * 3
    assert "only 20 of its 63 files were looked at: of each kind of name the first" in found.left_out[0].note
    every = first_files(discover([tmp_path]), 10)
    assert [Path(s.name).parent.name for s in every.sources] == ["a"] * 7 + ["b"] * 3
    assert "10 of 63 files were looked at" in every.left_out[-1].note


def test_a_file_that_is_gone_costs_itself_alone(tmp_path: Path) -> None:
    for k in range(40):
        (tmp_path / f"run{k}.log").write_text("".join(f"step {s} loss {2 / (1 + s)}\n" for s in range(30)))
    found = discover([tmp_path], most=10)
    gone = Path(found.sources[3].name)
    gone.unlink()
    told = read_parts([tmp_path], found=found)
    assert sum(bool(p.series) for p in told.parts) == 9
    assert "not read: No such file" in told.parts[3].artifacts[0].note


def test_of_very_many_files_those_of_ranks_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k in range(40):
        (tmp_path / f"part-{k:03d}.log").write_text(f"shard {k} done\n")
    for k in range(4):
        (tmp_path / f"rank_{k}.log").write_text("step 1 loss 2\n")
    sources = discover([tmp_path]).sources
    assert len(rank_logs(sources)) == 44
    monkeypatch.setattr(ranks, "MAX_FILES", 20)
    assert [Path(s.name).name for s in rank_logs(sources)] == [f"rank_{k}.log" for k in range(4)]
    assert rank_logs([s for s in sources if "part" in s.name]) == []
