"""Planted faults over five formats are named with their tensor; sound twins that look suspicious are left alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

FORMS = ("safetensors", "sharded", "npz", "torch", "msgpack")
Change = Callable[[Any], Any]


def _nan(a: Any) -> None:
    a["h.3.mlp.up.weight"][5, 7] = np.nan


def _inf(a: Any) -> None:
    a["h.2.norm.bias"][3] = np.inf


def _zero(a: Any) -> None:
    a["h.4.attn.o.weight"][:] = 0


def _constant(a: Any) -> None:
    a["h.1.attn.v.weight"][:] = 0.02


def _balanced(a: Any) -> None:
    a["h.5.attn.q.weight"] *= 6
    a["h.5.attn.k.weight"] /= 6


def _balanced_mlp(a: Any) -> None:
    a["h.2.mlp.up.weight"] *= 16
    a["h.2.mlp.down.weight"] /= 16


def _scaled(a: Any) -> None:
    a["h.3.mlp.down.weight"] *= 7


def _shrunk(a: Any) -> None:
    a["h.6.attn.v.weight"] *= 0.01


def _alone(a: Any) -> None:
    a["head.weight"] *= 5000


def _rows(a: Any) -> None:
    a["h.4.mlp.up.weight"][64:96] *= 12


def _half_zero(a: Any) -> None:
    a["h.4.mlp.up.weight"][96:] = 0


def _shifted(a: Any) -> None:
    a["h.3.attn.q.weight"] += 0.2


def _initial_block(a: Any) -> None:
    rng = np.random.default_rng(5)
    for name in [n for n in a if n.startswith("h.6.")]:
        shape = a[name].shape
        bound = shape[-1] ** -0.5
        a[name] = (rng.uniform(-bound, bound, shape) if len(shape) > 1 else np.full(shape, float("norm.weight" in name))
                   ).astype(np.float32)


def _initial_normal(a: Any) -> None:
    rng = np.random.default_rng(6)
    for name in [n for n in a if n.startswith("h.1.")]:
        shape = a[name].shape
        a[name] = (rng.standard_normal(shape) * 0.02 if len(shape) > 1 else np.full(shape, float("norm.weight" in name))
                   ).astype(np.float32)


def _initial_head(a: Any) -> None:
    a["head.weight"] = np.random.default_rng(7).uniform(-(32**-0.5), 32**-0.5, (320, 32)).astype(np.float32)


def _dead(a: Any) -> None:
    a["h.2.mlp.up.weight"][np.random.default_rng(8).permutation(128)[:40]] = 0


def _doubled(a: Any) -> None:
    w = a["h.5.mlp.up.weight"]
    w[1::2] = w[::2]


def _new_tokens(a: Any) -> None:
    a["wte.weight"][150:] = a["wte.weight"][:150].mean(0)


def _drawn_tokens(a: Any) -> None:
    a["wte.weight"][170:] = np.random.default_rng(9).standard_normal((150, 32)) * 0.02


def _untied(a: Any) -> None:
    a["head.weight"] = a["wte.weight"] + np.random.default_rng(10).standard_normal((320, 32)).astype(np.float32) * 0.01


def _same_block(a: Any) -> None:
    for name in [n for n in a if n.startswith("h.4.")]:
        a[name] = a[name.replace("h.4.", "h.3.")].copy()


def _bit_flip(a: Any) -> None:
    a["h.3.attn.k.weight"][4, 4] *= np.float32(2.0**40)


def _half_edge(a: Any) -> None:
    for name in a:
        a[name] = a[name].astype(np.float16)
    a["h.2.mlp.up.weight"][0, 0] = 65504
    a["h.2.mlp.up.weight"][1:12, 0] = 60000


def _other_type(a: Any) -> None:
    a["h.3.attn.q.weight"] = a["h.3.attn.q.weight"].astype(np.float64)


def _rounded(a: Any) -> None:
    a["h.5.mlp.down.weight"] = a["h.5.mlp.down.weight"].astype(np.float16).astype(np.float32)


def _frequencies(a: Any) -> None:
    for i in range(8):
        a[f"h.{i}.attn.inv_freq"] = (10000.0 ** (-np.arange(16) / 16)).astype(np.float32)
    a["h.2.attn.inv_freq"][7] *= 3


def _sines(a: Any) -> None:
    angle = np.arange(64)[:, None] * 10000.0 ** (-np.arange(16) / 16)
    table = np.zeros((64, 32), np.float32)
    table[:, ::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    table[40] = table[39]
    a["positions.table"] = table


def _mask(a: Any) -> None:
    mask = np.tril(np.ones((48, 48), bool))
    mask[20, 25] = True
    a["h.0.attn.allowed"] = mask


def _denormal(a: Any) -> None:
    for name in a:
        a[name] = a[name].astype(np.float16)
    a["h.3.attn.v.weight"] = (a["h.3.attn.v.weight"].astype(np.float32) * 1e-4).astype(np.float16)


def _negative_variance(a: Any) -> None:
    a["layers.2.bn.running_var"][4] = -0.1


def _fresh_statistics(a: Any) -> None:
    a["layers.3.bn.running_mean"][:], a["layers.3.bn.running_var"][:] = 0, 1


def _scaled_statistics(a: Any) -> None:
    a["layers.4.bn.running_var"] *= 1e5


def _shuffled_statistics(a: Any) -> None:
    order = np.random.default_rng(12).permutation(24)
    a["layers.2.bn.running_var"] = a["layers.2.bn.running_var"][order]


def _conv_scaled(a: Any) -> None:
    a["layers.3.conv.weight"] *= 20


FAULTS: dict[str, tuple[Callable[[], Any], Callable[[Any], None], str, str]] = {
    "nan": (planted.stack, _nan, "W101", "h.3.mlp.up.weight"),
    "inf": (planted.stack, _inf, "W101", "h.2.norm.bias"),
    "zero": (planted.stack, _zero, "W102", "h.4.attn.o.weight"),
    "constant": (planted.stack, _constant, "W102", "h.1.attn.v.weight"),
    "balanced": (planted.stack, _balanced, "W103", "h.5.attn.q.weight"),
    "balanced-mlp": (planted.stack, _balanced_mlp, "W103", "h.2.mlp.up.weight"),
    "scaled": (planted.stack, _scaled, "W103", "h.3.mlp.down.weight"),
    "shrunk": (planted.stack, _shrunk, "W103", "h.6.attn.v.weight"),
    "alone": (planted.stack, _alone, "W103", "head.weight"),
    "rows": (planted.stack, _rows, "W103", "h.4.mlp.up.weight"),
    "half-zero": (planted.stack, _half_zero, "W103", "h.4.mlp.up.weight"),
    "shifted": (planted.stack, _shifted, "W103", "h.3.attn.q.weight"),
    "initial-block": (planted.stack, _initial_block, "W104", "h.6"),
    "initial-normal": (planted.stack, _initial_normal, "W104", "h.1"),
    "initial-head": (planted.stack, _initial_head, "W104", "head.weight"),
    "dead": (planted.stack, _dead, "W105", "h.2.mlp.up.weight"),
    "doubled": (planted.stack, _doubled, "W105", "h.5.mlp.up.weight"),
    "new-tokens": (planted.stack, _new_tokens, "W106", "wte.weight"),
    "drawn-tokens": (planted.stack, _drawn_tokens, "W106", "wte.weight"),
    "untied": (planted.stack, _untied, "W107", "wte.weight"),
    "same-block": (planted.stack, _same_block, "W115", "h.4"),
    "bit-flip": (planted.stack, _bit_flip, "W114", "h.3.attn.k.weight"),
    "half-edge": (planted.stack, _half_edge, "W114", "h.2.mlp.up.weight"),
    "denormal": (planted.stack, _denormal, "W114", "h.3.attn.v.weight"),
    "type": (planted.stack, _other_type, "W109", "h.3.attn.q.weight"),
    "rounded": (planted.stack, _rounded, "W109", "h.5.mlp.down.weight"),
    "frequencies": (planted.stack, _frequencies, "W113", "h.2.attn.inv_freq"),
    "sines": (planted.stack, _sines, "W113", "positions.table"),
    "mask": (planted.stack, _mask, "W113", "h.0.attn.allowed"),
    "negative-variance": (planted.convolutions, _negative_variance, "W108", "layers.2.bn"),
    "fresh-statistics": (planted.convolutions, _fresh_statistics, "W108", "layers.3.bn"),
    "scaled-statistics": (planted.convolutions, _scaled_statistics, "W108", "layers.4.bn"),
    "shuffled-statistics": (planted.convolutions, _shuffled_statistics, "W108", "layers.2.bn"),
    "convolution-scaled": (planted.convolutions, _conv_scaled, "W103", "layers.3.conv.weight"),
}


def _serious(seen: Any) -> list[Any]:
    return [f for f in seen.findings if f.severity is not Severity.INFO]


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named_with_its_tensor(name: str, tmp_path: Path) -> None:
    make, change, rule, tensor = FAULTS[name]
    arrays = make()
    change(arrays)
    form = FORMS[list(FAULTS).index(name) % len(FORMS)]
    found = _serious(examine(planted.write(form, tmp_path, arrays)))
    named = [f for f in found if f.rule == rule and tensor in (f.measured.get("name"), f.measured.get("other"))]
    assert named, [f.statement for f in found]
    assert tensor in named[0].statement
    assert "weights" in (named[0].where.file or "")
    assert all(len(f.statement) <= 300 and not f.statement.endswith("...") for f in found)


def _heavy_tails(a: Any) -> None:
    rng = np.random.default_rng(20)
    for name, w in a.items():
        if w.ndim == 2:
            a[name] = (rng.standard_t(2.2, w.shape) * w.std()).astype(np.float32)


def _zero_branches(a: Any) -> None:
    for i in range(8):
        a[f"h.{i}.attn.o.weight"][:] = 0
        a[f"h.{i}.mlp.down.weight"][:] = 0


def _adapters(a: Any) -> None:
    rng = np.random.default_rng(21)
    for i in range(8):
        a[f"h.{i}.attn.q.lora_A.weight"] = rng.uniform(-(32**-0.5), 32**-0.5, (4, 32)).astype(np.float32)
        a[f"h.{i}.attn.q.lora_B.weight"] = np.zeros((32, 4), np.float32)


def _tied(a: Any) -> None:
    a["head.weight"] = a["wte.weight"].copy()


def _sparse(a: Any) -> None:
    rng = np.random.default_rng(22)
    for name, w in a.items():
        if w.ndim == 2:
            w[rng.random(w.shape) < 0.9] = 0
            if "up" in name:
                w[rng.permutation(len(w))[:40]] = 0


def _rare_tokens(a: Any) -> None:
    a["wte.weight"] = (np.random.default_rng(23).standard_normal((320, 32)) * 0.5 / np.sqrt(1 + np.arange(320))[:, None]
                       ).astype(np.float32)


def _padded(a: Any) -> None:
    a["wte.weight"][300:] = 0
    a["wte.weight"][0] = 0


def _depth(a: Any) -> None:
    for i in range(8):
        a[f"h.{i}.mlp.down.weight"] *= 1.35**i
        a[f"h.{i}.attn.v.weight"] *= 1 + 1.5 * (i == 0)


def _masks(a: Any) -> None:
    for i in range(8):
        a[f"h.{i}.attn.mask"] = np.triu(np.full((48, 48), -np.inf, np.float32), 1)
        a[f"h.{i}.attn.allowed"] = np.tril(np.ones((1, 1, 48, 48), bool))


def _frozen_half(a: Any) -> None:
    rng = np.random.default_rng(24)
    for name, w in a.items():
        if name.startswith(("w", "h.0", "h.1", "h.2", "h.3")) and w.ndim == 2:
            a[name] = rng.uniform(-(w.shape[1] ** -0.5), w.shape[1] ** -0.5, w.shape).astype(np.float32)


def _shared(a: Any) -> None:
    for name in [n for n in a if n.startswith("h.")]:
        a[name] = a["h.0." + name.split(".", 2)[2]].copy()


def _mixed_precision(a: Any) -> None:
    for name, w in a.items():
        if w.ndim == 2:
            a[name] = w.astype(np.float16)


def _extended_context(a: Any) -> None:
    f = 10000.0 ** (-np.arange(16) / 16)
    for i in range(8):
        a[f"h.{i}.attn.inv_freq"] = np.where(np.arange(16) < 10, f, f / 8).astype(np.float32)


def _outlier_features(a: Any) -> None:
    for i in range(8):
        a[f"h.{i}.mlp.down.weight"][7] *= 15
        a[f"h.{i}.norm.weight"][7] = 9.0


def _repeated_heads(a: Any) -> None:
    for i in range(8):
        a[f"h.{i}.attn.k.weight"][16:] = a[f"h.{i}.attn.k.weight"][:16]


def _momentum_copy(a: Any) -> None:
    rng = np.random.default_rng(25)
    for name in list(a):
        a[f"ema.{name}"] = (a[name] * (1 + 0.01 * rng.standard_normal(a[name].shape))).astype(np.float32)


def _zero_gamma(a: Any) -> None:
    for i in range(6):
        a[f"layers.{i}.bn.weight"][:] = 0


def _frozen_statistics(a: Any) -> None:
    for i in range(3):
        a[f"layers.{i}.bn.num_batches_tracked"] = np.array(0)


TWINS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "plain": (planted.stack, lambda a: None), "heavy-tails": (planted.stack, _heavy_tails),
    "zero-branches": (planted.stack, _zero_branches), "adapters": (planted.stack, _adapters),
    "tied": (planted.stack, _tied), "sparse": (planted.stack, _sparse), "rare-tokens": (planted.stack, _rare_tokens),
    "padded-vocabulary": (planted.stack, _padded), "scale-grows-with-depth": (planted.stack, _depth),
    "masks": (planted.stack, _masks), "half-frozen-at-random": (planted.stack, _frozen_half),
    "shared-blocks": (planted.stack, _shared), "mixed-precision": (planted.stack, _mixed_precision),
    "extended-context": (planted.stack, _extended_context), "outlier-features": (planted.stack, _outlier_features),
    "repeated-heads": (planted.stack, _repeated_heads), "moving-average": (planted.stack, _momentum_copy),
    "convolutions": (planted.convolutions, lambda a: None), "zero-gamma": (planted.convolutions, _zero_gamma),
    "frozen-statistics": (planted.convolutions, _frozen_statistics),
    "deep": (lambda: planted.stack(24, 16, 3), lambda a: None),
}


def _of_all_forms() -> list[Any]:
    """Each twin with a seed for each form: one always, so that each form has four twins; the others are slow."""
    return [pytest.param(name, seed, marks=[] if (seed - place) % len(FORMS) == 0 else pytest.mark.slow)
            for place, name in enumerate(TWINS) for seed in range(len(FORMS))]


@pytest.mark.parametrize(("name", "seed"), _of_all_forms())
def test_a_sound_twin_is_left_alone(name: str, seed: int, tmp_path: Path) -> None:
    make, change = TWINS[name]
    arrays = make() if name == "deep" else make(seed=seed + 30)
    change(arrays)
    seen = examine(planted.write(FORMS[seed], tmp_path, arrays))
    assert [f.statement for f in _serious(seen)] == []
    assert not [n for n in seen.notes if "failed" in n]


def _moved(arrays: Any, names: Callable[[str], bool], seed: int = 40) -> Any:
    rng = np.random.default_rng(seed)
    return {n: (w * (1 + 0.02 * rng.standard_normal(w.shape))).astype(w.dtype) if names(n) else w
            for n, w in arrays.items()}


def _pairs() -> Iterator[tuple[str, Any, Any, str, str]]:
    """name, first, second, rule, text that the statement must hold."""
    a = planted.stack()
    all_moved = _moved(a, lambda n: True)
    yield "prefix", a, {f"_orig_mod.{n}": w for n, w in all_moved.items()}, "W110", "'_orig_mod.' put in front"
    yield "prefix-exchanged", {f"module.{n}": w for n, w in a.items()}, {f"base_model.model.{n}": w for n, w in
                                                                        all_moved.items()}, "W110", "base_model.model."
    yield "offset", a, {(f"h.{int(n.split('.')[1]) + 1}.{n.split('.', 2)[2]}" if n.startswith("h.") else n): w
                        for n, w in all_moved.items()}, "W110", "raised by 1"
    yield "missing", a, {n: w for n, w in all_moved.items() if not n.startswith("h.7")}, "W110", "h.7"
    yield "shape", a, {**all_moved, "head.weight": all_moved["head.weight"][:300]}, "W110", "head.weight"
    yield "nothing-moved", a, dict(a), "W112", "hold the same values, to the bit"
    yield "block-still", a, _moved(a, lambda n: not n.startswith("h.4.")), "W112", "h.4."
    yield "head-still", a, _moved(a, lambda n: n != "head.weight"), "W112", "head.weight"
    further = dict(all_moved)
    further["h.3.mlp.up.weight"] = a["h.3.mlp.up.weight"] * (
        1 + 0.7 * np.random.default_rng(1).standard_normal((128, 32))).astype(np.float32)
    yield "further", a, further, "W112", "h.3.mlp.up.weight"
    yield "block-alone", a, _moved(a, lambda n: n == "h.3.mlp.up.weight"), "W112", "h.3.mlp.up.weight alone"
    c = planted.convolutions()
    yield "statistics-only", c, _moved(c, lambda n: "running" in n), "W112", "running statistics"


@pytest.mark.parametrize(("name", "first", "second", "rule", "text"), [pytest.param(*p, id=p[0]) for p in _pairs()])
def test_two_checkpoints_are_told_apart(name: str, first: Any, second: Any, rule: str, text: str,
                                        tmp_path: Path) -> None:
    form = FORMS[len(name) % len(FORMS)]
    one, other = planted.write(form, tmp_path, first, "one"), planted.write(form, tmp_path, second, "other")
    found = [f for f in _serious(examine(one, other)) if f.rule == rule]
    assert any(text in f.statement for f in found), [f.statement for f in found]


@pytest.mark.parametrize(("name", "moves"), [
    ("all", lambda n: True),
    ("backbone-frozen", lambda n: n == "head.weight"),
    ("beginning-frozen", lambda n: not n.startswith(("w", "h.0.", "h.1.", "h.2."))),
    ("biases-only", lambda n: n.endswith("bias")),
    ("last-block-and-head", lambda n: n.startswith(("h.7.", "norm", "head"))),
    ("norms-frozen", lambda n: "norm" not in n),
])  # fmt: skip
def test_what_is_frozen_on_purpose_is_no_fault(name: str, moves: Callable[[str], bool], tmp_path: Path) -> None:
    a = planted.stack()
    one = planted.write("safetensors", tmp_path, a, "one")
    other = planted.write("safetensors", tmp_path, _moved(a, moves), "other")
    assert [f.statement for f in _serious(examine(one, other))] == []


def test_parameters_that_would_stay_random_are_counted(tmp_path: Path) -> None:
    a = planted.stack()
    one = planted.write("npz", tmp_path, a, "one")
    other = planted.write("npz", tmp_path, {f"module.{n}": w for n, w in a.items()}, "other")
    seen = examine(one, other)
    total = sum(w.size for w in a.values())
    assert seen.matched is not None
    assert seen.matched.lost == total
    assert len(seen.matched.renamed) == len(a)
    assert f"{total:,} of {total:,} values (100%) would stay random" in seen.findings[0].statement


def test_a_configuration_that_ties_is_believed(tmp_path: Path) -> None:
    file = planted.write("safetensors", tmp_path, planted.stack())
    assert not _serious(examine(file))
    (tmp_path / "config.json").write_text(json.dumps({"tie_word_embeddings": True}))
    assert [f.rule for f in _serious(examine(file))] == ["W107"]


def test_a_base_of_frequencies_is_compared_with_the_configuration(tmp_path: Path) -> None:
    arrays = {**planted.stack(), "rotary.inv_freq": (10000.0 ** (-np.arange(16) / 16)).astype(np.float32)}
    file = planted.write("safetensors", tmp_path, arrays)
    (tmp_path / "config.json").write_text(json.dumps({"rope_theta": 10000.0}))
    assert not _serious(examine(file))
    (tmp_path / "config.json").write_text(json.dumps({"rope_theta": 500000.0}))
    assert [f.measured["kind"] for f in _serious(examine(file))] == ["base"]


def test_frequencies_of_a_scaling_that_the_configuration_does_not_say(tmp_path: Path) -> None:
    arrays = {**planted.stack(), "rotary.inv_freq": (10000.0 ** (-np.arange(16) / 16) / 4).astype(np.float32)}
    file = planted.write("safetensors", tmp_path, arrays)
    assert not _serious(examine(file))  # nothing says how they are made
    (tmp_path / "config.json").write_text(json.dumps({"rope_theta": 10000.0, "rope_scaling": {"factor": 4.0}}))
    assert not _serious(examine(file))
    (tmp_path / "config.json").write_text(json.dumps({"rope_theta": 10000.0, "rope_scaling": None}))
    (found,) = _serious(examine(file))
    assert (found.rule, "divided by 4" in found.statement) == ("W113", True)


@pytest.mark.parametrize(("kept", "told"), [(True, []), (False, ["W103"])])
def test_a_matrix_that_is_drawn_once_has_a_scale_of_its_own(kept: bool, told: list[str], tmp_path: Path) -> None:
    """Random Fourier features: the optimizer keeps moments of the layers and none of them."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(*(m for _ in range(4) for m in (torch.nn.Linear(64, 64), torch.nn.ReLU())))
    frequencies = torch.nn.Parameter(30 * torch.randn(2, 32), requires_grad=False)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(20):
        x = torch.rand(64, 2) @ frequencies
        loss = net(torch.cat([x.sin(), x.cos()], 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    state = {"model": {"B": frequencies.data, **net.state_dict()}}
    torch.save({**state, "optimizer": optimizer.state_dict()} if kept else state, tmp_path / "step_20.pt")
    assert [f.rule for f in _serious(examine(tmp_path / "step_20.pt")) if f.statement.startswith("B in ")] == told


@pytest.mark.parametrize(("name", "told"), [("wte.weight", []), ("mixer.weight", ["W105"])])
def test_rows_of_zeros_that_pad_a_vocabulary_are_no_cut_file(name: str, told: list[str], tmp_path: Path) -> None:
    """64 rows for 42 tokens, and wider than tall: as small models have it."""
    arrays = {k: v for k, v in planted.stack().items() if not k.startswith(("wte", "head"))}
    table = np.random.default_rng(3).standard_normal((64, 72)).astype(np.float32)
    table[42:] = 0
    found = _serious(examine(planted.write("safetensors", tmp_path, {**arrays, name: table})))
    assert [f.rule for f in found if f.rule == "W105"] == told
