"""Moments of an optimizer in files that keep no names: underflowed squares are told, and what looks alike is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.on_weights import examine
from traindx_tools.on_weights.of_run import is_weights

Arrays = dict[str, Any]
SHAPES = [(24,), (20, 24), (24,), (24, 24), (5,), (24, 5)]


def trained(steps: int = 60) -> tuple[list[Any], list[Any], list[Any]]:
    """Weights, means of gradients and of their squares, of layers whose gradients are of other sizes."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=s).astype(np.float32) * 0.2 for s in SHAPES]
    sizes = [rng.lognormal(-9, 1.0, s) for s in SHAPES]
    m, v = [np.zeros(s) for s in SHAPES], [np.zeros(s) for s in SHAPES]
    for _ in range(steps):
        for i, size in enumerate(sizes):
            g = rng.normal(size=size.shape) * size
            m[i], v[i] = 0.9 * m[i] + 0.1 * g, 0.999 * v[i] + 0.001 * g * g
    return weights, [x.astype(np.float32) for x in m], [x.astype(np.float32) for x in v]


def half(arrays: Sequence[Any]) -> list[Any]:
    return [a.astype(np.float16) for a in arrays]


def in_parts(w: Sequence[Any], m: Sequence[Any], v: Sequence[Any]) -> Arrays:
    return {**{f"a/{i}": x for i, x in enumerate(w)}, "o/0": np.int32(60),
            **{f"o/{i + 1}": x for i, x in enumerate([*m, *v])}}


def leaves(w: Sequence[Any], m: Sequence[Any], v: Sequence[Any]) -> Arrays:
    return {f"arr_{i}": x for i, x in enumerate([*w, np.int32(60), *m, *v])}


def in_turn(w: Sequence[Any], m: Sequence[Any], v: Sequence[Any]) -> Arrays:
    rows = zip(w, m, v, strict=True)
    return {f"layer{i}.{k}": x for i, row in enumerate(rows) for k, x in zip(("p", "q", "r"), row, strict=True)}


def second_first(w: Sequence[Any], m: Sequence[Any], v: Sequence[Any]) -> Arrays:
    return {f"{k}_{i:02d}": x for k, some in (("a", v), ("b", m), ("c", w)) for i, x in enumerate(some)}


LAYOUTS = [in_parts, leaves, in_turn, second_first]


def kinds(folder: Path, arrays: Arrays, rule: str = "W124") -> list[str]:
    np.savez(folder / "c.npz", **arrays)
    seen = examine(folder / "c.npz")
    assert not [n for n in seen.notes if "failed" in n]
    return [str(f.measured["kind"]) for f in seen.findings if f.rule == rule]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("back", [False, True])
def test_squares_that_underflowed(layout: Callable[..., Arrays], back: bool, tmp_path: Path) -> None:
    w, m, v = trained()
    made = layout(w, half(m), half(v))
    if back:  # stored in the wider type again
        made = {k: x.astype(np.float32) if x.dtype == np.float16 else x for k, x in made.items()}
    assert "underflow" in kinds(tmp_path, made)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_whole_moments_are_left_alone(layout: Callable[..., Arrays], tmp_path: Path) -> None:
    w, m, v = trained()
    assert kinds(tmp_path, layout(w, m, v)) == []
    (examined,) = [examine(tmp_path / "c.npz")]
    assert len(examined.checkpoint.moment_pairs) == len(SHAPES)
    assert examined.findings == ()


def test_lists_in_a_pickle_of_torch_and_in_msgpack(tmp_path: Path) -> None:
    torch, serialization = pytest.importorskip("torch"), pytest.importorskip("flax.serialization")
    w, m, v = trained()
    lists = {"net": w, "moving": [half(m), half(v)]}
    torch.save({k: [torch.as_tensor(x) for x in (some if k == "net" else [*some[0], *some[1]])]
                for k, some in lists.items()}, tmp_path / "c.pt")
    tree = {"params": {str(i): x for i, x in enumerate(w)},
            "opt_state": {str(i): x for i, x in enumerate([*half(m), *half(v)])}}
    (tmp_path / "c.msgpack").write_bytes(serialization.msgpack_serialize(tree))
    for name in ("c.pt", "c.msgpack"):
        found = [f for f in examine(tmp_path / name).findings if f.rule == "W124"]
        assert [f.measured["kind"] for f in found] == ["underflow"], name


def healthy_masks(w: list[Any], m: list[Any], v: list[Any]) -> Arrays:
    rng = np.random.default_rng(1)
    return leaves(w, m, [(rng.random(x.shape) < 0.3).astype(np.float32) for x in w])


def healthy_anchor_and_importance(w: list[Any], m: list[Any], v: list[Any]) -> Arrays:
    """Weights of an earlier task, and how much each counted there: zero for dead units."""
    anchor = [x + 0.01 for x in w]
    return leaves(w, anchor, [np.where(np.arange(x.size).reshape(x.shape) % 3, x, 0) for x in v])


def healthy_variational(w: list[Any], m: list[Any], v: list[Any]) -> Arrays:
    """Means and deviations of each weight, and a draw."""
    rng = np.random.default_rng(2)
    return leaves(w, [x + rng.normal(size=x.shape).astype(np.float32) * 0.02 for x in w],
                  [np.full(x.shape, 0.02, np.float32) for x in w])


def healthy_dead_rows(w: list[Any], m: list[Any], v: list[Any]) -> Arrays:
    for some in (m, v):
        some[1][:7] = 0
    return leaves(w, m, v)


def healthy_two_nets(w: list[Any], m: list[Any], v: list[Any]) -> Arrays:
    """Three networks of one form, one of them behind a ReLU."""
    return leaves(w, [x[::-1] for x in w], [np.maximum(x, 0) for x in w])


@pytest.mark.parametrize("make", [healthy_masks, healthy_anchor_and_importance, healthy_variational, healthy_dead_rows,
                                  healthy_two_nets])
def test_what_looks_alike(make: Callable[..., Arrays], tmp_path: Path) -> None:
    assert kinds(tmp_path, make(*trained())) == []


def test_a_file_of_leaves_is_taken_for_weights_and_tables_are_not(tmp_path: Path) -> None:
    w, m, v = trained()
    np.savez(tmp_path / "c.npz", **leaves(w, m, v))
    rng = np.random.default_rng(0)
    tables = {f"{k}_{i}": rng.normal(size=(100, n)) for k in ("train", "valid", "test")
              for i, n in enumerate((8, 1, 3))}
    np.savez(tmp_path / "d.npz", **tables)
    (tmp_path / "e.npz").write_bytes((tmp_path / "c.npz").read_bytes()[:900])
    assert [is_weights(str(tmp_path / n)) for n in ("c.npz", "d.npz", "e.npz")] == [True, False, False]


def test_values_that_are_no_numbers_and_a_cut_file_are_no_moments(tmp_path: Path) -> None:
    w, m, v = trained()
    v[1][0] = np.nan
    assert kinds(tmp_path, leaves(w, m, v)) == []
    (tmp_path / "cut.npz").write_bytes((tmp_path / "c.npz").read_bytes()[:-200])
    from traindx_tools.errors import TraindxError

    with pytest.raises(TraindxError):
        examine(tmp_path / "cut.npz")
