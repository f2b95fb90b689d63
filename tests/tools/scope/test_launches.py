"""Which script a command starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.scope.commands import launches
from traindx_tools.scope.tree import Tree


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("train.py", "other.py", "pkg/__init__.py", "pkg/mod.py", "sub/fit.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("print('x')\n")
    (tmp_path / "conf.yaml").write_text("lr: 1\n")
    (tmp_path / "run.sh").write_text("#!/bin/bash\nexport A=1\npython prepare.txt\nCUDA_VISIBLE_DEVICES=0 \\\n"
                                     "  torchrun --nproc_per_node 2 train.py \\\n  --lr 1\n")
    (tmp_path / "circle.sh").write_text("bash circle.sh\n")
    return tmp_path


@pytest.mark.parametrize(("command", "script"), [
    ("python train.py", "train.py"),
    ("python -u train.py --resume other.py", "train.py"),
    ("CUDA_VISIBLE_DEVICES=0 OMP_NUM_THREADS=1 python3.11 train.py", "train.py"),
    ("env A=1 nohup nice -n 10 timeout 60 python train.py > log.txt 2>&1 &", "train.py"),
    ("python -m pkg.mod --x 1", "pkg/mod.py"),
    ("torchrun --nproc_per_node=8 --nnodes 2 train.py --lr 1e-4", "train.py"),
    ("torchrun -m pkg.mod", "pkg/mod.py"),
    ("python -m torch.distributed.run --nproc_per_node 2 train.py", "train.py"),
    ("accelerate launch --config_file conf.yaml train.py", "train.py"),
    ("accelerate launch -m pkg.mod", "pkg/mod.py"),
    ("deepspeed --num_gpus 2 train.py --deepspeed ds.json", "train.py"),
    ("srun --ntasks=2 python train.py", "train.py"),
    ("mpirun -np 4 python train.py", "train.py"),
    ("uv run python train.py", "train.py"),
    ("bash run.sh", "train.py"),
    ("./run.sh", "train.py"),
    ("bash -c 'python train.py && echo done'", "train.py"),
    ("cd sub && python fit.py", "sub/fit.py"),
    ("pip install x; python train.py | tee log", "train.py"),
    ('python -c "from pkg.mod import main; main()"', "pkg/mod.py"),
])
def test_the_script_that_a_command_starts(command: str, script: str, project: Path) -> None:
    found = launches(command, Tree([], [project]), project)
    assert [f.script.resolve().relative_to(project.resolve()).as_posix() for f in found] == [script]


@pytest.mark.parametrize("command", ["", "true", "make train", "pytest -q", "python", "python nowhere.py", "echo $(",
                                     "bash circle.sh", "python 'train", "\0", "python -m json.tool"])
def test_other_commands_start_nothing_that_is_known(command: str, project: Path) -> None:
    assert launches(command, Tree([], [project]), project) == ()


def test_configuration_among_the_arguments(project: Path) -> None:
    (found,) = launches("python train.py --config=conf.yaml --data nowhere.yaml", Tree([], [project]), project)
    assert [c.name for c in found.configs] == ["conf.yaml"]


def test_a_path_of_another_machine_means_the_file_with_this_end(project: Path) -> None:
    tree = Tree([project / "train.py", project / "sub" / "fit.py"], [project])
    (found,) = launches("python /home/somebody/repo/sub/fit.py", tree, project)
    assert found.script.name == "fit.py"
