"""Units that a gap parts from the rest of their tensor, columns and blocks that are there twice; and what is design."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import convolutions, stack, write_npz

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

Arrays = dict[str, Any]


def _found(folder: Path, arrays: Arrays, *rules: str) -> list[Any]:
    seen = examine(write_npz(folder / "a.npz", arrays))
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.rule in rules and f.severity is not Severity.INFO]


def _rows(a: Arrays) -> None:
    a["h.3.mlp.up.weight"][10:20] *= 1e-4


def _columns(a: Arrays) -> None:
    a["h.3.mlp.up.weight"][:, [3, 9, 20]] *= np.float32(1e-5)


def _large(a: Arrays) -> None:
    a["h.2.attn.o.weight"][[4, 7]] *= 3000


@pytest.mark.parametrize(("fault", "kind", "axis", "units"), [(_rows, "low", 0, 10), (_columns, "low", 1, 3),
                                                              (_large, "high", 0, 2)])
def test_units_of_another_scale(fault: Callable[[Arrays], None], kind: str, axis: int, units: int,
                                tmp_path: Path) -> None:
    a = stack()
    fault(a)
    (found,) = [f for f in _found(tmp_path, a, "W126") if f.measured["axis"] == axis]
    assert (found.measured["kind"], found.measured["units"]) == (kind, units)


def test_dead_filters_with_their_normalisation(tmp_path: Path) -> None:
    a = convolutions()
    dead = [2, 5, 11]
    a["layers.3.conv.weight"][dead] *= np.float32(1e-6)
    a["layers.3.bn.weight"][dead] *= np.float32(1e-6)
    a["layers.3.bn.running_var"][dead] *= np.float32(1e-12)
    (found,) = _found(tmp_path, a, "W126")
    assert found.measured["beside"] == ("layers.3.bn.weight", "layers.3.bn.running_var")


def _pruned_everywhere(a: Arrays) -> None:
    rng = np.random.default_rng(1)
    for name in [n for n in a if "mlp.up.weight" in n or "attn.q.weight" in n]:
        a[name][rng.permutation(len(a[name]))[:6]] *= 1e-6


def _pruned_by_mask(a: Arrays) -> None:
    a["h.3.mlp.up.weight"][10:20] *= 1e-6
    mask = np.ones((128, 32), np.float32)
    mask[10:20] = 0
    a["h.3.mlp.up.weight_mask"] = mask


def _massive(a: Arrays) -> None:
    """A few channels that carry all, in each layer."""
    for name in [n for n in a if n.endswith("mlp.down.weight")]:
        a[name][[3, 17]] *= 200


def _heavy_tail(a: Arrays) -> None:
    a["h.3.mlp.up.weight"] *= np.logspace(-3, 0, 128, dtype=np.float32)[:, None]


def _rare_tokens(a: Arrays) -> None:
    a["wte.weight"][100:140] *= 1e-4


@pytest.mark.parametrize("design", [lambda a: None, _pruned_everywhere, _pruned_by_mask, _massive, _heavy_tail,
                                    _rare_tokens])
def test_what_is_design_is_left_alone(design: Callable[[Arrays], None], tmp_path: Path) -> None:
    a = stack()
    design(a)
    assert _found(tmp_path, a, "W126") == []


def test_columns_that_are_equal(tmp_path: Path) -> None:
    a = stack()
    w = a["h.4.mlp.down.weight"]
    for at in (5, 30, 31, 60, 90, 101, 117, 120):
        w[:, at] = w[:, at // 2]
    (found,) = _found(tmp_path, a, "W126")
    assert (found.measured["kind"], found.measured["units"]) == ("equal", 8)


@pytest.mark.parametrize(("name", "axis", "parts"), [("h.4.mlp.down.weight", 1, 2), ("h.4.mlp.up.weight", 0, 4),
                                                     ("h.2.attn.q.weight", 1, 4)])
def test_the_part_of_one_rank_merged_twice(name: str, axis: int, parts: int, tmp_path: Path) -> None:
    a = stack()
    own = np.split(a[name], parts, axis)[0]
    a[name] = np.concatenate([own] * parts, axis)
    found = [f for f in _found(tmp_path, a, "W117") if f.measured.get("whole")]
    assert [(f.measured["name"], f.measured["axis"]) for f in found] == [(name, axis)]


def test_all_stacks_merged_from_one_rank(tmp_path: Path) -> None:
    a = stack()
    for name in [n for n in a if n.startswith("h.") and n.endswith("weight") and a[n].ndim == 2]:
        axis = int(".o." in name or ".down." in name)
        a[name] = np.concatenate([np.split(a[name], 2, axis)[0]] * 2, axis)
    assert any(f.measured.get("stacks") for f in _found(tmp_path, a, "W117"))


@pytest.mark.parametrize("tiled", [True, False])
def test_heads_repeated_for_grouped_queries_are_left_alone(tiled: bool, tmp_path: Path) -> None:
    a = stack()
    for name in [n for n in a if ".k.weight" in n or ".v.weight" in n]:
        heads = a[name].reshape(4, 8, 32)[::2]
        a[name] = (np.concatenate([heads, heads]) if tiled else np.repeat(heads, 2, 0)).reshape(32, 32)
    assert _found(tmp_path, a, "W117", "W126", "W105") == []


def test_values_that_are_no_numbers_cost_no_rule(tmp_path: Path) -> None:
    a = stack()
    a["h.3.mlp.up.weight"][10:20] = np.nan
    a["h.2.mlp.up.weight"][:] = 0
    a["odd"] = np.zeros((0, 8), np.float32)
    assert _found(tmp_path, a, "W126") == []
