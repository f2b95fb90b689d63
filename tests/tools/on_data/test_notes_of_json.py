"""What is said of JSON files beside the data that are no table themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.on_data import examine


@pytest.mark.parametrize(("name", "content", "said"), [
    ("norm_stats.json", {"mean": [0.1, 0.2, 0.3, 0.4], "std": [1.0, 1.1, 0.9, 1.2]}, "means and spreads"),
    ("dataset_info.json", {"features": {"x": {"dtype": "float32"}}, "citation": "", "license": ""}, "description of a"),
    ("run.json", {"lr": 0.1}, "no list of records"),
])
def test_what_a_file_is_read_for(name: str, content: Any, said: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", x=rng.normal(size=(60, 4)), y=rng.integers(0, 3, 60))
    (tmp_path / name).write_text(json.dumps(content))
    (note,) = [a.note for a in examine([tmp_path]).artifacts if a.path.endswith(name)]
    assert said in note
