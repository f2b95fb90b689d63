"""Ids beyond the tables of compiled functions, and ids that lie within, are guarded, or are of another column."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import numpy as np
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.paths.lookups import lookups
from traindx_tools.on_jax.rules import j807_ids_beyond_table

ROWS = 20
TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
LookUp = Callable[[Any, Any], Any]


def plainly(table: Any, ids: Any) -> Any:
    return table[ids]  # <- plainly


def shifted(table: Any, ids: Any) -> Any:
    return table[ids[:, :-1]]


def in_vmap(table: Any, ids: Any) -> Any:
    return jax.vmap(lambda row: table[row])(ids)


def in_scan(table: Any, ids: Any) -> Any:
    return jax.lax.scan(lambda c, row: (c, table[row]), 0.0, ids)[1]


def taken(table: Any, ids: Any) -> Any:
    return jnp.nan_to_num(jnp.take(table, ids, axis=0))


def positions(table: Any, ids: Any) -> Any:
    return table[jnp.arange(ids.shape[1] * 4)]


def guarded(table: Any, ids: Any) -> Any:
    return table[jnp.where(ids < ROWS, ids, 0)]


def clipped(table: Any, ids: Any) -> Any:
    return table[jnp.minimum(ids, ROWS - 1)]


def hashed(table: Any, ids: Any) -> Any:
    return table[ids % ROWS]


def first_column(table: Any, ids: Any) -> Any:
    """The others are of another table."""
    return table[ids[:, 0]]


def trained(look_up: LookUp, ids: Callable[[Any], Any], steps: int = 8) -> None:
    random = np.random.default_rng(0)
    table = jnp.asarray(random.normal(size=(ROWS, 4)), jnp.float32)

    @jax.jit
    def step(table: Any, ids: Any) -> Any:
        value, gradient = jax.value_and_grad(lambda t: (look_up(t, ids) ** 2).mean())(table)
        return table - 0.1 * gradient, value

    for _ in range(steps):
        table, _ = step(table, ids(random))


def below(highest: int) -> Callable[[Any], Any]:
    return lambda random: random.integers(0, highest, (8, 6)).astype(np.int32)


def two_columns(random: Any) -> Any:
    return np.stack([random.integers(0, ROWS, 8), random.integers(0, 90, 8)], 1).astype(np.int32)


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("lookups",))) if f.rule == "J807"]


@pytest.mark.parametrize(("look_up", "kind"), [
    (plainly, "clamped"), (shifted, "clamped"), (in_vmap, "clamped"), (in_scan, "clamped"), (taken, "filled"),
    (positions, "counted")])
def test_beyond_the_table(look_up: LookUp, kind: str, tmp_path: Path) -> None:
    (found,) = seen(lambda: trained(look_up, below(ROWS if kind == "counted" else ROWS + 5)), tmp_path)
    assert (found.measured["kind"], found.measured["rows"]) == (kind, ROWS)
    assert found.bearing.value == ("sign" if kind == "filled" else "cause")
    if look_up is plainly:
        assert TEXT[(found.where.line or 0) - 1].endswith("# <- plainly")


@pytest.mark.parametrize(("look_up", "ids"), [
    (plainly, below(ROWS)), (shifted, below(ROWS)), (guarded, below(60)), (clipped, below(60)), (hashed, below(60)),
    (first_column, two_columns), (plainly, lambda random: -1 * below(ROWS)(random) - 1)],
    ids=["within", "a part", "where", "minimum", "modulus", "a column", "from the end"])
def test_within_the_table(look_up: LookUp, ids: Any, tmp_path: Path) -> None:
    assert seen(lambda: trained(look_up, ids), tmp_path) == []


def test_broken_inputs(tmp_path: Path) -> None:
    assert seen(lambda: trained(plainly, lambda random: np.zeros((0, 6), np.int32)), tmp_path) == []
    assert lookups(jax.make_jaxpr(lambda x: x)(jnp.ones(3))) == []
    assert list(j807_ids_beyond_table.check([])) == []
