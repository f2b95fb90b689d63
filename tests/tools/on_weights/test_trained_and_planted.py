"""Small models that were really trained for some hundred steps, with one thing changed: what changed is named.

The healthy twins come from the same trainings.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional


LAYERS, WIDTH, WORDS = 4, 64, 64


class Block(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.n1, self.n2 = (nn.LayerNorm(WIDTH) if bias else nn.RMSNorm(WIDTH) for _ in range(2))
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=bias), nn.Linear(WIDTH, WIDTH, bias=bias)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=bias), nn.Linear(4 * WIDTH, WIDTH, bias=bias)

    def forward(self, x: Any) -> Any:
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Decoder(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.wte = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block(bias) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02 / (2 * LAYERS) ** 0.5 if name.endswith(("o.weight", "down.weight"))
                                else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens: Any) -> Any:
        x = self.wte(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def _arrays(model: Any) -> dict[str, Any]:
    return {n: t.detach().numpy().copy() for n, t in model.state_dict().items()}


@pytest.fixture(scope="module", params=["biases", "no-biases"])
def decoder(request: Any) -> dict[str, Any]:
    """Weights of a run: at the start, at two thirds, at the end."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Decoder(request.param == "biases")
    kept = [_arrays(model)]
    following = torch.softmax(torch.randn(WORDS, WORDS) * 2, -1)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(150):
        tokens = [torch.randint(0, WORDS, (8,))]
        for _ in range(24):
            tokens.append(torch.multinomial(following[tokens[-1]], 1)[:, 0])
        given = torch.stack(tokens, 1)
        optimizer.zero_grad()
        F.cross_entropy(model(given[:, :-1]).flatten(0, 1), given[:, 1:].flatten()).backward()
        optimizer.step()
        if step in (99, 149):
            kept.append(_arrays(model))
    return dict(zip(("start", "middle", "end"), kept, strict=True))


def _serious(seen: Any) -> list[Any]:
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.severity is not Severity.INFO]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sharded", "torch", "npz"])
def test_one_block_at_its_initialisation(decoder: Any, form: str, tmp_path: Path) -> None:
    """After 150 steps the spread of trained matrices is still that of their initialiser."""
    fresh = {n: decoder["start"][n] if n.startswith("blocks.2.") else w for n, w in decoder["end"].items()}
    found = _serious(examine(planted.write(form, tmp_path, fresh, "fresh")))
    assert [(f.rule, f.measured["name"]) for f in found] == [("W104", "blocks.2")]
    assert "blocks.2.n1.weight (all 1)" in found[0].statement
    assert _serious(examine(planted.write(form, tmp_path, decoder["end"], "end"))) == []
    assert _serious(examine(planted.write(form, tmp_path, decoder["start"], "start"))) == []


@pytest.mark.slow
def test_a_block_without_vectors_is_known_by_its_spectrum(decoder: Any, tmp_path: Path) -> None:
    matrices = {n: w for n, w in decoder["end"].items() if w.ndim == 2}
    fresh = {n: decoder["start"][n] if n.startswith("blocks.1.") else w for n, w in matrices.items()}
    found = _serious(examine(planted.write("safetensors", tmp_path, fresh, "fresh")))
    assert [(f.rule, f.measured["name"]) for f in found] == [("W104", "blocks.1")]
    assert "noise by its spectrum" in found[0].statement
    assert _serious(examine(planted.write("safetensors", tmp_path, matrices, "sound"))) == []


@pytest.mark.slow
@pytest.mark.parametrize("form", ["safetensors", "torch"])
def test_layers_off_by_one(decoder: Any, form: str, tmp_path: Path) -> None:
    base, tuned = decoder["middle"], dict(decoder["end"])
    torch.manual_seed(1)
    drawn = _arrays(Decoder("blocks.0.o.bias" in base))
    for name in [n for n in tuned if n.startswith("blocks.")]:
        index, rest = int(name.split(".")[1]), name.split(".", 2)[2]
        tuned[name] = decoder["end"][f"blocks.{index + 1}.{rest}"] if index < LAYERS - 1 else drawn[name]
    one, other = (planted.write(form, tmp_path, a, n) for a, n in ((base, "base"), (tuned, "tuned")))
    found = [f for f in _serious(examine(one, other)) if f.rule == "W121"]
    assert [f.measured["offset"] for f in found] == [-1]
    assert "blocks.1..3 of" in found[0].statement
    assert "blocks.3 of" in found[0].statement.partition(";")[2]
    sound = planted.write(form, tmp_path, decoder["end"], "sound")
    assert _serious(examine(one, sound)) == []


def test_a_model_cut_to_every_second_layer_is_no_fault(tmp_path: Path) -> None:
    a = planted.stack(8)
    half = {n: w for n, w in a.items() if not n.startswith("h.")}
    for name in [n for n in a if n.startswith("h.") and int(n.split(".")[1]) % 2 == 0]:
        half[f"h.{int(name.split('.')[1]) // 2}.{name.split('.', 2)[2]}"] = a[name] * np.float32(1.01)
    one, other = planted.write("npz", tmp_path, half, "half"), planted.write("npz", tmp_path, a, "whole")
    found = [f for f in examine(one, other).findings if f.rule == "W121"]
    assert [f.severity for f in found] == [Severity.INFO]


def test_two_trainings_are_not_laid_on_each_other(tmp_path: Path) -> None:
    files = [planted.write("npz", tmp_path, planted.stack(seed=s), f"run{s}") for s in (1, 2)]
    assert not [f for f in examine(*files).findings if f.rule == "W121"]


def _convolutions() -> Any:
    return nn.Sequential(*(m for i in range(4) for m in (nn.Conv2d(12 if i else 3, 12, 3, padding=1, bias=False),
                                                         nn.BatchNorm2d(12), nn.ReLU())),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 3))


def _images(count: int, scale: float = 1.0, shift: float = 0.0) -> tuple[Any, Any]:
    labels = torch.randint(0, 3, (count,))
    ramp = torch.linspace(-1, 1, 8)
    patterns = torch.stack([ramp.expand(8, 8), ramp[:, None].expand(8, 8), ramp[:, None] * ramp])
    return (F.avg_pool2d(torch.randn(count, 3, 10, 10), 3, 1) * 2 + patterns[labels][:, None]) * scale + shift, labels


@pytest.fixture(scope="module")
def network() -> tuple[dict[str, Any], Any]:
    """A convolutional net after 60 steps, and as it is after 100."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = _convolutions()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for step in range(100):
        x, y = _images(16)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step == 59:
            before = _arrays(model)
    return before, model


def _on_other_data(model: Any, **of: float) -> dict[str, Any]:
    other = copy.deepcopy(model).train()
    with torch.no_grad():
        for _ in range(30):
            other(_images(16, **of)[0])
    return _arrays(other)


def _all_scaled(model: Any) -> dict[str, Any]:
    return {n: w * np.float32(6) if n.endswith("running_var") else w for n, w in _arrays(model).items()}


@pytest.mark.parametrize(("change", "named"), [
    (lambda m: _on_other_data(m, scale=3.0), "1.running_var"),
    (lambda m: _on_other_data(m, shift=1.5), "1.running_var"),
    (_all_scaled, "of the 4 normalisations"), (_arrays, "")])
@pytest.mark.parametrize("form", ["torch", "npz"])
def test_statistics_of_other_data(network: Any, change: Callable[[Any], Any], named: str, form: str, tmp_path: Path
                                  ) -> None:
    before, model = network
    one, other = planted.write(form, tmp_path, before, "a"), planted.write(form, tmp_path, change(model), "b")
    found = _serious(examine(one, other))
    assert [f.measured.get("kind") for f in found] == (["other-data"] if named else [])
    assert all(named in f.statement for f in found)


def test_statistics_of_all_layers_are_of_other_weights(network: Any, tmp_path: Path) -> None:
    after = {n: w * np.float32(3000) if n.endswith("running_var") else w for n, w in _arrays(network[1]).items()}
    found = _serious(examine(planted.write("torch", tmp_path, after)))
    assert [(f.rule, f.measured["kind"]) for f in found] == [("W108", "scale-of-all")]


def _moved(arrays: dict[str, Any], still: Callable[[str], bool]) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {n: w if still(n) else (w * (1 + 0.02 * rng.standard_normal(w.shape))).astype(w.dtype)
            for n, w in arrays.items()}


def _with_projector(name: str = "bridge") -> dict[str, Any]:
    rng = np.random.default_rng(4)
    made = planted.stack(4)
    head = made.pop("head.weight")
    for part in ("a", "b"):
        made[f"{name}.{part}.weight"] = (rng.standard_normal((32, 40)) * 0.1).astype(np.float32)
        made[f"{name}.{part}.bias"] = (rng.standard_normal(32) * 0.1).astype(np.float32)
    return {**made, "head.weight": head}


@pytest.mark.parametrize(("form", "name", "still", "told"), [
    ("torch", "bridge", lambda n: n.startswith("bridge."), True),
    ("safetensors", "bridge", lambda n: n.startswith("bridge."), True),
    ("torch", "vision_tower", lambda n: "tower" in n, False),
    ("safetensors", "bridge", lambda n: n.startswith(("w", "h.0.", "h.1.")), False),
    ("torch", "bridge", lambda n: n != "head.weight", False),
    ("safetensors", "bridge", lambda n: n == "wpe.weight", False)])
def test_a_module_that_stood_still(form: str, name: str, still: Callable[[str], bool], told: bool, tmp_path: Path
                                   ) -> None:
    a = _with_projector(name)
    one, other = planted.write(form, tmp_path, a, "a"), planted.write(form, tmp_path, _moved(a, still), "b")
    found = [f for f in _serious(examine(one, other)) if f.rule == "W118"]
    assert [f.measured["name"] for f in found] == ["bridge"] * told
    (tmp_path / "config.json").write_text(json.dumps({"freeze_bridge": True}))
    assert not [f for f in examine(one, other).findings if f.rule == "W118"]


def _sines() -> Any:
    angle = np.arange(64)[:, None] * 10000.0 ** (-np.arange(16) / 16)
    table = np.zeros((64, 32), np.float32)
    table[:, ::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    return table


def _window(side: int = 5) -> Any:
    y, x = np.divmod(np.arange(side * side), side)
    return ((y[:, None] - y + side - 1) * (2 * side - 1) + x[:, None] - x + side - 1).astype(np.int64)


def _again(table: Any) -> Any:
    table = table.copy()
    table[len(table) - len(table) // 2:] = table[:len(table) // 2]
    return table


def _shuffled(table: Any) -> Any:
    return table[np.random.default_rng(5).permutation(len(table))]


def _mostly_other(table: Any) -> Any:
    return np.concatenate([table[:20], np.random.default_rng(6).uniform(-1, 1, (44, 32))]).astype(np.float32)


FREQUENCIES = (10000.0 ** (-np.arange(16) / 16)).astype(np.float32)
TABLES: dict[str, Any] = {"positions.table": _sines(), "attn.inv_freq": FREQUENCIES,
                          "attn.allowed": np.tril(np.ones((48, 48), bool)),
                          "attn.relative_position_index": _window(), "embeddings.position_ids": np.arange(128)}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("change", "words"), [(_again, "again"), (_shuffled, "permuted")])
def test_a_table_that_repeats_or_is_permuted(name: str, change: Callable[[Any], Any], words: str, tmp_path: Path
                                             ) -> None:
    if name == "embeddings.position_ids" and words == "permuted":
        pytest.skip("numbers in any order are no table")
    form = ("safetensors", "torch", "npz")[list(TABLES).index(name) % 3]
    arrays = {**planted.stack(4), name: change(TABLES[name])}
    found = _serious(examine(planted.write(form, tmp_path, arrays)))
    assert [(f.rule, f.measured["name"]) for f in found] == [("W113", name)]
    assert words in found[0].statement
    assert _serious(examine(planted.write(form, tmp_path, {**arrays, name: TABLES[name]}))) == []


def test_the_formula_of_a_minority_of_rows_is_told(tmp_path: Path) -> None:
    arrays = {**planted.stack(4), "positions.table": _mostly_other(_sines())}
    (found,) = _serious(examine(planted.write("npz", tmp_path, arrays)))
    assert "rows 20..63" in found.statement
    assert "sin, cos of (p)/10000^(2i/d) in turn" in found.statement


def _chunked() -> Any:
    allowed = np.tril(np.ones((48, 48), bool))
    for at in range(0, 48, 4):
        allowed[at: at + 4, at: at + 4] = True
    return allowed


@pytest.mark.parametrize("table", [np.zeros((32, 32), np.float32), _chunked(), np.arange(64)[::-1].copy(),
                                   np.random.default_rng(7).uniform(-1, 1, (64, 32)).astype(np.float32)])
def test_what_only_looks_like_a_table(table: Any, tmp_path: Path) -> None:
    arrays = {**planted.stack(4), "extra.table": table}
    assert not [f for f in examine(planted.write("npz", tmp_path, arrays)).findings if f.rule == "W113"]


def _blocks_of(arrays: dict[str, Any], *heads: str) -> Iterator[int]:
    return (i for i, n in enumerate(arrays) if n.startswith(heads))


@pytest.mark.parametrize(("heads", "steps", "severity", "words"), [
    (("h.2.",), 140, Severity.MEDIUM, "all 13 parameters of h.2"), (("wte", "wpe", "h.0.", "h.1."), 140, Severity.INFO,
                                                                  "unfrozen"),
    (("head",), 140, Severity.INFO, "have made"), (("wte",), 140, Severity.INFO, "have made")])
@pytest.mark.parametrize("split", [False, True])
def test_blocks_with_another_step_count(heads: tuple[str, ...], steps: int, severity: Severity, words: str, split: bool,
                                        tmp_path: Path) -> None:
    """Also where decayed and other parameters are two groups."""
    arrays = planted.stack(4)
    parameters = {n: nn.Parameter(torch.from_numpy(w)) for n, w in arrays.items()}
    names = list(arrays)
    if split:
        names = [n for n in names if arrays[n].ndim == 2] + [n for n in names if arrays[n].ndim == 1]
        optimizer = torch.optim.AdamW([{"params": [parameters[n] for n in names if arrays[n].ndim == d]} for d in
                                       (2, 1)])
    else:
        optimizer = torch.optim.AdamW(parameters.values())
    sum((p**2).sum() for p in parameters.values()).backward()
    optimizer.step()
    state = optimizer.state_dict()
    for at, name in enumerate(names):
        state["state"][at]["step"] = torch.tensor(float(steps if name.startswith(heads) else 200))
    file = tmp_path / "last.pt"
    torch.save({"model": {n: p.detach() for n, p in parameters.items()}, "optimizer": state, "global_step": 200}, file)
    (found,) = examine(file).findings
    assert (found.rule, found.severity) == ("W111", severity)
    assert words in found.statement
    assert severity is Severity.INFO or "h.2.attn.q.weight" in found.statement


def test_a_file_in_which_nothing_is_found_says_what_was_compared(tmp_path: Path) -> None:
    from traindx.commands.weights import text

    a = planted.stack()
    one, other = planted.write("npz", tmp_path, a, "a"), planted.write("npz", tmp_path, _moved(a, lambda n: False), "b")
    told = text(examine(one, other))
    assert "104 of 108 measured tensors have siblings, in 13 groups; 108 moved and 0 did not" in told
    assert "of its norm" in told
    assert "siblings" in text(examine(one))
