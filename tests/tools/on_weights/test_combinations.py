"""W163 and W175: sums of files beside the recipe and the adapter's configuration that say what they should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import of_run
from traindx_tools.on_weights.recipes import recipes_of

numpy_files = pytest.importorskip("safetensors.numpy")
Tensors = dict[str, Any]
SHARES = (0.6, 0.3, 0.1)


def told(rule: str, folder: Path) -> list[Finding]:
    files = sorted(str(f) for f in folder.rglob("*.safetensors"))
    return [f for f in of_run(files).findings if f.rule == rule]


def saved(path: Path, tensors: Tensors) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    numpy_files.save_file({n: np.ascontiguousarray(t, np.float32) for n, t in tensors.items()}, path)


def soup(folder: Path, shares: tuple[float, ...], recipe: Any) -> None:
    rng = np.random.default_rng(0)
    start = {f"layer.{i}.weight": rng.normal(size=(24, 30)) for i in range(5)}
    members = [{n: t + 0.1 * rng.normal(size=t.shape) for n, t in start.items()} for _ in shares]
    for k, member in enumerate(members):
        saved(folder / f"seed_{k}.safetensors", member)
    saved(folder / "mean.safetensors", {n: sum(s * m[n] for s, m in zip(shares, members, strict=True)) for n in start})
    (folder / "mix.json").write_text(recipe if isinstance(recipe, str) else json.dumps(recipe))


def entries(shares: tuple[float, ...]) -> Any:
    return {"made": "mean.safetensors", "parts": [{"model": f"seed_{k}.safetensors", "options": {"share": s}}
                                                  for k, s in enumerate(shares)]}


RECIPES = {"entries": entries, "names": lambda s: {"merge": {f"seed_{k}": v for k, v in enumerate(s)}},
           "lists": lambda s: {"files": [f"./seed_{k}.safetensors" for k in range(3)], "alphas": list(s)}}


@pytest.mark.parametrize("form", list(RECIPES))
def test_shares_in_another_order_than_the_recipe(form: str, tmp_path: Path) -> None:
    soup(tmp_path, SHARES[::-1], RECIPES[form](SHARES))
    (found,) = told("W163", tmp_path)
    assert (found.severity, found.measured["kind"], found.measured["exchanged"]) == (Severity.HIGH, "recipe", True)


def test_other_shares_than_the_recipe(tmp_path: Path) -> None:
    soup(tmp_path, (0.4, 0.3, 0.3), entries(SHARES))
    (found,) = told("W163", tmp_path)
    assert not found.measured["exchanged"]


@pytest.mark.parametrize("recipe", [
    entries(SHARES), entries((6.0, 3.0, 1.0)), {"seed_0": 3, "unrelated": 0.2}, {"seed_0": 0.6, "seed_1": 0.3}, "{no",
], ids=["as-told", "not-normalised", "a-counter", "of-two-files", "broken"])
def test_recipes_that_hold_and_settings_that_are_none(recipe: Any, tmp_path: Path) -> None:
    soup(tmp_path, SHARES, recipe)
    assert told("W163", tmp_path) == []


def test_a_name_that_is_told_two_numbers_is_no_recipe(tmp_path: Path) -> None:
    told = [{"a": "x.pt", "w": 1}, {"a": "x.pt", "w": 2}, {"a": "y.pt", "w": 1}]
    (tmp_path / "mix.json").write_text(json.dumps(told))
    assert recipes_of(str(tmp_path / "m.pt"), [str(tmp_path / "x.pt"), str(tmp_path / "y.pt")]) == []


# W175


def merged(folder: Path, times: float = 1.0, *, turned: bool = False, exchanged: bool = False, noise: float = 0.0,
           **config: Any) -> None:
    rng = np.random.default_rng(1)
    base = {f"mix.{i}.weight": rng.normal(size=(40, 40)) * 0.1 for i in range(3)}
    base |= {f"mix.{i}.bias": rng.normal(size=40) for i in range(3)}
    adapter, result, products = {}, dict(base), []
    for i in range(3):
        down, up = rng.normal(size=(4, 40)) * 0.2, rng.normal(size=(40, 4)) * 0.05
        adapter |= {f"base_model.model.mix.{i}.lora_A.weight": down, f"base_model.model.mix.{i}.lora_B.weight": up}
        products.append(up @ down)
    for i in range(3):
        product = products[(i + 1) % 3 if exchanged else i]
        result[f"mix.{i}.weight"] = base[f"mix.{i}.weight"] + times * 2.0 * (product.T if turned else product) + (
            noise * rng.normal(size=(40, 40)))
    saved(folder / "base" / "model.safetensors", base)
    saved(folder / "out" / "model.safetensors", result)
    saved(folder / "lora" / "adapter_model.safetensors", adapter)
    (folder / "lora" / "adapter_config.json").write_text(json.dumps({"r": 4, "lora_alpha": 8, **config}))


@pytest.mark.parametrize(("how", "kind", "said"), [
    ({"times": 2.0}, "times", "merged twice"), ({"times": 4.0}, "times", "alpha was not divided"),
    ({"times": 0.5}, "times", "alpha was left out"), ({"turned": True}, "turned", "transposed"),
    ({"exchanged": True}, "source", "another module"),
    ({"times": -1.0, "base_model_name_or_path": "org/base"}, "times", "subtracted"),
])
def test_an_adapter_that_was_merged_otherwise(how: Any, kind: str, said: str, tmp_path: Path) -> None:
    merged(tmp_path, **how)
    (found,) = told("W175", tmp_path)
    assert (found.severity, found.measured["kind"], found.measured["tensors"]) == (Severity.HIGH, kind, 3)
    assert said in found.statement
    assert Path(found.where.file or "").parent.name == "out"


@pytest.mark.parametrize("how", [{}, {"noise": 0.05, "times": 2.0}, {"times": 2.0, "alpha_pattern": {"mix.0": 4}},
                                 {"times": 2.0, "use_rslora": True}],
                         ids=["once", "trained-further", "scales-of-their-own", "rslora"])
def test_merges_that_are_as_configured_or_cannot_be_told(how: Any, tmp_path: Path) -> None:
    merged(tmp_path, **how)
    assert told("W175", tmp_path) == []


def test_a_configuration_that_is_broken_says_nothing(tmp_path: Path) -> None:
    merged(tmp_path, 2.0)
    (tmp_path / "lora" / "adapter_config.json").write_text('{"r": "four", "lora_alpha": 8}')
    assert told("W175", tmp_path) == []
