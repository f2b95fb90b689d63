"""Layers under two names and runs of blocks merged twice; weights that are shared or doubled by design beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from weight_planting import Arrays, stack, write

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

Change = Callable[[Arrays], None]


def alarms(form: str, folder: Path, how: Change, layers: int = 8) -> list[str]:
    arrays = stack(layers)
    how(arrays)
    found = examine(write(form, folder, arrays)).findings
    return [f"{f.rule} {f.statement}" for f in found if f.severity is not Severity.INFO]


def copied(arrays: Arrays, to: dict[int, int], before: str = "") -> None:
    """Blocks written over other blocks, or again under a longer name."""
    for name in list(arrays):
        for one, other in to.items():
            if name.startswith(f"h.{one}."):
                arrays[before + name.replace(f"h.{one}.", f"h.{other}.")] = arrays[name].copy()


def query_for_key(arrays: Arrays) -> None:
    arrays["h.3.attn.k.weight"] = arrays["h.3.attn.q.weight"].copy()


def again_under_a_prefix(arrays: Arrays) -> None:
    copied(arrays, {2: 2, 3: 3}, "module.")


def of_the_other_stack(arrays: Arrays) -> None:
    arrays |= {f"decoder.{n}": v for n, v in stack(8, seed=9).items() if n.startswith("h.")}
    copied(arrays, {3: 3}, "decoder.")


@pytest.mark.parametrize("form", ["safetensors", "npz", "torch"])
@pytest.mark.parametrize("how", [query_for_key, again_under_a_prefix, of_the_other_stack])
def test_two_names(form: str, how: Change, tmp_path: Path) -> None:
    found = alarms(form, tmp_path, how)
    assert found
    assert all(f.startswith("W127") for f in found)
    assert "h.3" in found[0] or "h.2" in found[0]


@pytest.mark.parametrize(("layers", "to"), [(8, {2: 4, 3: 5}), (12, {3: 9, 4: 10, 5: 11})])
def test_the_blocks_of_one_rank_in_the_place_of_another(layers: int, to: dict[int, int], tmp_path: Path) -> None:
    found = alarms("safetensors", tmp_path, lambda a: copied(a, to), layers)
    assert len(found) == len(to)
    assert all(f.startswith("W115") for f in found)


def keys_are_queries(arrays: Arrays) -> None:
    for k in range(8):
        arrays[f"h.{k}.attn.k.weight"] = arrays[f"h.{k}.attn.q.weight"].copy()


def all_of_it_twice(arrays: Arrays) -> None:
    arrays |= {f"ema.{n}": v.copy() for n, v in arrays.items()}


def tied(arrays: Arrays) -> None:
    arrays["head.weight"] = arrays["wte.weight"].copy()


@pytest.mark.parametrize("how", [
    lambda a: None, keys_are_queries, all_of_it_twice, tied, lambda a: copied(a, {0: 4, 1: 5, 2: 6, 3: 7}),
])
def test_what_is_shared_by_design(how: Change, tmp_path: Path) -> None:
    assert not alarms("safetensors", tmp_path, how)


def test_a_model_deepened_by_a_third_of_its_blocks(tmp_path: Path) -> None:
    assert not alarms("safetensors", tmp_path, lambda a: copied(a, {4: 8, 5: 9, 6: 10, 7: 11}), 12)
