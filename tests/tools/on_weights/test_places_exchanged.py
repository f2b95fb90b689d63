"""W176: ports in which all kernels, or all gates, are in a form that the library does not read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import of_run
from traindx_tools.on_weights.conversions import held_of, pair

numpy_files = pytest.importorskip("safetensors.numpy")
Array = np.ndarray[Any, Any]


def told(folder: Path, rule: str = "W176") -> list[Finding]:
    return [f for f in of_run([str(f) for f in sorted(folder.iterdir())]).findings if f.rule == rule]


def kernels(folder: Path, turn: Callable[[Array], Array], count: int = 4, broken: bool = False) -> None:
    rng = np.random.default_rng(0)
    widths = (3, 16, 24, 40, 48)
    keras, torch = {}, {}
    for k in range(count):
        kernel = rng.normal(size=(3, 3, widths[k], widths[k + 1])).astype(np.float32)
        keras |= {f"c{k}/kernel": kernel, f"c{k}/bias": rng.normal(size=widths[k + 1]).astype(np.float32)}
        torch |= {f"c{k}.weight": np.ascontiguousarray(turn(kernel)), f"c{k}.bias": keras[f"c{k}/bias"]}
    dense = rng.normal(size=(48, 5)).astype(np.float32)
    np.savez(folder / "keras.npz", **keras, **{"out/kernel": dense})
    if broken:
        torch["c1.weight"] = np.full_like(torch["c1.weight"], np.nan)
    numpy_files.save_file({**torch, "out.weight": np.ascontiguousarray(dense.T)}, folder / "net.safetensors")


def test_all_axes_were_reversed(tmp_path: Path) -> None:
    kernels(tmp_path, lambda k: k.transpose(3, 2, 1, 0))
    (found,) = told(tmp_path)
    assert (found.severity, found.measured["kind"], len(found.measured["names"])) == (  # type: ignore[arg-type]
        Severity.HIGH, "axes", 4)


def test_kernels_that_are_read_from_the_other_end(tmp_path: Path) -> None:
    kernels(tmp_path, lambda k: k.transpose(3, 2, 0, 1)[:, :, ::-1, ::-1])
    found = told(tmp_path)
    assert {f.measured["kind"] for f in found} <= {"flipped"}


@pytest.mark.parametrize("turn", [lambda k: k.transpose(3, 2, 0, 1),
                                  lambda k: ((k + k.transpose(1, 0, 2, 3)) / 2).transpose(3, 2, 0, 1)],
                         ids=["converted", "another-model"])
def test_kernels_in_the_order_of_the_library(turn: Callable[[Array], Array], tmp_path: Path) -> None:
    kernels(tmp_path, turn)
    assert told(tmp_path) == []


def test_kernels_that_are_equal_to_their_transposes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    given = {f"c{k}": rng.normal(size=(3, 3, 8, 12)).astype(np.float32) for k in range(4)}
    given = {n: v + v.transpose(1, 0, 2, 3) for n, v in given.items()}
    np.savez(tmp_path / "keras.npz", **given)
    numpy_files.save_file({n: np.ascontiguousarray(v.transpose(3, 2, 1, 0)) for n, v in given.items()},
                          tmp_path / "net.safetensors")
    assert told(tmp_path) == []


def test_values_that_are_no_numbers(tmp_path: Path) -> None:
    kernels(tmp_path, lambda k: k.transpose(3, 2, 1, 0), broken=True)
    assert all(f.measured["kind"] == "axes" for f in told(tmp_path))


def recurrent(folder: Path, gates: int, order: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    keras, torch = {}, {}
    for k, inputs in enumerate((6, 32)):
        into, within = (rng.normal(size=(n, gates * 32)).astype(np.float32) for n in (inputs, 32))
        keras |= {f"r{k}/kernel": into, f"r{k}/recurrent_kernel": within}
        for name, given in (("ih", into), ("hh", within)):
            blocks = np.split(given.T, gates)
            torch[f"r{k}.weight_{name}_l0"] = np.ascontiguousarray(np.concatenate([blocks[i] for i in order]))
    head = rng.normal(size=(32, 2)).astype(np.float32)
    np.savez(folder / "keras.npz", **keras, **{"out/kernel": head, "out/bias": np.zeros(2, np.float32)})
    numpy_files.save_file({**torch, "out.weight": np.ascontiguousarray(head.T), "out.bias": np.zeros(2, np.float32)},
                          folder / "net.safetensors")


def test_gates_of_a_gru_that_kept_the_order_of_keras(tmp_path: Path) -> None:
    recurrent(tmp_path, 3, (0, 1, 2))
    (found,) = told(tmp_path)
    assert found.measured["kind"] == "gates"
    assert {found.measured["name"], found.measured["source"]} == {"r0.weight_hh_l0", "r0/recurrent_kernel"}


@pytest.mark.parametrize(("gates", "order"), [(3, (1, 0, 2)), (4, (0, 1, 2, 3))], ids=["gru", "lstm"])
def test_gates_in_the_order_of_torch(gates: int, order: tuple[int, ...], tmp_path: Path) -> None:
    recurrent(tmp_path, gates, order)
    assert told(tmp_path) == []


def test_the_last_pairs_are_let_go(tmp_path: Path) -> None:
    kernels(tmp_path, lambda k: k.transpose(3, 2, 1, 0))
    told(tmp_path)
    assert pair.cache_info().currsize == held_of.cache_info().currsize == 0
