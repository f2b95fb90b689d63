"""A schedule far behind the run (W140), codes of few bits (W134), a table of another schedule (W148), and a series."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redundancy_planting as planting

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine, of_run
from traindx_tools.on_weights.noise_schedules import Schedule, betas

torch = pytest.importorskip("torch")
save_file = pytest.importorskip("safetensors.numpy").save_file
STEPS, PLANNED = 400, 600


def told(path: Path, rule: str) -> list[Finding]:
    report = examine(path)
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.rule == rule and f.severity is not Severity.INFO]


def rate(step: int) -> float:
    return float(2e-3 * 0.5 * (1 + np.cos(np.pi * step / PLANNED)))


def folder(home: Path, count: int, last: float, logged: bool = True, planned: int = PLANNED) -> Path:
    """What accelerate writes: weights, the optimizer at step 400, the schedule at `count` with the rate `last`."""
    home = home / f"checkpoint-{STEPS}"
    home.mkdir()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(4, 6)).pow(2).mean().backward()
        optimizer.step()
    save_file({n: t.numpy() for n, t in model.state_dict().items()}, home / "model.safetensors")
    torch.save(optimizer.state_dict(), home / "optimizer.bin")
    torch.save({"base_lrs": [2e-3], "last_epoch": count, "_step_count": count + 1, "_last_lr": [last],
                "lr_lambdas": [None]}, home / "scheduler.bin")
    state: dict[str, Any] = {"global_step": STEPS, "max_steps": planned}
    if logged:
        state["log_history"] = [{"step": s, "lr": rate(s), "loss": 1.0} for s in range(50, STEPS + 1, 50)]
    (home / "trainer_state.json").write_text(json.dumps(state))
    return home


@pytest.mark.parametrize("logged", [True, False])
def test_a_schedule_that_stands_at_an_early_step(logged: bool, tmp_path: Path) -> None:
    (found,) = told(folder(tmp_path, 41, rate(41), logged), "W140")
    assert (found.measured["kind"], found.measured["count"], found.measured["told"]) == ("behind", 41, STEPS)
    assert ("logged" in found.statement) is logged
    assert found.severity is Severity.HIGH


def test_files_of_one_state_are_read_together(tmp_path: Path) -> None:
    home = folder(tmp_path, 41, rate(41))
    files = [str(f) for f in sorted(home.iterdir())]
    assert [f.rule for f in of_run(files, beside=files).findings] == ["W140"]
    (home / "optimizer.bin").write_bytes((home / "optimizer.bin").read_bytes()[:500])
    assert "W140" not in [f.rule for f in of_run(files, beside=files).findings]


@pytest.mark.parametrize(("count", "last", "logged"), [
    (STEPS, rate(STEPS), True), (STEPS - 1, rate(STEPS - 1), True), (19, rate(STEPS), True), (19, rate(395), True),
    (19, 1.1e-3, False),
], ids=["healthy", "one behind", "by epochs", "by epochs, a little off", "by epochs, without a log"])
def test_a_schedule_that_goes_on(count: int, last: float, logged: bool, tmp_path: Path) -> None:
    assert not told(folder(tmp_path, count, last, logged), "W140")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"log_history": [1, {"step": "x", "lr": null}]}'])
def test_a_log_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    home = folder(tmp_path, 41, 1.234e-3)
    (home / "trainer_state.json").write_text(text)
    assert not told(home, "W140")


def in_bits(fault: str) -> dict[str, Any]:
    """Eight bits, and one matrix in four bits with the scales of eight, or with its own."""
    weights, name = planting.wide(), "blocks.2.down.weight"
    made = {n: t.numpy() for n, t in planting.in_eight_bits(weights).items()}
    most = weights[name].abs().amax(1, keepdim=True)
    if fault:
        made[name] = torch.round(weights[name] / most * 7).to(torch.int8).numpy()
    if fault == "its own":
        made[f"{name}_scale"] = (most / 7).flatten().numpy()
    if fault == "all":
        made = {n: (np.round(v / 127 * 7).astype(np.int8) if v.dtype == np.int8 else v) for n, v in made.items()}
    return made


@pytest.mark.parametrize(("fault", "count"), [("", 0), ("scales of eight", 1), ("its own", 0), ("all", 0)])
def test_codes_of_four_bits(fault: str, count: int, tmp_path: Path) -> None:
    save_file({n: np.ascontiguousarray(v) for n, v in in_bits(fault).items()}, tmp_path / "model.safetensors")
    found = [f for f in told(tmp_path / "model.safetensors", "W134") if f.measured["kind"] == "range"]
    assert [f.measured["name"] for f in found] == ["blocks.2.down.weight"] * count


def test_codes_that_are_all_zero(tmp_path: Path) -> None:
    made = {n: (np.zeros_like(v) if v.dtype == np.int8 else np.ascontiguousarray(v)) for n, v in in_bits("").items()}
    save_file(made, tmp_path / "model.safetensors")
    assert not told(tmp_path / "model.safetensors", "W134")


def tables(beta: Any) -> dict[str, Any]:
    bar = np.cumprod(1 - beta)
    return {"betas": beta, "alphas_cumprod": bar, "sqrt_alphas_cumprod": np.sqrt(bar),
            "sqrt_one_minus_alphas_cumprod": np.sqrt(1 - bar)}


COSINE, LINEAR = betas(Schedule("cosine", 0, 0, 200)), betas(Schedule("linear", 1e-4, 0.02, 200))


def sampler(home: Path, made: dict[str, Any], config: dict[str, Any]) -> Path:
    rng = np.random.default_rng(0)
    weights = {f"params/{k}/weight": rng.normal(0, 0.2, (24, 24)).astype(np.float32) for k in range(3)}
    np.savez(home / "ema.npz", **weights, **{f"schedule/{n}": np.asarray(t, np.float32) for n, t in made.items()})
    (home / "config.json").write_text(json.dumps(config))
    return home / "ema.npz"


@pytest.mark.parametrize("config", [{"beta_schedule": "cosine", "beta_max": 0.999, "timesteps": 200}, {}])
@pytest.mark.parametrize("name", ["alphas_cumprod", "sqrt_alphas_cumprod"])
def test_one_table_of_another_schedule(name: str, config: dict[str, Any], tmp_path: Path) -> None:
    made = tables(COSINE) | {name: tables(LINEAR)[name]}
    (found,) = told(sampler(tmp_path, made, config), "W148")
    assert found.measured["name"] == f"schedule/{name}"


def rescaled() -> dict[str, Any]:
    """Without signal at the last step, as all tables but the betas say."""
    root = np.sqrt(np.cumprod(1 - LINEAR))
    bar = ((root - root[-1]) * root[0] / (root[0] - root[-1]) * 0.9999 + 1e-4) ** 2
    return tables(LINEAR) | {k: v for k, v in tables(1 - bar / np.append(1, bar[:-1])).items() if k != "betas"}


@pytest.mark.parametrize("made", [
    lambda: tables(COSINE), lambda: tables(LINEAR), rescaled,
    lambda: {n: t.astype(np.float16) for n, t in tables(LINEAR).items()},
    lambda: tables(COSINE) | {"alphas_cumprod": np.full(200, np.nan)},
    lambda: {"betas": COSINE, "alphas_cumprod": np.cumprod(1 - LINEAR)},
], ids=["cosine", "linear", "rescaled", "half", "not numbers", "two"])
def test_tables_that_agree_or_tell_nothing(made: Callable[[], dict[str, Any]], tmp_path: Path) -> None:
    assert not told(sampler(tmp_path, made(), {}), "W148")


def network(seed: int, steps: int, factor: float = 1.0) -> dict[str, Any]:
    """Three normalised layers that move a little each step; the statistics of the first are of other features."""
    made: dict[str, Any] = {}
    for k in range(3):
        start, on = np.random.default_rng(seed + k), np.random.default_rng(100 * steps + k)
        w = start.normal(0, 0.2, (32, 32)) + 0.002 * steps * on.normal(0, 0.2, (32, 32))
        size, times = (w**2).sum(axis=1), factor if k == 0 else 1.0
        made |= {f"layers.{k}.weight": w, f"norm_{k}.weight": start.uniform(0.8, 1.2, 32),
                 f"norm_{k}.bias": start.normal(0, 0.1, 32), f"norm_{k}.running_mean": 0.3 * times * np.sqrt(size),
                 f"norm_{k}.running_var": times**2 * size}
    return {n: np.asarray(v, np.float32) for n, v in made.items()}


@pytest.mark.parametrize(("names", "seed", "factor", "count"), [
    (("asr_07", "asr_08"), 0, 4.34, 1), (("asr_09", "asr_10"), 0, 4.34, 1), (("asr_07", "asr_08"), 0, 1.0, 0),
    (("asr_07", "asr_08"), 50, 4.34, 0), (("client_07", "client_08"), 0, 4.34, 0),
], ids=["a series", "of two digits", "healthy", "of another seed", "of two clients"])
def test_the_last_of_a_series_without_a_word_for_steps(names: tuple[str, str], seed: int, factor: float, count: int,
                                                      tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.safetensors" for n in names]
    save_file(network(0, 7), files[0])
    save_file(network(seed, 8, factor), files[1])
    found = [f for f in of_run([str(f) for f in files]).findings if f.measured.get("kind") == "other-data"]
    assert [f.measured["name"] for f in found] == ["norm_0"] * count
