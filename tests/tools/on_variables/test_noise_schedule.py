"""V103: a noise schedule that leaves signal at its end, found by its numbers; and products that are something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from traindx_tools.on_variables import visiting
from traindx_tools.on_variables.noise_schedule import schedules
from traindx_tools.on_variables.rules import v103_signal_left

SHORT, LONG = np.linspace(1e-4, 0.02, 100), np.linspace(1e-4, 0.02, 1000)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is told of a program with these variables."""
    def of(**variables: Any) -> list[Any]:
        monkeypatch.setattr(visiting, "roots", lambda: (("train.py", "", n, v) for n, v in variables.items()))
        return list(v103_signal_left.check(schedules()))
    return of


def arrays(kind: str, beta: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    left = np.cumprod(1 - beta)
    if kind == "torch":
        torch = pytest.importorskip("torch")
        return torch.tensor(beta, dtype=torch.float32), torch.tensor(left, dtype=torch.float32)
    if kind == "jax":
        jnp = pytest.importorskip("jax.numpy")
        return jnp.asarray(beta), jnp.asarray(left)
    return beta, left


@pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
def test_betas_of_a_thousand_steps_for_a_hundred(kind: str, told: Any) -> None:
    beta, left = arrays(kind, SHORT)
    (found,) = told(betas=beta, schedule={"abar": left})
    assert found.rule == "V103"
    assert found.measured["left"] == pytest.approx(0.364, abs=0.001)
    assert "needs about 520 steps" in found.statement


def test_alphas_instead_of_betas(told: Any) -> None:
    assert told(alphas=1 - SHORT, kept=np.cumprod(1 - SHORT))


@pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
def test_a_schedule_that_ends_in_noise(kind: str, told: Any) -> None:
    beta, left = arrays(kind, LONG)
    assert told(betas=beta, abar=left) == []


def test_a_cosine_schedule(told: Any) -> None:
    t = np.cos((np.arange(101) / 100 + 0.008) / 1.008 * np.pi / 2) ** 2
    beta = np.clip(1 - t[1:] / t[:-1], 0, 0.999)
    assert told(betas=beta, alphas_cumprod=np.cumprod(1 - beta)) == []


def test_survival_and_discounts_are_called_otherwise(told: Any) -> None:
    assert told(hazard=SHORT, survival=np.cumprod(1 - SHORT), discounts=0.99 ** np.arange(100)) == []


@pytest.mark.parametrize("variables", [
    {"betas": SHORT}, {"betas": SHORT, "abar": np.cumprod(1 - SHORT)[:-1]}, {"betas": SHORT * np.nan, "abar": SHORT},
    {"betas": np.zeros(100), "abar": np.ones(100)}, {"betas": SHORT, "abar": SHORT[::-1]}, {}])
def test_anything_else(variables: dict[str, Any], told: Any) -> None:
    assert told(**variables) == []


def test_tensors_whose_memory_was_given_back_are_not_read(told: Any) -> None:
    torch = pytest.importorskip("torch")
    freed = torch.tensor(SHORT)
    freed.untyped_storage().resize_(0)
    assert told(betas=freed, bias=torch.nn.Parameter(freed), meta=torch.zeros(100, device="meta")) == []


def test_objects_are_asked_for_nothing(told: Any) -> None:
    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise SystemError(f"asked for {name}")

        @property
        def __class__(self) -> Any:  # type: ignore[override]
            raise SystemError("asked for its class")

    assert told(one=Hostile(), betas=SHORT) == []
