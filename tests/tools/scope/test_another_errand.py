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
