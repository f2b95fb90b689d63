"""Two files of one run: what should follow the model and did not is named by its place in the file (W122)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")
nn = torch.nn


Change = Callable[[dict[str, Any], dict[str, Any]], None]


def _run(frozen: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """The checkpoint of a run after ten steps and after twenty, with an average."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(12, 12), nn.Tanh()) for _ in range(5)), nn.Linear(12, 3))
    if frozen:
        model[:2].requires_grad_(False)
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    made = []
    for step in range(1, 21):
        optimizer.zero_grad()
        (model(torch.randn(8, 12)) - 1).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            for a, b in zip(average.parameters(), model.parameters(), strict=True):
                a.lerp_(b, 0.1)
        if step % 10 == 0:
            made.append(copy.deepcopy({"model": model.state_dict(), "ema": average.state_dict(), "global_step": step,
                                       "optimizer": optimizer.state_dict(), "scheduler": schedule.state_dict()}))
    return made[0], made[1]


def _found(one: Path, other: Path) -> list[Any]:
    seen = examine(one, other)
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.rule == "W122"]


def _saved(folder: Path, pair: tuple[dict[str, Any], dict[str, Any]]) -> tuple[Path, Path]:
    files = folder / "step10.pt", folder / "step20.pt"
    for file, made in zip(files, pair, strict=True):
        torch.save(made, file)
    return files


def _same(*keys: str) -> Change:
    def change(a: dict[str, Any], b: dict[str, Any]) -> None:
        for key in keys:
            b[key] = a[key]
    return change


def _one_moment(a: dict[str, Any], b: dict[str, Any]) -> None:
    for key, state in b["optimizer"]["state"].items():
        state["exp_avg_sq"] = a["optimizer"]["state"][key]["exp_avg_sq"]


def _renamed(name: str) -> Change:
    def change(a: dict[str, Any], b: dict[str, Any]) -> None:
        a[name] = b[name] = a.pop("ema")
        del b["ema"]
    return change


@pytest.mark.parametrize(("change", "named", "kind"), [
    (_same("ema"), "ema", "average"), (_same("optimizer"), "optimizer", "moments"),
    (_one_moment, "optimizer.exp_avg_sq", "moments"), (_renamed("target_net"), "target_net", "target"),
    (_same("scheduler"), "scheduler.last_epoch", "schedule")])  # fmt: skip
def test_a_part_that_did_not_follow(change: Change, named: str, kind: str, tmp_path: Path) -> None:
    pair = _run()
    change(*pair)
    (found,) = _found(*_saved(tmp_path, pair))
    assert (found.measured["name"], found.measured["kind"]) == (named, kind)
    if kind == "average":
        assert "ema is the same to the bit in both files (12 tensors) while 12 of 12 tensors" in found.statement


def _average_of_frozen(a: dict[str, Any], b: dict[str, Any]) -> None:
    for key in [k for k in b["ema"] if k.startswith(("0.", "1."))]:
        b["ema"][key], b["model"][key] = a["ema"][key], a["model"][key]


@pytest.mark.parametrize(("change", "frozen"), [
    (lambda a, b: None, False), (lambda a, b: None, True), (_average_of_frozen, False), (_renamed("teacher"), False),
    (_renamed("reference_model"), False), (_same("model"), False),
    (_same("model", "ema", "optimizer", "scheduler"), False)])  # fmt: skip
def test_what_follows_or_is_kept_on_purpose(change: Change, frozen: bool, tmp_path: Path) -> None:
    pair = _run(frozen)
    change(*pair)
    assert _found(*_saved(tmp_path, pair)) == []


def _trees(form: str, still: str) -> tuple[Any, Any]:
    """A flat file with an average and moments beside the model, as flax keeps them."""
    rng = np.random.default_rng(3)
    model = planted.stack(2, 16, vocab=40)
    heads = {"params": model, "ema_params": model, "opt_state.0.mu": model, "opt_state.0.nu": model}
    pair = []
    for _ in range(2):
        flat = {f"{h}.{n}": (w * (1 + 0.02 * rng.standard_normal(w.shape))).astype(np.float32)
                for h, tensors in heads.items() for n, w in tensors.items()}
        pair.append(flat)
    pair[1] |= {n: pair[0][n] for n in pair[0] if n.startswith(f"{still}.")}
    return pair[0], pair[1]


@pytest.mark.parametrize("form", ["safetensors", "npz"])
@pytest.mark.parametrize(("still", "told"), [("ema_params", "ema_params"), ("opt_state", "opt_state"),
                                             ("opt_state.0.nu", "opt_state.0.nu"), ("none", ""),
                                             ("ema_params.h.0", "ema_params.h.0"), ("opt_state.0.mu.h.0", "")])
def test_branches_of_a_flat_file(form: str, still: str, told: str, tmp_path: Path) -> None:
    one, other = (planted.write(form, tmp_path, a, n) for a, n in zip(_trees(form, still), ("a", "b"), strict=True))
    assert [f.measured["name"] for f in _found(one, other)] == [told] * bool(told)


def test_an_optimizer_whose_network_stood_still(tmp_path: Path) -> None:
    """Two networks that are trained in turn, of which one waited."""
    pair = []
    rng = np.random.default_rng(0)
    still = {f"{i}.weight": torch.randn(5, 7) for i in range(4)}
    for _ in range(2):
        moved = {f"{i}.weight": torch.from_numpy(rng.standard_normal((6, 8))) for i in range(9)}
        state = {i: {"exp_avg": torch.full((5, 7), 0.1 + i)} for i in range(4)}
        pair.append({"generator": moved, "critic": still,
                     "optimizer_c": {"state": state, "param_groups": [{"params": [0, 1, 2, 3]}]}})
    assert _found(*_saved(tmp_path, (pair[0], pair[1]))) == []


def test_a_second_file_that_is_cut(tmp_path: Path) -> None:
    one, other = _saved(tmp_path, _run())
    other.write_bytes(other.read_bytes()[:2000])
    with pytest.raises(UnreadableInput):
        examine(one, other)
