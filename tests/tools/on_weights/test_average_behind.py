"""An average beside its weights of which a part was never updated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine, of_run

serialization = pytest.importorskip("flax.serialization")
torch = pytest.importorskip("torch")
Weights = dict[str, np.ndarray]
MODULES = ("encoder", "decoder", "head")


def begun(seed: int = 0) -> Weights:
    rng = np.random.default_rng(seed)
    made: Weights = {}
    for module in MODULES:
        for k, (rows, columns) in enumerate(((32, 64), (64, 64), (64, 32))):
            made[f"{module}.fc{k}.kernel"] = (rng.normal(size=(rows, columns)) * rows**-0.5).astype(np.float32)
            made[f"{module}.fc{k}.bias"] = np.zeros(columns, np.float32)
    return made


def trained(weights: Weights, far: float = 0.5, seed: int = 1) -> Weights:
    """Moved along few directions, as training does."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, w in weights.items():
        if w.ndim == 1:
            made[name] = (w + 0.1 * far * rng.normal(size=w.shape)).astype(np.float32)
        else:
            step = rng.standard_t(3, (w.shape[0], 2)) @ rng.standard_t(3, (2, w.shape[1]))
            made[name] = (w + far * step * w.std() / step.std()).astype(np.float32)
    return made


def near(weights: Weights, first: Weights, share: float = 0.02) -> Weights:
    """An average that follows: what is left of the beginning is small."""
    return {n: (w + share * (first[n] - w)).astype(np.float32) for n, w in weights.items()}


def flax_file(path: Path, **parts: Weights) -> Path:
    trees: dict[str, Any] = {"step": 1500}
    for key, weights in parts.items():
        for name, w in weights.items():
            module, layer, kind = name.split(".")
            trees.setdefault(key, {}).setdefault(module, {}).setdefault(layer, {})[kind] = w
    path.write_bytes(serialization.msgpack_serialize(trees))
    return path


def torch_file(path: Path, **parts: Weights) -> Path:
    torch.save({"step": 1500, **{k: {n: torch.from_numpy(w.T.copy()) for n, w in v.items()} for k, v in parts.items()}},
               path)
    return path


def told(path: Path) -> list[Finding]:
    report = examine(path)
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.rule == "W141"]


@pytest.mark.parametrize(("write", "name"), [(flax_file, "s.msgpack"), (torch_file, "s.pt")])
@pytest.mark.parametrize("key", ["ema_params", "ema", "target_params"])
def test_a_part_that_still_is_at_its_initialiser(write: Any, name: str, key: str, tmp_path: Path) -> None:
    first = begun()
    weights = trained(first)
    average = near(weights, first)
    assert told(write(tmp_path / f"a{name}", params=weights, **{key: average})) == []
    average |= {n: w for n, w in first.items() if n.startswith("decoder.")}
    (found,) = told(write(tmp_path / f"b{name}", params=weights, **{key: average}))
    assert found.measured["kind"] == "unmoved"
    assert found.measured["modules"] == ("decoder",)
    assert "decoder was never updated" in found.statement


def test_an_average_that_was_never_updated_and_a_target_that_may_be_young(tmp_path: Path) -> None:
    first = begun()
    weights = trained(first)
    (found,) = told(flax_file(tmp_path / "a.msgpack", params=weights, ema=first))
    assert (found.measured["kind"], found.severity) == ("all-unmoved", Severity.MEDIUM)
    assert told(flax_file(tmp_path / "b.msgpack", params=weights, target=first)) == []
    assert told(flax_file(tmp_path / "c.msgpack", params=first, ema=first)) == []


def test_a_part_that_is_far_and_one_that_is_frozen(tmp_path: Path) -> None:
    first = begun()
    weights = trained(first)
    other = trained(begun(7), seed=8)
    far = near(weights, first) | {n: w for n, w in other.items() if n.startswith("head.")}
    (found,) = told(flax_file(tmp_path / "a.msgpack", params=weights, ema=far))
    assert (found.measured["kind"], found.measured["modules"]) == ("far", ("head",))
    frozen = {n: first[n] if n.startswith("encoder.") else w for n, w in weights.items()}
    assert told(flax_file(tmp_path / "b.msgpack", params=frozen, ema=near(frozen, first))) == []
    late = near(weights, first) | {n: w for n, w in near(weights, first, 0.15).items() if n.startswith("head.")}
    assert told(flax_file(tmp_path / "c.msgpack", params=weights, ema=late)) == []  # rates of their own


def test_an_average_with_values_that_are_not_finite_or_of_another_model(tmp_path: Path) -> None:
    first = begun()
    weights = trained(first)
    broken = near(weights, first) | {n: np.full_like(w, np.nan) for n, w in first.items() if n.startswith("head.")}
    assert told(flax_file(tmp_path / "a.msgpack", params=weights, ema=broken)) == []
    other = {"a.b.kernel": np.ones((3, 3), np.float32)}
    assert told(flax_file(tmp_path / "b.msgpack", params=weights, ema=other)) == []


def test_a_part_of_an_average_that_stood_still_between_two_files(tmp_path: Path) -> None:
    first = begun()
    one, two = trained(first), trained(trained(first), 0.2, 5)
    old, new = near(one, first), near(two, one)
    for still, name in ((True, "a"), (False, "b")):
        home = tmp_path / name
        home.mkdir()
        flax_file(home / "step_300.msgpack", params=one, ema=old)
        kept = {n: old[n] if still and n.startswith("decoder.") else w for n, w in new.items()}
        flax_file(home / "step_600.msgpack", params=two, ema=kept)
        found = [f for f in of_run(map(str, home.iterdir())).findings if f.rule == "W122"]
        assert [f.measured["name"] for f in found] == (["ema.decoder"] if still else [])
