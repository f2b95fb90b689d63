"""A count that half precision could not hold stands as inf beside the statistics that it belongs to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy as safetensors

from traindx_tools.on_weights.examine import examine
from traindx_tools.on_weights.tensor import Damaged


def stored(path: Path, dtype: str, **values: object) -> Path:
    draw = np.random.default_rng(0)
    tensors = {"body.weight": draw.normal(size=(24, 12)), "norm.mean": draw.normal(size=12),
               "norm.var": draw.uniform(0.5, 2, size=12), **{k.replace("__", "."): v for k, v in values.items()}}
    with np.errstate(over="ignore"):
        safetensors.save_file({k: np.asarray(v, dtype) for k, v in tensors.items()}, path)
    return path


def told(path: Path) -> list[tuple[str, object]]:
    return [(f.rule, f.measured.get("name")) for f in examine(path).findings if f.rule == "W101"]


def test_a_count_beyond_half_precision_is_named(tmp_path: Path) -> None:
    path = stored(tmp_path / "half.safetensors", "float16", norm__count=120_000)
    assert told(path) == [("W101", "norm.count")]
    (finding,) = [f for f in examine(path).findings if f.rule == "W101"]
    assert "65,504" in finding.statement


@pytest.mark.parametrize(("dtype", "values"), [
    ("float16", {"norm__count": 60_000}), ("float16", {"best_loss": np.inf}), ("float32", {"norm__best": np.inf}),
    ("float16", {"norm__lowest": -np.inf}), ("float16", {"schedule__best": np.inf}),
    ("float16", {"norm__low": np.inf, "norm__high": -np.inf})])
def test_what_is_meant_to_be_infinite_is_left_alone(tmp_path: Path, dtype: str, values: dict[str, object]) -> None:
    assert not told(stored(tmp_path / "fine.safetensors", dtype, **values))


def test_a_cut_file_is_one_line(tmp_path: Path) -> None:
    path = stored(tmp_path / "half.safetensors", "float16", norm__count=120_000)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(Damaged, match="it was cut"):
        examine(path)
