"""W177: bfloat16 under the label float16 and the reverse, beside weights that only look odd."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_weights import of_run

torch = pytest.importorskip("torch")
save_file = pytest.importorskip("safetensors.torch").save_file

Make = Callable[[np.random.Generator, tuple[int, ...]], "torch.Tensor"]
SHAPES = {"convs.0.weight": (16, 3, 3, 3), "convs.1.weight": (32, 16, 3, 3), "head.weight": (64, 32),
          "emb.weight": (200, 24)}


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape), dtype=torch.float32)


def uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(rng.uniform(-0.1, 0.1, shape), dtype=torch.float32)


def unit(rng: np.random.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(rng.normal(0, 1, shape), dtype=torch.float32)


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    scale = rng.uniform(0.02, 0.09, (shape[0], *[1] * (len(shape) - 1)))
    return torch.tensor(rng.choice([-1.0, 1.0], shape) * scale, dtype=torch.float32)


def ternary(rng: np.random.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(rng.choice([-0.05, 0.0, 0.05], shape), dtype=torch.float32)


def pruned(rng: np.random.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    values = normal(rng, shape)
    return torch.where(values.abs() > values.abs().quantile(0.9), values, torch.zeros(()))


def decades(rng: np.random.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(rng.choice([-1.0, 1.0], shape) * 10 ** rng.uniform(-4, 1, shape), dtype=torch.float32)


def told(folder: Path, make: Make, dtype: torch.dtype, label: torch.dtype | None = None, count: int = 4,
         of: int | None = None) -> list[Finding]:
    rng = np.random.default_rng(0)
    made = {n: make(rng, s).to(dtype).contiguous() for n, s in list(SHAPES.items())[:count]}
    chosen = list(made)[:of]
    named = {n: t.view(label) if label is not None and n in chosen else t.to(label or dtype) for n, t in made.items()}
    save_file({n: t.contiguous() for n, t in named.items()}, str(folder / "model.safetensors"))
    return [f for f in of_run([str(folder / "model.safetensors")]).findings if f.rule == "W177"]


@pytest.mark.parametrize(("dtype", "label"), [(torch.bfloat16, torch.float16), (torch.float16, torch.bfloat16)])
@pytest.mark.parametrize("make", [normal, uniform])
def test_a_wrong_label_is_told_with_both_spreads(
    make: Make, dtype: torch.dtype, label: torch.dtype, tmp_path: Path
) -> None:
    (found,) = told(tmp_path, make, dtype, label)
    assert found.measured["count"] == 4
    assert f"labelled {str(label)[6:]} and hold the bits of {str(dtype)[6:]}" in found.statement


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("make", [normal, uniform, unit, signs, ternary, pruned, decades])
def test_right_labels(make: Make, dtype: torch.dtype, tmp_path: Path) -> None:
    assert told(tmp_path, make, dtype) == []


@pytest.mark.parametrize(("count", "of"), [(2, None), (4, 2)], ids=["two matrices", "half of them"])
def test_too_few_to_tell(count: int, of: int | None, tmp_path: Path) -> None:
    assert told(tmp_path, normal, torch.bfloat16, torch.float16, count, of) == []


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf"), 1.0])
def test_matrices_of_one_value(value: float, tmp_path: Path) -> None:
    assert told(tmp_path, lambda rng, shape: torch.full(shape, value), torch.float16) == []
