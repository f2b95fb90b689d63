"""W170: the mask of one pruned tensor keeps other weights than the masks of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import convolutions, stack, write, write_npz, write_safetensors

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import of_run

Arrays = dict[str, Any]
Mask = Callable[[Any], Any]


def told(*files: Path) -> list[Finding]:
    return [f for f in of_run([str(f) for f in files]).findings if f.rule == "W170"]


def largest(weights: Any, share: float = 0.4) -> Any:
    return np.abs(weights) >= np.quantile(np.abs(weights), 1 - share)


def masks(dense: Arrays, odd: Mapping[str, Mask] | None = None, usual: Mask = largest) -> Arrays:
    return {n: (odd or {}).get(n, usual)(v) for n, v in dense.items() if v.ndim > 1 and min(v.shape[:2]) > 4}


def pruned(dense: Arrays, kept: Arrays) -> Arrays:
    return {n: (v * kept[n] if n in kept else v).astype(np.float32) for n, v in dense.items()}


def second(arrays: Arrays) -> str:
    return sorted(n for n, v in arrays.items() if v.ndim > 1 and min(v.shape[:2]) > 4)[1]


@pytest.mark.parametrize("form", ["safetensors", "npz", "msgpack", "torch"])
@pytest.mark.parametrize("made", [stack, convolutions])
def test_one_mask_is_inverted(form: str, made: Callable[[], Arrays], tmp_path: Path) -> None:
    if form == "torch":
        pytest.importorskip("torch")
    dense = made()
    odd = second(dense)
    kept = masks(dense, {odd: lambda w: ~largest(w, 0.6)})
    (found,) = told(write(form, tmp_path, dense, "dense"), write(form, tmp_path, pruned(dense, kept), "sparse"))
    assert (found.measured["kind"], found.measured["name"], found.severity) == ("inverted", odd, Severity.HIGH)
    assert "sparse" in found.source
    assert int(found.measured["others"]) == len(kept) - 1  # type: ignore[arg-type]


def test_masks_in_a_file_of_their_own_and_ones_that_mark_what_is_removed(tmp_path: Path) -> None:
    dense = convolutions()
    odd = second(dense)
    kept = masks(dense, {odd: lambda w: ~largest(w)})
    file = write_safetensors(tmp_path / "dense.safetensors", dense)
    (found,) = told(file, write_npz(tmp_path / "kept.npz", {n.removesuffix(".weight"): m for n, m in kept.items()}))
    assert found.where.module == odd.removesuffix(".weight")
    (found,) = told(file, write_npz(tmp_path / "gone.npz", {n: ~m for n, m in kept.items()}))
    assert found.where.module == odd


def test_masks_of_torch_beside_their_weights(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    prune = pytest.importorskip("torch.nn.utils.prune")
    torch.manual_seed(0)
    net = torch.nn.Sequential(*(torch.nn.Linear(24, 24) for _ in range(4)))
    for layer in net:
        prune.l1_unstructured(layer, "weight", 0.5)
    torch.save(net.state_dict(), tmp_path / "sound.pt")
    assert told(tmp_path / "sound.pt") == []
    net[2].weight_mask.data = 1 - net[2].weight_mask
    torch.save(net.state_dict(), tmp_path / "odd.pt")
    (found,) = told(tmp_path / "odd.pt")
    assert (found.measured["kind"], found.measured["name"]) == ("inverted", "2.weight_mask")
    for layer in net:
        layer.weight_mask.data = 1 - layer.weight_mask
    net[2].weight_mask.data = 1 - net[2].weight_mask
    torch.save(net.state_dict(), tmp_path / "all.pt")
    (found,) = told(tmp_path / "all.pt")
    assert (found.measured["kind"], found.severity) == ("everywhere", Severity.MEDIUM)


def test_the_mask_of_another_tensor_and_a_transposed_one(tmp_path: Path) -> None:
    dense = stack()
    first, other = [n for n, v in sorted(dense.items()) if v.ndim == 2 and v.shape[0] == v.shape[1]][:2]
    file = write_npz(tmp_path / "dense.npz", dense)
    (found,) = told(file, write_npz(tmp_path / "a.npz", pruned(dense, masks(dense, {other: lambda _: largest(
        dense[first])}))))
    assert (found.measured["kind"], found.measured["name"]) == ("another", other)
    assert first in found.statement
    (found,) = told(file, write_npz(tmp_path / "b.npz", pruned(dense, masks(dense, {other: lambda w: largest(w).T}))))
    assert (found.measured["kind"], found.measured["name"]) == ("transposed", other)


def in_fours(weights: Any) -> Any:
    """The two largest of each four."""
    sizes = np.abs(weights).reshape(-1, 4)
    return (sizes.argsort(axis=1).argsort(axis=1) >= 2).reshape(weights.shape)


def drawn(weights: Any) -> Any:
    return np.random.default_rng(weights.size).random(weights.shape) < 0.5


def rows(weights: Any) -> Any:
    norms = np.sqrt((weights**2).reshape(len(weights), -1).sum(axis=1))
    kept = norms >= np.quantile(norms, 0.5)
    return np.broadcast_to(kept.reshape(-1, *[1] * (weights.ndim - 1)), weights.shape)


@pytest.mark.parametrize("usual", [largest, in_fours, drawn, rows, lambda w: np.roll(rows(w), 3, axis=0)])
def test_one_criterion_everywhere(usual: Mask, tmp_path: Path) -> None:
    dense = stack()
    kept = masks(dense, usual=usual)
    assert told(write_npz(tmp_path / "dense.npz", dense), write_npz(tmp_path / "sparse.npz", pruned(dense, kept))) == []


def test_layers_that_were_pruned_by_rows_or_by_chance_beside_others(tmp_path: Path) -> None:
    dense = stack()
    odd = second(dense)
    for at, usual in enumerate((rows, drawn, in_fours)):
        kept = masks(dense, {odd: usual})
        assert told(write_npz(tmp_path / "dense.npz", dense),
                    write_npz(tmp_path / f"sparse{at}.npz", pruned(dense, kept))) == []


def test_lines_of_small_norm_in_one_layer(tmp_path: Path) -> None:
    dense = stack()
    odd = second(dense)
    kept = masks(dense, {odd: lambda w: ~rows(w)}, usual=rows)
    (found,) = told(write_npz(tmp_path / "dense.npz", dense), write_npz(tmp_path / "s.npz", pruned(dense, kept)))
    assert found.measured["name"] == odd


def test_fine_tuned_after_pruning_and_what_was_never_dense(tmp_path: Path) -> None:
    dense, rng = stack(), np.random.default_rng(0)
    kept = masks(dense)
    later = {n: (v + 0.01 * rng.standard_normal(v.shape) * (v != 0)).astype(np.float32)
             for n, v in pruned(dense, kept).items()}
    first, last = (write_npz(tmp_path / f"step_{n}.npz", v) for n, v in ((100, pruned(dense, kept)), (200, later)))
    assert told(first, last) == []


def test_broken_files(tmp_path: Path) -> None:
    dense = stack()
    whole = write_npz(tmp_path / "dense.npz", dense)
    odd = write_npz(tmp_path / "sparse.npz", pruned(dense, masks(dense)) | {second(dense): np.full((32, 32), np.nan)})
    cut = tmp_path / "cut.npz"
    cut.write_bytes(whole.read_bytes()[:4000])
    empty = write_npz(tmp_path / "masks.npz", {"a": np.zeros((0, 3), bool), "b": np.ones((2, 2), bool),
                                               "c": np.zeros((5, 5), bool)})
    assert told(whole, odd, cut, empty) == []
