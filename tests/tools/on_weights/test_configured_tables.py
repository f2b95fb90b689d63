"""Tables that follow from a configuration: those of another setting, with wrong rows, and all the usual variants."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted
from safetensors.numpy import save_file

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

AUDIO = {"sample_rate": 16000, "n_fft": 512, "n_mels": 64, "fmin": 50, "fmax": 7600}
NOISE = {"beta_schedule": "linear", "beta_start": 1e-4, "beta_end": 0.02, "num_train_timesteps": 1000}


def _model() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {f"net.{i}.weight": (rng.standard_normal((24, 24)) * rng.lognormal(0, 0.3, (24, 1)) * 0.2).astype("<f4")
            for i in range(3)} | {"net.0.bias": (rng.standard_normal(24) * 0.1).astype("<f4")}


def _told(folder: Path, tables: dict[str, Any], config: Any, form: str = "safetensors", name: str = "config.json"
          ) -> list[Finding]:
    arrays = _model() | {n: np.ascontiguousarray(t, t.dtype if t.dtype.kind == "i" else "<f4")
                         for n, t in tables.items()}
    path = planted.write(form, folder, arrays, "m")
    (path.parent / name).write_text(config if isinstance(config, str) else json.dumps(config))
    report = examine(path)
    assert not report.notes
    return [f for f in report.findings if f.severity is not Severity.INFO and f.rule in ("W148", "W113")]


def _hz(mel: Any, slaney: bool) -> Any:
    if not slaney:
        return 700 * (10 ** (mel / 2595) - 1)
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)))


def _mel(hz: float, slaney: bool) -> float:
    if not slaney:
        return 2595 * math.log10(1 + hz / 700)
    return hz * 3 / 200 if hz < 1000 else 15 + 27 * math.log(hz / 1000) / math.log(6.4)


def _filters(rate: float = 16000, n_fft: int = 512, count: int = 64, low: float = 50, high: float = 7600,
             slaney: bool = True, area: bool = True) -> Any:
    """As librosa has them, filters first."""
    edges = _hz(np.linspace(_mel(low, slaney), _mel(high, slaney), count + 2), slaney)
    hz = np.linspace(0, rate / 2, n_fft // 2 + 1)
    rows = []
    for a, b, c in zip(edges, edges[1:], edges[2:], strict=False):
        rows.append(np.maximum(0, np.minimum((hz - a) / (b - a), (c - hz) / (c - b))) * (2 / (c - a) if area else 1))
    return np.array(rows)


@pytest.mark.parametrize("form", ["safetensors", "torch", "npz"])
@pytest.mark.parametrize(("other", "setting", "found"), [
    ({"rate": 22050}, "sample_rate", "22050"), ({"high": 8000}, "f_max", "8000"), ({"low": 0}, "f_min", "0"),
    ({"n_fft": 1024}, "n_fft", "1024")])
@pytest.mark.parametrize(("slaney", "area"), [(True, True), (False, False)])
def test_mel_filters_of_another_setting(other: dict[str, Any], setting: str, found: str, slaney: bool, area: bool,
                                        form: str, tmp_path: Path) -> None:
    table = _filters(**other, slaney=slaney, area=area).T
    (finding,) = _told(tmp_path, {"front.fb": table}, AUDIO, form)
    assert (finding.rule, finding.measured["setting"], finding.measured["found"]) == ("W148", setting, found)


@pytest.mark.parametrize("config", [
    {"sampling_rate": 16000, "fft_length": 512}, {"audio": {"sr": 16000, "f_max": 7600.0}},
    {"feature": {"sample-rate": 16000, "low_freq": 50, "high_freq": 7600, "num_mel_bins": 64}}])
def test_settings_under_other_names(config: Any, tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, {"fb": _filters(22050)}, config, name="preprocessor_config.json")
    assert finding.measured["setting"] == "sample_rate"
    assert _told(tmp_path, {"fb": _filters()}, config, name="preprocessor_config.json") == []


def test_settings_in_yaml(tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, {"fb": _filters(24000)}, "data:\n  sample_rate: 16000\n  fmax: 7600\n",
                       name="train.yaml")
    assert (finding.measured["setting"], finding.measured["found"]) == ("sample_rate", "24000")


def test_filters_in_another_order(tmp_path: Path) -> None:
    table = _filters()
    table[[10, 20, 30]] = table[[20, 30, 10]]
    (finding,) = _told(tmp_path, {"fb": table}, AUDIO)
    assert (finding.measured["kind"], finding.measured["rows"]) == ("mel", 3)


@pytest.mark.parametrize("slaney", [True, False])
@pytest.mark.parametrize("area", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_filters_of_every_library(slaney: bool, area: bool, turned: bool, tmp_path: Path) -> None:
    table = _filters(slaney=slaney, area=area)
    assert _told(tmp_path, {"fb": table.T if turned else table}, AUDIO) == []


@pytest.mark.parametrize("config", [{}, {"sample_rate": 16000}, {"n_fft": 512},
                                    {"a": {"sr": 16000}, "b": {"sr": 8000}}])
def test_settings_that_are_left_open(config: Any, tmp_path: Path) -> None:
    assert _told(tmp_path, {"fb": _filters(high=7000, low=20)}, config) == []


def test_filters_that_were_trained(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    assert _told(tmp_path, {"fb": _filters(22050) * rng.lognormal(0, 0.3, (64, 257))}, AUDIO) == []


def _window(size: int, kind: str) -> Any:
    turn = 2 * np.pi * np.arange(size) / size
    return 0.5 - 0.5 * np.cos(turn) if kind == "hann" else 0.54 - 0.46 * np.cos(turn)


def test_windows(tmp_path: Path) -> None:
    config = {**AUDIO, "window": "hann", "win_length": 400}
    (kind,) = _told(tmp_path, {"window": _window(400, "hamming")}, config)
    assert (kind.measured["setting"], kind.measured["found"]) == ("the window", "hamming")
    (size,) = _told(tmp_path, {"window": _window(512, "hann")}, config)
    assert (size.measured["setting"], size.measured["found"]) == ("win_length", "512")
    for sound in (_window(400, "hann"), np.pad(_window(400, "hann"), 56), np.hanning(400)):
        assert _told(tmp_path, {"window": sound}, config) == []
    assert _told(tmp_path, {"window": _window(400, "hann")}, {**config, "win_length": 0.025}) == []
    assert _told(tmp_path, {"window": _window(400, "hamming")}, {"window": "hann"}) == []


def test_cosine_transforms(tmp_path: Path) -> None:
    def dct(rows: int, of: int) -> Any:
        made = np.cos(np.pi / of * (np.arange(of) + 0.5) * np.arange(rows)[:, None]) * math.sqrt(2 / of)
        made[0] /= math.sqrt(2)
        return made
    assert _told(tmp_path, {"dct": dct(20, 64).T}, AUDIO) == []
    (cut,) = _told(tmp_path, {"dct": dct(20, 80)[:, :64]}, AUDIO)
    assert (cut.measured["kind"], cut.measured["found"]) == ("dct", "80")
    wrong = dct(20, 64)
    wrong[[5, 6]] = wrong[[6, 5]]
    (rows,) = _told(tmp_path, {"dct": wrong}, AUDIO)
    assert rows.measured["rows"] == 2


def _betas(form: str, start: float = 1e-4, end: float = 0.02, steps: int = 1000) -> Any:
    if form == "cosine":
        bar = np.cos((np.arange(steps + 1) / steps + 0.008) / 1.008 * np.pi / 2) ** 2
        return np.minimum(1 - bar[1:] / bar[:-1], 0.999)
    return np.linspace(start**0.5, end**0.5, steps) ** 2 if form == "scaled" else np.linspace(start, end, steps)


@pytest.mark.parametrize("form", ["safetensors", "torch", "npz"])
@pytest.mark.parametrize(("beta", "setting", "found"), [
    (_betas("cosine"), "beta_schedule", "cosine"), (_betas("scaled"), "beta_schedule", "scaled linear"),
    (_betas("linear", end=0.012), "beta_end", "0.012"), (_betas("linear", 8.5e-4), "beta_start", "0.00085"),
    (_betas("linear", steps=4000)[:1000], "the number of steps", "4000")])
def test_noise_of_another_schedule(beta: Any, setting: str, found: str, form: str, tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, {"alphas_cumprod": np.cumprod(1 - beta)}, NOISE, form)
    assert (finding.measured["setting"], finding.measured["found"]) == (setting, found)


def test_noise_with_wrong_steps(tmp_path: Path) -> None:
    bar = np.cumprod(1 - _betas("linear"))
    bar[300:420] = bar[100:220]
    (finding,) = _told(tmp_path, {"alphas_cumprod": bar}, NOISE)
    assert (finding.measured["kind"], finding.measured["rows"]) == ("noise", 120)


@pytest.mark.parametrize("config", [NOISE, {"beta_schedule": "linear"}, {"diffusion_steps": 1000}])
def test_noise_as_it_is_told(config: Any, tmp_path: Path) -> None:
    beta = _betas("linear")
    bar = np.cumprod(1 - beta)
    before = np.append(1, bar[:-1])
    tables = {"betas": beta, "alphas_cumprod": bar, "alphas_cumprod_prev": before, "a": np.sqrt(bar),
              "b": np.sqrt(1 - bar), "c": np.log(1 - bar), "d": np.sqrt(1 / bar - 1),
              "variance": beta * (1 - before) / (1 - bar)}
    assert _told(tmp_path, tables, config) == []
    assert _told(tmp_path, {"betas": np.sort(np.random.default_rng(0).uniform(0, 0.02, 1000))}, config) == []


@pytest.mark.parametrize("wrong", ["", "posterior_mean_coef1", "posterior_variance"])
def test_tables_of_the_step_back(wrong: str, tmp_path: Path) -> None:
    """One of them was made with the product of this step where that of the step before belongs."""
    beta = np.linspace(5e-4, 0.1, 200)
    bar = np.cumprod(1 - beta)
    before = np.append(1, bar[:-1])
    tables = {
        "betas": beta, "alphas_cumprod": bar, "alphas_cumprod_prev": before, "sqrt_alphas_cumprod": np.sqrt(bar),
        "sqrt_one_minus_alphas_cumprod": np.sqrt(1 - bar), "sqrt_recip_alphas": np.sqrt(1 / (1 - beta)),
        "posterior_variance": beta * (1 - before) / (1 - bar),
        "posterior_log_variance_clipped": np.log(np.maximum(beta * (1 - before) / (1 - bar), 1e-20)),
        "posterior_mean_coef1": beta * np.sqrt(before) / (1 - bar),
        "posterior_mean_coef2": (1 - before) * np.sqrt(1 - beta) / (1 - bar)}
    if wrong == "posterior_mean_coef1":
        tables[wrong] = beta * np.sqrt(bar) / (1 - bar)
    if wrong == "posterior_variance":
        tables[wrong] = beta * 1.0
    assert [f.measured["name"] for f in _told(tmp_path, tables, {})] == ([wrong] if wrong else [])


def test_positions_of_another_base(tmp_path: Path) -> None:
    def cosines(base: float) -> Any:
        return np.cos(np.arange(256)[:, None] * base ** (-np.arange(16) / 16))
    (finding,) = _told(tmp_path, {"rotary.cos": cosines(1e4)}, {"rope_theta": 500000.0})
    assert (finding.measured["kind"], finding.measured["found"]) == ("positions", "10000")
    for base, config in ((5e5, {"rope_theta": 500000.0}), (1e4, {}), (5e5, {})):
        assert _told(tmp_path, {"rotary.cos": cosines(base)}, config) == []


def test_slopes(tmp_path: Path) -> None:
    slopes = 2.0 ** -np.arange(1, 9)
    assert _told(tmp_path, {"alibi": slopes}, {"n_heads": 8}) == []
    (finding,) = _told(tmp_path, {"alibi": 2.0 ** (-np.arange(1, 9) / 2)}, {"n_heads": 8})
    assert (finding.measured["kind"], finding.measured["found"]) == ("slopes", "16")
    assert _told(tmp_path, {"alibi": 2.0 ** (-np.arange(1, 9) / 2)}, {"n_heads": 16}) == []  # a half on each rank
    (rows,) = _told(tmp_path, {"alibi": slopes[[0, 1, 3, 2, 4, 5, 6, 7]]}, {"n_heads": 8})
    assert rows.measured["rows"] == 2


def test_supports_and_buckets(tmp_path: Path) -> None:
    config = {"v_min": -10, "v_max": 10, "num_buckets": 32, "max_distance": 128}
    (finding,) = _told(tmp_path, {"atoms": np.linspace(-10, 200, 51)}, config)
    assert (finding.measured["setting"], finding.measured["found"]) == ("v_max", "200")
    assert _told(tmp_path, {"atoms": np.linspace(-10, 10, 51)}, config) == []

    def table(far: int) -> Any:
        place = np.arange(96)[None] - np.arange(96)[:, None]
        size = np.abs(place)
        log = 8 + (np.log(np.maximum(size, 1) / 8) / np.log(far / 8) * 8).astype(int)
        return ((place > 0) * 16 + np.where(size < 8, size, np.minimum(log, 15))).astype("<i8")
    assert _told(tmp_path, {"bucket": table(128)}, config) == []
    (finding,) = _told(tmp_path, {"bucket": table(64)}, config)
    assert (finding.measured["setting"], finding.measured["found"]) == ("the largest distance", "64")


def test_weights_of_classes(tmp_path: Path) -> None:
    counts = np.array([900.0, 40, 310, 77, 12, 260])
    config = {"class_counts": [int(n) for n in counts]}
    log = np.log(counts / counts.sum())
    assert _told(tmp_path, {"log_prior": log, "weights": counts.mean() / counts}, config) == []
    (finding,) = _told(tmp_path, {"log_prior": log[[0, 2, 1, 3, 4, 5]]}, config)
    assert (finding.measured["kind"], finding.measured["rows"]) == ("listed", 2)
    assert _told(tmp_path, {"log_prior": log + 0.1}, config) == []


@pytest.mark.parametrize("config", ["{", "[]", '{"sample_rate": "fast", "n_fft": null, "beta_start": NaN}',
                                    '{"sample_rate": 0, "fmax": -5, "n_fft": 3}',
                                    '{"beta_schedule": "linear", "beta_start": 5, "beta_end": -1}'])
def test_settings_that_make_no_sense(config: str, tmp_path: Path) -> None:
    assert _told(tmp_path, {"fb": _filters(), "alphas_cumprod": np.cumprod(1 - _betas("linear"))}, config) == []


def test_masks_of_ones_are_no_positions(tmp_path: Path) -> None:
    """All ones is what the cosine of 0 is; a mask that has not pruned yet is that."""
    made = np.random.default_rng(0)
    save_file({"fc1.weight": made.normal(size=(256, 96)).astype("f4"), "fc1_mask": np.ones((256, 96), "f4"),
               "fc2_mask": np.ones((128, 256), "f4")}, tmp_path / "dense.safetensors")
    assert not [f for f in examine(str(tmp_path / "dense.safetensors")).findings if f.rule == "W113"]
