"""A checkpoint is laid beside the model that the program loads it into; the program is read and never run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.code_audit import audit
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.examine import Examined

safetensors = pytest.importorskip("safetensors.numpy")

MODEL = '''
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d, bias=False)

class Net(nn.Module):
    def __init__(self, d=64, n=4):
        super().__init__()
        self.embed = nn.Embedding(100, d)
        self.blocks = nn.ModuleList([Block(d) for _ in range(n)])
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(d, 10)
        self.scale = nn.Parameter(torch.ones(d))
'''
LOADS = '''
import torch
from safetensors.torch import load_file
from model import Net
model = Net(d=16)
model.load_state_dict(load_file("w.safetensors"), strict=False)
'''


def _state(before: str = "", head: str = "head", width: int = 16) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embed.weight": (100, width), "stem.0.weight": (8, 3, 3, 3), "stem.0.bias": (8,), "stem.1.weight": (8,),
        "stem.1.bias": (8,), f"{head}.weight": (10, width), f"{head}.bias": (10,), "scale": (width,)}  # fmt: skip
    for i in range(4):
        shapes |= {f"blocks.{i}.norm.weight": (width,), f"blocks.{i}.norm.bias": (width,),
                   f"blocks.{i}.up.weight": (4 * width, width), f"blocks.{i}.up.bias": (4 * width,),
                   f"blocks.{i}.down.weight": (width, 4 * width)}  # fmt: skip
    return {f"{before}{n}": draw.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


def _seen(folder: Path, state: dict[str, np.ndarray], code: str = LOADS, model: str = MODEL, *,
          unloaded: bool = False) -> Examined:
    (folder / "model.py").write_text(model)
    (folder / "train.py").write_text(code)
    safetensors.save_file(state, folder / "w.safetensors")
    projects = audit([folder / "model.py", folder / "train.py"], rules=("C206",)).projects
    return examine(folder / "w.safetensors", code=projects, unloaded=unloaded)


def _told(seen: Examined) -> list[tuple[object, str]]:
    return [(f.measured["kind"], f.statement) for f in seen.findings if f.rule == "W110"]


def test_a_file_that_fits_is_left_alone(tmp_path: Path) -> None:
    seen = _seen(tmp_path, _state())
    assert not _told(seen)
    assert seen.summary()["code"][0] | {"made": "", "load": ""} == {
        "class": "Net", "made": "", "load": "", "layers": 8, "matched": 8}


def test_a_prefix_that_the_model_does_not_have(tmp_path: Path) -> None:
    seen = _seen(tmp_path, _state("net."))
    (found,) = [f for f in seen.findings if f.rule == "W110"]
    assert found.measured["kind"] == "prefix"
    assert found.measured["renaming"] == "'net.' put in front"
    assert "8 of the 8 layers of Net" in found.statement
    assert found.where.file is not None
    assert found.where.file.endswith("train.py")
    assert found.where.line == 6


def test_a_prefix_that_the_program_takes_off_itself(tmp_path: Path) -> None:
    stripped = LOADS.replace('load_file("w.safetensors")',
                             '{k.removeprefix("net."): v for k, v in load_file("w.safetensors").items()}')
    assert not _told(_seen(tmp_path, _state("net."), stripped))
    unless = LOADS.replace("model.load", 'state = load_file("w.safetensors")\nif "net." in next(iter(state)):\n'
                           '    state = {k[4:]: v for k, v in state.items()}\nmodel.load').replace(
                               '(load_file("w.safetensors"),', "(state,")
    assert not _told(_seen(tmp_path, _state("net."), unless))


def test_a_layer_under_another_name(tmp_path: Path) -> None:
    ((kind, said),) = _told(_seen(tmp_path, _state(head="classifier")))
    assert kind == "missing"
    assert "1 of the 8 layers of Net" in said
    assert "classifier of the file has the size of head" in said


def test_a_new_head_of_another_size_and_a_layer_that_is_an_option_are_meant(tmp_path: Path) -> None:
    state = {n: w for n, w in _state(head="old_head").items() if n != "scale"}
    state["old_head.weight"] = np.ones((1000, 16), np.float32)
    assert not _told(_seen(tmp_path, state))
    backbone = {n: w for n, w in _state().items() if not n.startswith(("head", "stem"))}
    assert not _told(_seen(tmp_path, backbone))


def test_sizes_that_the_program_writes_down(tmp_path: Path) -> None:
    ((kind, said),) = _told(_seen(tmp_path, _state(width=32)))
    assert kind == "shape"
    assert "embed.weight ([100, 32] in the file, [100, 16] in the code)" in said


def test_a_size_that_a_caller_may_override_is_not_judged(tmp_path: Path) -> None:
    assert not _told(_seen(tmp_path, _state(width=32), "import model\n", unloaded=True))


def test_a_model_of_other_names_is_told_where_the_file_is_named(tmp_path: Path) -> None:
    other = {f"layer{i}.w{i}": np.ones((3, 5), np.float32) * i for i in range(6)}
    ((_, said),) = _told(_seen(tmp_path, other))
    assert "8 of the 8 layers" in said
    unnamed = LOADS.replace('"w.safetensors"', "__import__('sys').argv[1]")
    assert not _told(_seen(tmp_path, other, unnamed))
    elsewhere = LOADS.replace('"w.safetensors"', '"vgg.safetensors"')
    assert not _told(_seen(tmp_path, _state("net."), elsewhere))


def test_a_class_beside_the_file_that_nothing_loads(tmp_path: Path) -> None:
    seen = _seen(tmp_path, _state("net."), "print(1)\n", unloaded=True)
    ((kind, said),) = _told(seen)
    assert kind == "prefix"
    assert "code beside it" in said
    assert not _told(_seen(tmp_path, _state("net."), "print(1)\n"))


@pytest.mark.parametrize("model", ["class Net(", "import torch.nn as nn\nclass Net(nn.Module):\n    pass\n", ""])
def test_code_that_tells_nothing(tmp_path: Path, model: str) -> None:
    assert not _told(_seen(tmp_path, _state("net."), model=model, unloaded=True))


def test_a_part_of_the_file_is_asked_for_by_its_key(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    state = {n: torch.tensor(w) for n, w in _state().items()}
    (tmp_path / "model.py").write_text(MODEL)
    for taken, kinds in ((".get('x')", []), ("['weights']", []), ("", ["prefix"])):
        (tmp_path / "train.py").write_text(
            f"import torch\nfrom model import Net\nnet = Net(16)\nnet.load_state_dict(torch.load('c.pt'){taken})\n")
        torch.save({"weights": state, "epoch": 3}, tmp_path / "c.pt")
        projects = audit([tmp_path / "model.py", tmp_path / "train.py"], rules=("C206",)).projects
        assert [k for k, _ in _told(examine(tmp_path / "c.pt", code=projects))] == kinds, taken


def test_a_wrapped_model_has_the_prefix_itself(tmp_path: Path) -> None:
    wrapped = LOADS.replace("Net(d=16)", "torch.nn.DataParallel(Net(d=16))")
    assert not _told(_seen(tmp_path, _state("module."), wrapped))
    ((kind, said),) = _told(_seen(tmp_path, _state(), wrapped))
    assert kind == "prefix"
    assert "'module.' taken away" in said


def test_a_class_derived_from_sequential_names_its_layers_by_their_numbers(tmp_path: Path) -> None:
    model = '''
from torch import nn
class Encoder(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
class Net(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.encoder = Encoder()
        self.embed = nn.Embedding(100, d)
        self.head = nn.Linear(d, 10)
'''
    parts = {n: t for n, t in _state().items() if n.startswith(("stem", "embed", "head"))}
    renamed = {n.replace("stem.", "encoder."): t for n, t in parts.items()}
    assert _told(_seen(tmp_path, renamed, model=model)) == []
    assert _told(_seen(tmp_path, parts, model=model))
