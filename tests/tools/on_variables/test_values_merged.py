"""V107: different values of a column that become one when it is converted, or where it is computed with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.live.reading import read_folder
from traindx_tools.live.settings import Settings, environment_for
from traindx_tools.on_variables.narrowed import Conversions, is_converted, narrowed, would_narrow
from traindx_tools.on_variables.rules import v107_values_merged

CLOCK = 1_760_000_000 + 47 * np.arange(2000)
"""Seconds since 1970, a reading every 47 s."""
TAGS = 9_000_000_000 + 3 * np.random.default_rng(1).permutation(2000)
"""Numbers of ear tags: ten digits, all different."""


def single(values: Any) -> list[tuple[str, int, int]]:
    values = np.asarray(values)
    return [(n.column, n.distinct, n.left) for n in narrowed(values, values.astype(np.float32))]


def test_clocks_and_numbers_of_items_lose_values_in_single_precision() -> None:
    assert single(CLOCK) == [("", 2000, 735)]
    assert single(CLOCK.astype(np.float64)) == single(CLOCK)
    assert single(TAGS)[0][2] < 200
    table = np.stack([np.random.default_rng(0).random(2000), CLOCK + 0.5], 1)
    assert [column for column, _, _ in single(table)] == ["[:, 1]"]


def test_what_looks_like_it_and_loses_nothing_that_matters_is_left_alone() -> None:
    rng = np.random.default_rng(0)
    for column in (rng.normal(size=5000), rng.normal(size=5000) * 1e9, np.exp(rng.normal(size=5000) * 3 + 15),
                   CLOCK - CLOCK[0], 1_700_000_000 + 86_400 * np.arange(500), rng.integers(0, 2**62, 5000),
                   np.full(500, 2_000_000_001), rng.integers(0, 50_000, 5000), np.array([]), np.full(500, np.nan)):
        assert not single(column)
    assert not list(narrowed(CLOCK, CLOCK.astype(np.float64)))
    with np.errstate(over="ignore"):
        pictures = rng.integers(0, 65_536, (200, 32))
        assert not list(narrowed(pictures, pictures.astype(np.float16)))


def test_what_is_no_column_is_not_looked_at() -> None:
    for value in (None, "text", 3, [1, 2], [[1, 2]] * 99, ["a"] * 99, np.zeros((2, 2, 99)), np.zeros(99, bool), {}):
        assert not is_converted(value)
        assert not list(narrowed(value, np.zeros(99, np.float32)))
    assert not list(narrowed([1, "a"] * 50, np.zeros(100, np.float32)))
    assert not list(narrowed(CLOCK, np.zeros(7, np.float32)))
    Conversions().look(CLOCK, None, ("train.py", 3))


def test_whole_numbers_that_are_held_lose_them_in_arithmetic() -> None:
    torch = pytest.importorskip("torch")
    (found,) = would_narrow(torch.as_tensor(CLOCK))
    assert (found.computed, found.distinct, found.left) == (True, 2000, 735)
    assert not list(would_narrow(torch.arange(50_000)))
    assert not list(would_narrow(CLOCK))  # numpy computes in double precision
    (finding,) = v107_values_merged.check([(("train.py", "main", "t"), None, found)])
    assert "arithmetic with floats makes float32 of it" in finding.statement
    assert finding.bearing.value == "sign"


PROGRAM = """
{imports}
import numpy as np
def phase(seconds):
    t = {convert}
    return {sine}
def main():
    seconds = 1_760_000_000 + 47 * np.arange(2000){shift}
    x = phase(seconds)
    {setup}
    for _ in range(9):
        {step}
main()
"""
TORCH = {"imports": "import torch", "convert": "torch.tensor(seconds, dtype=torch.float32)",
         "sine": "torch.sin(t / 90)[:, None]",
         "setup": "net = torch.nn.Linear(1, 1); opt = torch.optim.SGD(net.parameters(), 1e-3)",
         "step": "opt.zero_grad(); net(x).pow(2).mean().backward(); opt.step()"}
JAX = {"imports": "import jax, jax.numpy as jnp", "convert": "jnp.array(seconds, dtype=jnp.float32)",
       "sine": "jnp.sin(t / 90)[:, None]",
       "setup": "w = jnp.ones((1, 1)); loss = lambda v, x: ((x @ v) ** 2).mean(); "
                "go = jax.jit(lambda w, x: w - 1e-3 * jax.grad(loss)(w, x))", "step": "w = go(w, x)"}
HELD = {**JAX, "convert": "jnp.asarray(seconds)", "setup": "held = jnp.asarray(seconds); " + JAX["setup"]}


def run(folder: Path, program: dict[str, str], shift: str) -> list[tuple[str, str]]:
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM.format(**program, shift=shift), encoding="utf-8")
    given = environment_for(Settings(str(folder / "live"), probes=("variables",)), dict(os.environ))
    subprocess.run([sys.executable, "train.py"], cwd=folder, env=given, check=True, capture_output=True, timeout=300)
    return [(f.rule, str(f.measured["kind"])) for f in read_folder(folder / "live").seen_from(folder)]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "kind"), [(TORCH, "converted"), (JAX, "converted"), (HELD, "computed")],
                         ids=["torch", "jax", "held by jax"])
def test_a_column_that_is_converted_in_a_function_of_its_own(tmp_path: Path, program: dict[str, str], kind: str
                                                            ) -> None:
    assert run(tmp_path / "bad", program, "") == [("V107", kind)]
    assert run(tmp_path / "good", program, " - 1_760_000_000") == []
