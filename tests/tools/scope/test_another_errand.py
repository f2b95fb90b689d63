"""A script that trains nothing is no training code, however alone it lies beside a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import examine
from traindx_tools.scope import Asked
from traindx_tools.scope.model import in_words

LOG = "".join(f"step {i} loss {2.0 * 0.99**i + 0.1:.4f} acc {1 - 0.9 * 0.99**i:.3f}\n" for i in range(0, 400, 4))
TRAIN = "import torch\nnet = torch.nn.Linear(2, 1)\nnet(torch.ones(1, 2)).sum().backward()\n"


def folder(at: Path, **scripts: str) -> Path:
    (at / "run.log").write_text(LOG)
    for name, text in scripts.items():
        (at / f"{name}.py").write_text(text)
    return at


@pytest.mark.parametrize("text", ['print("rename my photos")\n', "",
                                  "import os\nfor f in os.listdir():\n    print(f)\n"])
def test_another_script_in_the_folder_is_not_the_training_code(tmp_path: Path, text: str) -> None:
    seen = examine([folder(tmp_path, rename=text)], root=tmp_path)
    assert seen.code == ()
    assert "the training code (none was read)" in seen.verdict.reason
    told = " ".join(in_words(seen.scope.to_json(lambda p: Path(p).name)))
    assert "rename.py (nothing in it trains)" in told


@pytest.mark.parametrize("text", [TRAIN, "from mylib import run\nrun(epochs=3)\n",
                                  "import hydra\nhydra.utils.call(1)\n"])
def test_a_script_that_may_train_is_judged_and_named(tmp_path: Path, text: str) -> None:
    seen = examine([folder(tmp_path, fit=text)], root=tmp_path)
    assert [p.name for p in seen.code] == ["fit.py"]
    assert "the only script here" in " ".join(in_words(seen.scope.to_json(lambda p: Path(p).name)))


def test_what_a_person_names_is_judged_whatever_it_holds(tmp_path: Path) -> None:
    at = folder(tmp_path, rename='print("rename my photos")\n')
    named = examine([at / "run.log", at / "rename.py"], root=at)
    asked = examine([at], root=at, asked=Asked(entry=(str(at / "rename.py"),)))
    assert [p.name for s in (named, asked) for p in s.code] == ["rename.py", "rename.py"]


GAN = """import torch
net = torch.nn.Linear(2, 1)
for i in range(40):
    loss = net(torch.ones(1, 2)).sum()
    loss.backward()
    print(f"round {i}: objective of the critic {torch.log(loss):.3f}")
"""
VAE = GAN.replace("round {i}: objective of the critic", "it {i}| reconstruction")


def test_of_several_programs_none_of_which_writes_the_log_none_is_judged(tmp_path: Path) -> None:
    at = folder(tmp_path, gan=GAN, vae=VAE)
    for given in (at / "run.log", at):
        seen = examine([given], root=at)
        assert seen.code == ()
        told = " ".join(in_words(seen.scope.to_json(lambda p: Path(p).name)))
        assert "gan.py, vae.py (none of them writes a line of the log). --entry FILE or --all changes this." in told


@pytest.mark.parametrize(
    "own",
    [
        VAE.replace("it {i}| reconstruction {torch.log(loss):.3f}", "step {i} loss {loss:.4f} acc {1 / loss:.3f}"),
        VAE + "line = str(loss)\nprint(line)\n",  # may print anything
        VAE + "from transformers import Trainer\n",  # a library prints
        VAE + "from tqdm import tqdm\nfor i in tqdm([1]):\n    pass\n",
        TRAIN,  # prints nothing, so that something else does
        "def broken(:\n",
    ],
)
def test_a_program_that_may_have_written_the_log_is_judged(tmp_path: Path, own: str) -> None:
    at = folder(tmp_path, gan=GAN, own=own)
    assert "own.py" in [p.name for p in examine([at / "run.log"], root=at).scope.judged] or own.startswith("def broken")


def test_records_are_written_by_what_writes_records(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text("".join(f'{{"step": {i}, "loss": {1 / (i + 1):.4f}}}\n' for i in range(40)))
    own = VAE + "import json\nopen('m', 'w').write(json.dumps({'objective': 1}))\n"
    for name, text in (("gan", GAN), ("own", own)):
        (tmp_path / f"{name}.py").write_text(text)
    assert "own.py" in [p.name for p in examine([tmp_path / "m.jsonl"], root=tmp_path).scope.judged]
