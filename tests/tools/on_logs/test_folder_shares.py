"""Of many files the first of each folder: a folder of thousands leaves the others their places."""

from __future__ import annotations

from pathlib import Path

from traindx_tools.on_logs.artifacts import discover, first_files
from traindx_tools.on_logs.folder_shares import first_of_folders


def test_small_folders_are_kept_whole() -> None:
    paths = [f"train/{k:04d}" for k in range(900)] + [f"val/{k}" for k in range(30)] + ["train.log"]
    kept = [paths[i] for i in first_of_folders(paths, 100)]
    assert kept == paths[:69] + paths[900:]


def test_folders_of_one_size_share() -> None:
    paths = [f"{f}/{k}" for f in "abc" for k in range(10)]
    assert [sum(paths[i][0] == f for i in first_of_folders(paths, 10)) for f in "abc"] == [4, 3, 3]
    assert first_of_folders(paths, 30) == list(range(30))
    assert first_of_folders([], 3) == []
    assert len(first_of_folders([str(k) for k in range(9)], 4)) == 4


def test_a_folder_of_thousands_does_not_hide_the_next(tmp_path: Path) -> None:
    for folder, files in (("a", 60), ("b", 3)):
        (tmp_path / folder).mkdir()
        for k in range(files):
            (tmp_path / folder / f"{k:02d}.txt").write_text("x")
    found = discover([tmp_path], most=20)
    assert [Path(s.name).parent.name for s in found.sources] == ["a"] * 17 + ["b"] * 3
    assert "only its first 20 files were looked at" in found.left_out[0].note
    every = first_files(discover([tmp_path]), 10)
    assert [Path(s.name).parent.name for s in every.sources] == ["a"] * 7 + ["b"] * 3
    assert "10 of 63 files were looked at" in every.left_out[-1].note
