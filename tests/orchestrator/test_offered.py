"""A check becomes a command only where everything in it is the person's own."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

import pytest

from traindx.code_names import CodeNames, in_these_names, read_names
from traindx.offered import PLACEHOLDERS, Ground, can_be_typed
from traindx.places import Places
from traindx_tools.catalog.catalog import load_catalog

TRAIN = """
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

def main():
    data = TensorDataset(torch.randn(8, 4), torch.zeros(8).long())
    loader = DataLoader(data, batch_size=4)
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.AdamW(net.parameters(), lr=0.1)
    for step, (feats, classes) in enumerate(loader):
        objective = F.cross_entropy(net(feats), classes)
        objective.backward()
        opt.step()

if __name__ == "__main__":
    main()
"""


def ground(folder: Path, code: str = TRAIN, told: str = "", subject: str = "log.txt") -> Ground:
    script = folder / "train.py"
    script.write_text(code)
    return Ground(subject, Places(folder, (script,)), read_names([ast.parse(code)]), told)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("snippet", "said"), [
    ("print(model.training)", "print(net.training)"),
    ("print(loss.requires_grad, loss.grad_fn)", "print(objective.requires_grad, objective.grad_fn)"),
    ("print(optimizer.param_groups[0]['lr'])", "print(opt.param_groups[0]['lr'])"),
    ("print(labels.min().item(), labels.max().item())", "print(classes.min().item(), classes.max().item())"),
    ("[dataset[i] for i in range(len(dataset))]", "[data[i] for i in range(len(data))]"),
    ("print(torch.unique(labels))", "print(torch.unique(classes))"),
    ("import pickle; pickle.dumps(dataset)", "import pickle; pickle.dumps(data)"),
    ("print(z.std())", ""),
    ("print(x.unique())", ""),
    ("print(jnp.zeros(1).dtype)", ""),
    ("print(model.head.weight)", ""),
    ("print(batch['labels'].min())", ""),
    ("print(scaler.get_scale())", ""),
    ("print(", ""),
])
def test_a_line_of_python_has_the_codes_names_or_is_not_offered(here: Path, snippet: str, said: str) -> None:
    assert ground(here).fill(snippet, {}) == said


def test_a_thing_that_has_two_names_has_none() -> None:
    names = read_names([ast.parse("import torch\na.backward()\nb.backward()\n")])
    assert names.name_for("loss") is None
    assert in_these_names("print(loss)", names) == ""
    assert in_these_names("print(loss)", CodeNames(frozenset({"loss"}))) == "print(loss)"


@pytest.mark.parametrize(("command", "measured", "said"), [
    ("traindx log PATH --format csv", {}, "traindx log log.txt --format csv"),
    ("traindx diagnose PATH --run CMD", {}, "traindx diagnose log.txt --run 'python train.py'"),
    ("traindx run --probe codes -- CMD", {}, "traindx run --probe codes -- python train.py"),
    ("python -c \"C = {classes|10}; print(C)\"", {"classes": 4}, 'python -c "C = 4; print(C)"'),
    ("python -c \"C = {classes|10}; print(C)\"", {}, ""),
    ("python -c \"import torch; print(torch.load('checkpoint.pt'))\"", {}, ""),
    ("python -c \"import transformers\"", {}, ""),
    ("pip show {package|transformers}", {"package": "transformers"}, ""),
    ("pip show {package|transformers}", {"package": "torch"}, "pip show torch"),
    ("JAX_DISABLE_JIT=1 python train.py", {}, ""),
    ("CUDA_LAUNCH_BLOCKING=1 python train.py", {}, ""),
    ("py-spy dump --pid PID", {}, ""),
    ("nvidia-smi", {}, ""),
    ("grep -n \"zero_grad\" train.py", {}, 'grep -n "zero_grad" train.py'),
])
def test_a_command_of_the_shell_is_filled_or_not_offered(here: Path, command: str, measured: dict[str, object],
                                                         said: str) -> None:
    assert ground(here).fill(command, measured) == said


def test_a_checkpoint_that_is_there_is_named_and_an_accelerator_that_is_used_is_asked(here: Path) -> None:
    (here / "out").mkdir()
    (here / "out" / "epoch2.pt").write_bytes(b"")
    of = ground(here, told="CUDA error: device-side assert triggered")
    load = "python -c \"import torch; print(list(torch.load('checkpoint.pt', weights_only=True)))\""
    assert of.fill(load, {}) == load.replace("checkpoint.pt", "out/epoch2.pt")
    assert of.fill("nvidia-smi", {}) == "nvidia-smi"
    assert of.fill("CUDA_LAUNCH_BLOCKING=1 python train.py", {}) == "CUDA_LAUNCH_BLOCKING=1 python train.py"


def test_from_another_folder_a_command_that_names_a_file_changes_into_the_workspace(tmp_path: Path,
                                                                                  monkeypatch: pytest.MonkeyPatch
                                                                                  ) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my run"
    folder.mkdir()
    of = ground(folder, subject="'my run'")
    assert of.fill('grep -n "zero_grad" train.py', {}) == "cd 'my run' && grep -n \"zero_grad\" train.py"
    assert of.fill("traindx diagnose PATH --run CMD", {}) == "traindx diagnose 'my run' --run 'python train.py'"


@pytest.mark.parametrize("code", ["", "x = 1\n", TRAIN])
def test_no_check_of_the_catalog_leaves_anything_open(here: Path, code: str) -> None:
    of = ground(here, code)
    bad = []
    for mode in load_catalog().values():
        for step in (*mode.confirm, *mode.rule_out):
            made = of.fill(step.command, {})
            if PLACEHOLDERS.search(made) or "|10}" in made or "checkpoint.pt" in made or "final.pt" in made:
                bad.append(made)
            if can_be_typed(made):
                shlex.split(made)
            elif made:
                ast.parse(made)
    assert bad == []


@pytest.mark.parametrize(("code", "command"), [
    (TRAIN, "python train.py"),
    ("import sys\nsteps = int(sys.argv[1]) if len(sys.argv) > 1 else 3\n", "python train.py"),
    ("import sys\nsteps = int(sys.argv[1])\n", None),
    ("import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\n", None),
    ("import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', required=True)\n", None),
    ("import os\nrank = os.environ['LOCAL_RANK']\n", "torchrun --nproc_per_node 2 train.py"),
    ("dist.init_process_group('gloo', init_method='file:///tmp/x', rank=r)\nmp.spawn(f)\n", "python train.py"),
])
def test_the_training_command_is_one_that_starts(here: Path, code: str, command: str | None) -> None:
    assert ground(here, code).places.training_command == command


GROUPS = TRAIN.replace("torch.optim.AdamW(net.parameters(), lr=0.1)",
                       'torch.optim.AdamW([{"params": net.weight_of.parameters()}, {"params": net.head.parameters()}])')


def test_the_model_of_a_list_of_groups_is_known(here: Path) -> None:
    assert ground(here, GROUPS).fill("print(model.training)", {}) == "print(net.training)"
    two = GROUPS.replace("net.head", "other.head")
    assert ground(here, two).fill("print(model.training)", {}) == ""


def test_a_search_has_the_codes_names_and_files(here: Path) -> None:
    assert ground(here).fill('grep -nE "\\+= *loss" train.py', {}) == 'grep -nE "\\+= *objective" train.py'
    (here / "train.py").unlink()
    (here / "fit.py").write_text(TRAIN)
    there = Ground("log.txt", Places(here, (here / "fit.py",)), read_names([ast.parse(TRAIN)]))
    assert there.fill('grep -n "zero_grad" train.py', {}) == 'grep -n "zero_grad" fit.py'
    many = tuple(here / f"part{i}.py" for i in range(9))
    for file in many:
        file.write_text("x = 1\n")
    assert Ground("log.txt", Places(here, many), CodeNames()).fill('grep -n "zero_grad" train.py', {}) == ""
