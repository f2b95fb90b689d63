"""What is said of a path under which there is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs.nothing_there import nothing_there


@pytest.mark.parametrize(("path", "told"), [
    ("exmples/run", "the folder 'exmples' does not exist. Did you mean 'examples'?"),
    ("examples/runs", "Did you mean 'examples/run'? In 'examples' there is: run."),
    ("examples/ruin/deep/log.txt", "the folder 'examples/ruin' does not exist. Did you mean 'examples/run'?"),
    ("examples/run/log.txt/x", "'examples/run/log.txt' is a file."),
    ("elsewhere/log.txt", "the folder 'elsewhere' does not exist. Check the path."),
    ("examples/run/*.csv", "No file matches the pattern"),
    ("/\x01nowhere/a", "does not exist. Check the path."),
])
def test_what_is_missing_and_what_is_near_it(path: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                             ) -> None:
    (tmp_path / "examples" / "run").mkdir(parents=True)
    (tmp_path / "examples" / "run" / "log.txt").write_text("step 1 loss 2\n")
    monkeypatch.chdir(tmp_path)
    assert told in nothing_there(path)


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    assert "there is: nothing." in nothing_there(str(tmp_path / "log.txt"))


def test_a_link_says_where_it_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.log").symlink_to("gone.log")
    Path("loop").symlink_to("back")
    Path("back").symlink_to("loop")
    assert nothing_there("train.log") == ("'train.log' is a link that leads to 'gone.log', which is not there. "
                                          "Name the file itself.")
    assert "'loop' is a link that leads to itself." in nothing_there("loop")
