"""Moments of a stack under its neighbours' names, tied tables that are turned, norms in lists of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")


Arrays = dict[str, Any]
BLOCKS, WIDTH, INNER = 6, 48, 96


def _told(path: Path, rule: str) -> list[Finding]:
    report = examine(path)
    assert not report.notes
    return [f for f in report.findings if f.severity is not Severity.INFO and f.rule == rule]


def _weights(seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    made: Arrays = {}
    for i in range(BLOCKS):
        for name, shape in (("up", (INNER, WIDTH)), ("down", (WIDTH, INNER))):
            made[f"h.{i}.{name}.weight"] = (rng.standard_normal(shape) * 0.1).astype("<f4")
            made[f"h.{i}.{name}.bias"] = (rng.standard_normal(shape[0]) * 0.02).astype("<f4")
    return made


def _squares(alike: bool = False) -> Arrays:
    """Mean squares of gradients: what comes back times what comes in, of each block its own, or of all the same."""
    made: Arrays = {}
    for i in range(BLOCKS):
        rng = np.random.default_rng(0 if alike else i)
        back, into, hidden = (rng.lognormal(0, 0.8, n) for n in (WIDTH, WIDTH, INNER))
        for name, rows, columns in (("up", hidden, into), ("down", back, hidden)):
            noise = np.random.default_rng(50 + i).lognormal(0, 0.3, (len(rows), len(columns)))
            made[f"h.{i}.{name}.weight"] = (1e-6 * np.outer(rows, columns) * noise).astype("<f4")
            made[f"h.{i}.{name}.bias"] = (1e-6 * rows * noise.mean(1)).astype("<f4")
    return made


def _shifted(squares: Arrays, name: str, by: int) -> Arrays:
    own = [squares[f"h.{i}.{name}"] for i in range(BLOCKS)]
    return {**squares, **{f"h.{i}.{name}": own[(i - by) % BLOCKS] for i in range(BLOCKS)}}


def _saved(form: str, folder: Path, squares: Arrays) -> Path:
    weights = _weights()
    means = {n: (np.sqrt(v) * np.random.default_rng(1).uniform(-0.3, 0.3, v.shape)).astype("<f4")
             for n, v in squares.items()}
    if form != "torch":
        flat = {f"optimizer.exp_avg.{n}": v for n, v in means.items()}
        return Path(planted.write(form, folder, weights | flat | {
            f"optimizer.exp_avg_sq.{n}": v for n, v in squares.items()}, "m"))
    state = {at: {"step": torch.tensor(500.0), "exp_avg": torch.tensor(means[n]),
                  "exp_avg_sq": torch.tensor(squares[n])} for at, n in enumerate(weights)}
    groups = [{"lr": 1e-3, "betas": (0.9, 0.999), "params": list(range(len(weights)))}]
    torch.save({"model": {n: torch.tensor(v) for n, v in weights.items()},
                "optimizer": {"state": state, "param_groups": groups}}, folder / "m.pt")
    return folder / "m.pt"


@pytest.mark.parametrize("form", ["torch", "safetensors", "npz"])
@pytest.mark.parametrize(("name", "by"), [("down.weight", 1), ("down.weight", 2), ("up.weight", -1)])
def test_moments_of_a_stack_that_are_shifted(name: str, by: int, form: str, tmp_path: Path) -> None:
    (finding,) = _told(_saved(form, tmp_path, _shifted(_squares(), name, by)), "W128")
    assert (finding.measured["kind"], finding.measured["blocks"]) == ("shifted", BLOCKS)
    assert abs(int(str(finding.measured["by"]))) == abs(by)
    assert f"h.*.{name}" in finding.statement


@pytest.mark.parametrize("form", ["torch", "safetensors"])
def test_moments_in_their_places(form: str, tmp_path: Path) -> None:
    assert _told(_saved(form, tmp_path, _squares()), "W128") == []


def test_blocks_whose_moments_are_alike(tmp_path: Path) -> None:
    assert _told(_saved("torch", tmp_path, _shifted(_squares(alike=True), "down.weight", 1)), "W128") == []


def test_moments_that_are_no_numbers(tmp_path: Path) -> None:
    squares = _squares()
    squares["h.2.down.weight"][3, 4] = np.nan
    report = examine(_saved("torch", tmp_path, squares))
    assert not report.notes
    assert not [f for f in report.findings if f.rule == "W128"]


def _tables(apart: float, turned: bool) -> Arrays:
    rng = np.random.default_rng(3)
    table = (rng.standard_normal((200, 24)) * rng.lognormal(0, 0.5, (200, 1)) * 0.1).astype("<f4")
    head = table + (apart * rng.standard_normal(table.shape) * np.abs(table)).astype("<f4")
    return {"embed.embedding": table, "head.kernel": np.ascontiguousarray(head.T) if turned else head}


@pytest.mark.parametrize("form", ["safetensors", "msgpack", "npz"])
@pytest.mark.parametrize("turned", [True, False])
def test_tied_tables_that_came_apart(turned: bool, form: str, tmp_path: Path) -> None:
    (finding,) = _told(planted.write(form, tmp_path, _tables(0.1, turned)), "W107")
    assert finding.measured["kind"] == "came-apart"


@pytest.mark.parametrize("form", ["safetensors", "npz"])
@pytest.mark.parametrize("copy", ["ema.", "average.", "teacher."])
def test_tied_tables_beside_their_average(copy: str, form: str, tmp_path: Path) -> None:
    now, before = _tables(0.0, True), _tables(0.0, True)
    before = {f"{copy}{n}": (v * 1.05 + 0.002).astype("<f4") for n, v in before.items()}
    assert _told(planted.write(form, tmp_path, now | before), "W107") == []


def _norms(factor: float = 1.0, which: tuple[int, ...] = ()) -> Arrays:
    """Convolutions first, then their norms, each in a list of its own."""
    rng = np.random.default_rng(1)
    kernels: Arrays = {}
    norms: Arrays = {}
    for i in range(5):
        weight = rng.standard_normal((24, 24 if i else 3, 3, 3)) * 0.08 * rng.lognormal(0, 0.4, (24, 1, 1, 1))
        squares = (weight**2).sum((1, 2, 3))
        times = factor if i in which else 1.0
        kernels[f"conv.{i}.weight"] = weight.astype("<f4")
        norms |= {f"bn.{i}.weight": (1 + rng.standard_normal(24) * 0.1).astype("<f4"),
                  f"bn.{i}.bias": (rng.standard_normal(24) * 0.1).astype("<f4"),
                  f"bn.{i}.running_mean": (rng.standard_normal(24) * np.sqrt(squares * times)).astype("<f4"),
                  f"bn.{i}.running_var": (squares * 0.5 * times * rng.lognormal(0, 0.1, 24)).astype("<f4")}
    return kernels | norms


def _of_flax(arrays: Arrays) -> Arrays:
    """The same in two parts: parameters, and statistics."""
    called = {"running_mean": "mean", "running_var": "var", "weight": "scale", "bias": "bias"}
    made: Arrays = {}
    for name, value in arrays.items():
        module, number, last = name.split(".")
        if module == "conv":
            made[f"params/conv_{number}/kernel"] = np.ascontiguousarray(value.transpose(2, 3, 1, 0))
        else:
            part = "batch_stats" if "running" in last else "params"
            made[f"{part}/bn_{number}/{called[last]}"] = value
    return made


@pytest.mark.parametrize("form", ["torch", "safetensors", "sharded", "npz", "msgpack"])
def test_norms_that_stand_apart_from_their_weights(form: str, tmp_path: Path) -> None:
    (tmp_path / "healthy").mkdir()
    (tmp_path / "faulty").mkdir()
    change = _of_flax if form == "msgpack" else dict
    assert _told(planted.write(form, tmp_path / "healthy", change(_norms())), "W108") == []
    (finding,) = _told(planted.write(form, tmp_path / "faulty", change(_norms(2000.0, (2,)))), "W108")
    assert finding.measured["kind"] == "scale"
    assert "2" in str(finding.measured["name"])


def test_rows_without_a_gradient_under_names_of_paths(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    table = (rng.standard_normal((300, 16)) * rng.lognormal(0, 0.4, (300, 1))).astype("<f4")
    squares = (rng.lognormal(0, 1, table.shape) * 1e-6).astype("<f4")
    squares[100:180] = 0
    means = (np.sqrt(squares) * rng.uniform(-0.3, 0.3, table.shape)).astype("<f4")
    path = planted.write("npz", tmp_path, {"wte/weight": table, "opt/m/wte/weight": means, "opt/v/wte/weight": squares})
    (finding,) = _told(path, "W120")
    assert (finding.measured["at"], finding.measured["rows"]) == (100, 80)


@pytest.mark.parametrize("other", [True, False])
def test_statistics_of_other_data_in_a_part_of_their_own(other: bool, tmp_path: Path) -> None:
    serialization = pytest.importorskip("flax.serialization")
    rng = np.random.default_rng(4)
    before = _of_flax(_norms())
    after = {n: (v * (1 + 0.01 * rng.standard_normal(v.shape))).astype("<f4") for n, v in before.items()}
    if other:
        after |= {n: (v * 9).astype("<f4") for n, v in after.items() if n.endswith("/var")}
        after |= {n: (v * 3 + 2).astype("<f4") for n, v in after.items() if n.endswith("/mean")}
    paths = []
    for step, arrays in ((100, before), (200, after)):
        tree: dict[str, Any] = {}
        for name, value in arrays.items():
            part, module, last = name.split("/")
            tree.setdefault(part, {}).setdefault(module, {})[last] = value
        paths.append(tmp_path / f"step_{step}.msgpack")
        paths[-1].write_bytes(serialization.msgpack_serialize(tree))
    told = [f for f in examine(paths[1], paths[0]).findings if f.rule == "W108" and f.severity is not Severity.INFO]
    assert [f.measured["kind"] for f in told] == ["other-data"] * other
