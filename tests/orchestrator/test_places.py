"""Names of places: the workspace's own, also for paths of another machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.places import Places, common_root
from traindx_tools.finding import Location
from traindx_tools.on_code.anchors import Anchor


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for name in ("train.py", "models/net.py", "other/net.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n")
    (tmp_path / "train.py").write_text("x = 1\nif __name__ == '__main__':\n    x = 2\n")
    code = (tmp_path / "train.py", tmp_path / "models" / "net.py", tmp_path / "other" / "net.py")
    return Places(tmp_path, code, (Anchor("optimizer", "train.py", 1, "x = 1"),))


def test_a_file_of_the_workspace_is_named_from_it(places: Places) -> None:
    assert places.name(str(places.root / "models" / "net.py")) == "models/net.py"
    assert places.name("models/net.py") == "models/net.py"


def test_a_path_of_another_machine_is_found_again_by_its_tail(places: Places) -> None:
    assert places.name("/home/me/project/train.py") == "train.py"
    assert places.name("/home/me/project/other/net.py") == "other/net.py"


def test_a_name_that_fits_two_files_or_none_stays_as_it_is(places: Places) -> None:
    assert places.name("/home/me/net.py") == "/home/me/net.py"
    assert places.name("/home/me/loss.py") == "/home/me/loss.py"


def test_only_code_that_was_read_is_a_code_place(places: Places) -> None:
    assert places.code_place(Location(file="/x/train.py", line=2)) == ("train.py", 2)
    assert places.code_place(Location(file="log.txt", line=2)) is None
    assert places.code_place(Location(step=3)) is None


def test_the_training_command_is_guessed_only_where_one_script_can_be_run(places: Places) -> None:
    assert places.training_command == "python train.py"
    assert Places(places.root, places.code[1:]).training_command is None


def test_the_workspace_is_the_deepest_common_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "log.txt").write_text("")
    assert common_root([tmp_path / "a" / "log.txt", tmp_path / "a" / "b"]) == (tmp_path / "a").resolve()
    assert common_root([tmp_path / "a" / "b"]) == (tmp_path / "a" / "b").resolve()
    assert common_root(["-"]) == Path.cwd()
