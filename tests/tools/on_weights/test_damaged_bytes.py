"""What is damaged or no file at all is said so, in one line."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.tensor import Damaged


@pytest.mark.parametrize("name", ["x.pt", "x.npz"])
def test_names_of_members_that_are_no_text_are_damage(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fünf/data.pkl" if name == "x.pt" else "fünf.npy", b"x")
    path.write_bytes(path.read_bytes().replace("ü".encode(), b"\xd5\xd5"))
    with pytest.raises(Damaged, match="damaged zip archive"):
        examine(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.safetensors")
    with pytest.raises(UnreadableInput, match="no regular file"):
        examine(tmp_path / "f.safetensors")


def test_a_pipe_called_config_beside_a_checkpoint_is_left_alone(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    import numpy as np

    safetensors.save_file({"w": np.ones((4, 4), np.float32)}, tmp_path / "w.safetensors")
    os.mkfifo(tmp_path / "config.json")
    assert examine(tmp_path / "w.safetensors").checkpoint.format == "safetensors"
