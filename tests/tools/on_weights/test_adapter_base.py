"""Adapters beside their base: keys that name nothing there, layers counted from one, other names, shapes and ranks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

LAYERS, WIDTH, RANK = 6, 32, 4
ENDS = {"self_attn.q_proj": (WIDTH, WIDTH), "self_attn.v_proj": (WIDTH // 2, WIDTH), "mlp.up_proj": (96, WIDTH),
        "mlp.down_proj": (WIDTH, 96)}
Tensors = dict[str, Any]


def _base(head: str = "model.") -> Tensors:
    rng = np.random.default_rng(1)
    made = {f"{head}layers.{i}.{n}.weight": (rng.standard_normal(e) * 0.1).astype(np.float32)
            for i in range(LAYERS) for n, e in ENDS.items()}
    return {f"{head}embed_tokens.weight": rng.standard_normal((200, WIDTH)).astype(np.float32), **made}


def _adapter(head: str = "base_model.model.model.", kinds: tuple[str, ...] = tuple(ENDS), name: str = "") -> Tensors:
    rng = np.random.default_rng(2)
    made: Tensors = {}
    for i in range(LAYERS):
        for kind in kinds:
            out, into = ENDS[kind]
            module = f"{head}layers.{i}.{kind}"
            made[f"{module}.lora_A.{name}weight"] = (rng.standard_normal((RANK, into)) * 0.1).astype(np.float32)
            made[f"{module}.lora_B.{name}weight"] = (rng.standard_normal((out, RANK)) * 0.1).astype(np.float32)
    return made


def _config(**more: Any) -> dict[str, Any]:
    return {"peft_type": "LORA", "r": RANK, "lora_alpha": 8, "base_model_name_or_path": "somebody/base",
            "target_modules": [k.rpartition(".")[2] for k in ENDS], **more}


def _told(folder: Path, adapter: Tensors, config: Any, base: Tensors | None, form: str = "safetensors",
          home: str = "base") -> list[Finding]:
    if base is not None:
        (folder / home).mkdir()
        planted.write(form, folder / home, base, "model")
        (folder / home / "config.json").write_text(json.dumps({"num_hidden_layers": LAYERS}))
    (folder / "adapter").mkdir()
    path = planted.write("torch" if form == "sharded" else form, folder / "adapter", adapter, "adapter_model")
    (folder / "adapter" / "adapter_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    report = examine(path)
    assert not report.notes
    return [f for f in report.findings if f.severity is not Severity.INFO and f.rule in ("W146", "W133")]


def _renamed(tensors: Tensors, change: Callable[[str], str]) -> Tensors:
    return {change(n): t for n, t in tensors.items()}


def _shift(by: int) -> Callable[[str], str]:
    def shifted(name: str) -> str:
        head, _, rest = name.partition("layers.")
        number, _, rest = rest.partition(".")
        return f"{head}layers.{int(number) + by}.{rest}"
    return shifted


@pytest.mark.parametrize("form", ["safetensors", "torch", "sharded"])
def test_layers_that_are_counted_from_one(form: str, tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, _renamed(_adapter(), _shift(1)), _config(), _base(), form)
    assert (finding.rule, finding.measured["kind"], finding.measured["count"]) == ("W146", "layers", len(ENDS))
    assert f"layers.{LAYERS}." in finding.statement
    assert "lowered by 1" in finding.statement


def test_a_module_that_the_base_calls_otherwise(tmp_path: Path) -> None:
    adapter = _renamed(_adapter(), lambda n: n.replace("up_proj", "fc_up"))
    config = _config(target_modules=["q_proj", "v_proj", "fc_up", "down_proj"])
    (finding,) = _told(tmp_path, adapter, config, _base())
    assert (finding.measured["kind"], finding.measured["count"]) == ("names", LAYERS)
    assert "'model.layers.*.mlp.up_proj'" in finding.statement


@pytest.mark.parametrize("head", ["base_model.model.module.model.", "base_model.model.base_model.model.model.",
                                  "base_model.model.decoder."])
def test_a_beginning_that_no_loader_takes_away(head: str, tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, _adapter(head), _config(), _base())
    assert (finding.measured["kind"], finding.measured["count"]) == ("names", LAYERS * len(ENDS))


def test_a_matrix_that_does_not_fit(tmp_path: Path) -> None:
    base = _base()
    base["model.layers.2.mlp.up_proj.weight"] = np.ones((80, WIDTH), np.float32) * base[
        "model.layers.2.mlp.up_proj.weight"][:80]
    (finding,) = _told(tmp_path, _adapter(), _config(), base)
    assert (finding.measured["kind"], finding.measured["modules"]) == ("shape", ("model.layers.2.mlp.up_proj",))


@pytest.mark.parametrize("base", [True, False])
def test_another_rank_than_the_configuration(base: bool, tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, _adapter(), _config(r=16), _base() if base else None)
    assert (finding.measured["kind"], finding.measured["count"]) == ("rank", LAYERS * len(ENDS))


def test_modules_that_the_configuration_does_not_adapt(tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, _adapter(), _config(target_modules=["q_proj", "v_proj", "up_proj"]), None)
    assert (finding.measured["kind"], finding.measured["count"]) == ("unasked", LAYERS)
    assert "down_proj" in finding.statement


def test_modules_that_the_configuration_adapts_and_the_file_lacks(tmp_path: Path) -> None:
    kinds = ("self_attn.q_proj", "mlp.up_proj", "mlp.down_proj")
    (finding,) = _told(tmp_path, _adapter(kinds=kinds), _config(), _base())
    assert (finding.measured["kind"], finding.measured["count"]) == ("asked", LAYERS)
    assert "'v_proj'" in finding.statement


@pytest.mark.parametrize("lost", ["layers.5.", "layers.0.", "layers.3.mlp.up_proj"])
def test_one_layer_without(lost: str, tmp_path: Path) -> None:
    adapter = {n: t for n, t in _adapter().items() if lost not in n}
    (finding,) = _told(tmp_path, adapter, _config(), _base())
    assert (finding.rule, finding.measured["kind"]) == ("W146", "sibling")
    assert lost in finding.statement


def test_half_an_adapter(tmp_path: Path) -> None:
    adapter = {n: t for n, t in _adapter().items() if "layers.3.mlp.up_proj.lora_B" not in n}
    (finding,) = _told(tmp_path, adapter, _config(), None)
    assert (finding.measured["kind"], finding.measured["count"]) == ("half", 1)


def _plain(tmp_path: Path) -> tuple[Tensors, Any, Tensors | None]:
    return _adapter(), _config(), _base()


def _of_a_class_with_a_head(tmp_path: Path) -> tuple[Tensors, Any, Tensors | None]:
    return _adapter(), _config(), _base("")


def _of_some_layers(tmp_path: Path) -> tuple[Tensors, Any, Tensors | None]:
    kept = {n: t for n, t in _adapter().items() if not any(f"layers.{i}." in n for i in (0, 5))}
    return kept, _config(layers_to_transform=[1, 2, 3, 4]), _base()


def _with_names_of_other_models(tmp_path: Path) -> tuple[Tensors, Any, Tensors | None]:
    return _adapter(name="default."), _config(target_modules=[*_config()["target_modules"], "Wqkv", "query"]), _base()


def _with_a_head_that_is_saved(tmp_path: Path) -> tuple[Tensors, Any, Tensors | None]:
    head = {"base_model.model.score.weight": np.ones((3, WIDTH), np.float32) * np.arange(WIDTH, dtype=np.float32)}
    return {**_adapter(), **head}, _config(modules_to_save=["score"]), _base()


def _by_a_pattern(tmp_path: Path) -> tuple[Tensors, Any, Tensors | None]:
    kept = {n: t for n, t in _adapter().items() if "layers.5." not in n}
    return kept, _config(target_modules=r".*layers\.[0-4]\..*_proj"), _base()


def _with_ranks_of_their_own(tmp_path: Path) -> tuple[Tensors, Any, Tensors | None]:
    return _adapter(), _config(r=8, rank_pattern=dict.fromkeys(ENDS, RANK)), _base()


def _beside_another_model(tmp_path: Path) -> tuple[Tensors, Any, Tensors | None]:
    rng = np.random.default_rng(5)
    other = {f"backbone.{i}.conv.weight": rng.standard_normal((24, 24, 3, 3)).astype(np.float32) for i in range(8)}
    return _adapter(), _config(base_model_name_or_path="somebody/large"), other


def _without_a_base(tmp_path: Path) -> tuple[Tensors, Any, Tensors | None]:
    return _renamed(_adapter(), _shift(1)), _config(), None


@pytest.mark.parametrize("form", ["safetensors", "torch"])
@pytest.mark.parametrize("sound", [_plain, _of_a_class_with_a_head, _of_some_layers, _with_names_of_other_models,
                                   _with_a_head_that_is_saved, _by_a_pattern, _with_ranks_of_their_own,
                                   _beside_another_model, _without_a_base])
def test_adapters_that_fit(sound: Callable[[Path], tuple[Tensors, Any, Tensors | None]], form: str, tmp_path: Path
                           ) -> None:
    assert _told(tmp_path, *sound(tmp_path), form=form) == []


@pytest.mark.parametrize("config", ["{", "[]", '{"peft_type": "LORA", "r": "4", "target_modules": [3, null], '
                                    '"rank_pattern": [1], "layers_to_transform": {"a": 1}}'])
def test_a_configuration_that_says_nothing(config: str, tmp_path: Path) -> None:
    assert _told(tmp_path, _adapter(), config, _base()) == []


def test_a_base_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "model.safetensors").write_bytes(b"\x00" * 40)
    assert _told(tmp_path, _adapter(), _config(), None) == []
