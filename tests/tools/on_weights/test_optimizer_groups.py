"""Groups of an optimizer that do not suit what they hold are told; the usual groups and schedules are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")
nn = torch.nn
Checkpoint = dict[str, Any]


def _model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 24), nn.LayerNorm(24), nn.Linear(24, 20), nn.LayerNorm(20), nn.Linear(20, 3))


def _checkpoint(schedule: Callable[[Any], Any] | None = None, named: bool = False, steps: int = 6, **decays: float
                ) -> Checkpoint:
    model = _model()
    decays = {"matrices": 0.1, "vectors": 0.0} | decays
    members = {"matrices": [(n, p) for n, p in model.named_parameters() if p.ndim > 1],
               "vectors": [(n, p) for n, p in model.named_parameters() if p.ndim < 2]}
    groups = [{"params": [p for _, p in members[k]], "weight_decay": d, **(
        {"param_names": [n for n, _ in members[k]]} if named else {})} for k, d in decays.items()]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    plan = (schedule or (lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.99)))(optimizer)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(torch.randn(8, 16)) - 1).pow(2).mean().backward()
        optimizer.step()
        plan.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": plan.state_dict()}


def _kinds(folder: Path, checkpoint: Checkpoint) -> list[str]:
    torch.save(checkpoint, folder / "c.pt")
    seen = examine(folder / "c.pt")
    assert not [n for n in seen.notes if "failed" in n]
    return [f.measured["kind"] for f in seen.findings if f.rule == "W125" and f.severity is not Severity.INFO]


@pytest.mark.parametrize("named", [True, False])
def test_decay_on_vectors_and_none_on_matrices(named: bool, tmp_path: Path) -> None:
    assert _kinds(tmp_path, _checkpoint(named=named, matrices=0.0, vectors=0.1)) == ["exchanged"]


def _rate_of_one(c: Checkpoint) -> None:
    c["optimizer"]["param_groups"][1]["lr"] *= 1000


def _a_tenth(c: Checkpoint) -> None:
    c["optimizer"]["param_groups"][0]["lr"] /= 10


def _betas(c: Checkpoint) -> None:
    for group in c["optimizer"]["param_groups"]:
        group["betas"] = (0.999, 0.9)


def _eps(c: Checkpoint) -> None:
    c["optimizer"]["param_groups"][0]["eps"] = 100.0


def _empty(c: Checkpoint) -> None:
    group = dict(c["optimizer"]["param_groups"][0])
    c["optimizer"]["param_groups"].append(group | {"params": [], "lr": 5e-2, "initial_lr": 5e-2})


def _bias_behind(c: Checkpoint) -> None:
    model = _model()
    keys = [k for g in c["optimizer"]["param_groups"] for k in g["params"]]
    order = [n for n, p in model.named_parameters() if p.ndim > 1] + [
        n for n, p in model.named_parameters() if p.ndim < 2]
    first = dict(c["optimizer"]["param_groups"][0])
    c["optimizer"]["param_groups"] = [first | {"params": keys, "param_names": order}]
    c["optimizer"]["state"][keys[order.index("2.bias")]]["step"] = torch.tensor(2.0)


@pytest.mark.parametrize(("fault", "kind"), [(_rate_of_one, "rate"), (_a_tenth, "rate"), (_betas, "range"),
                                             (_eps, "range"), (_empty, "empty"), (_bias_behind, "steps")])
def test_settings_that_do_not_suit(fault: Callable[[Checkpoint], None], kind: str, tmp_path: Path) -> None:
    made = _checkpoint()
    fault(made)
    assert _kinds(tmp_path, made) == [kind]


def _two_rates(optimizer: Any) -> Any:
    """A cosine down to one lowest rate: the shares of groups of several rates differ a hundredfold."""
    optimizer.param_groups[1]["lr"] = 1e-5
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6, eta_min=1e-6)


def _one_cycle(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, [1e-2, 1e-3], total_steps=10)


@pytest.mark.parametrize("options", [
    {}, {"named": True}, {"matrices": 0.1, "vectors": 0.1}, {"matrices": 0.0, "vectors": 0.0},
    {"schedule": _two_rates}, {"schedule": _one_cycle}, {"steps": 0},
])  # fmt: skip
def test_usual_groups_are_left_alone(options: dict[str, Any], tmp_path: Path) -> None:
    assert _kinds(tmp_path, _checkpoint(**options)) == []


def _no_biases(c: Checkpoint) -> None:
    c["optimizer"]["param_groups"].append(dict(c["optimizer"]["param_groups"][1]) | {"params": []})


def _broken(c: Checkpoint) -> None:
    c["optimizer"]["param_groups"][0] |= {"lr": "fast", "betas": (None, 2), "weight_decay": None, "eps": "small"}
    c["optimizer"]["param_groups"].append({"params": None})


@pytest.mark.parametrize("change", [_no_biases, _broken])
def test_an_empty_group_without_its_own_rate_and_settings_that_are_none(change: Callable[[Checkpoint], None],
                                                                        tmp_path: Path) -> None:
    made = _checkpoint()
    change(made)
    assert _kinds(tmp_path, made) == []


@pytest.mark.parametrize("exchanged", [True, False])
def test_labels_of_a_tree(exchanged: bool, tmp_path: Path) -> None:
    """optax.multi_transform keeps the moments of each label under its name."""
    serialization = pytest.importorskip("flax.serialization")
    rng = np.random.default_rng(0)
    matrices = {f"layer_{i}": {"kernel": rng.standard_normal((16, 24)).astype(np.float32)} for i in range(4)}
    vectors = {n: {"bias": rng.standard_normal(24).astype(np.float32)} for n in matrices}
    held = (vectors, matrices) if exchanged else (matrices, vectors)
    inner = {label: {"inner_state": {"0": {"mu": own, "nu": {n: {k: v**2 for k, v in d.items()}
                                                             for n, d in own.items()}}}}
             for label, own in zip(("decay", "no_decay"), held, strict=True)}
    tree = {"params": {n: matrices[n] | vectors[n] for n in matrices}, "opt_state": {"inner_states": inner}}
    (tmp_path / "c.msgpack").write_bytes(serialization.msgpack_serialize(tree))
    found = [f.measured["kind"] for f in examine(tmp_path / "c.msgpack").findings if f.rule == "W125"]
    assert found == ["exchanged"] * exchanged
