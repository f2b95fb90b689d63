"""`set:key=value` finds where a key is really read, and changes that place alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.interventions import prepare
from traindx_tools.experiments.place import Prepared

ARGPARSE = '''
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-l", "--learning-rate", "--lr", type=float, default=1e-3)
parser.add_argument("--betas", type=float, nargs=2, default=(0.9, 0.999))
parser.add_argument("--amp", action="store_true")
parser.add_argument("--shuffle", action=argparse.BooleanOptionalAction)
parser.add_argument("--name", dest="run_name")
args = parser.parse_args()
'''


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_name(path.name.replace("_dot_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def made(change: str, command: str, folder: Path) -> Prepared:
    return prepare(parse_change(change), command, folder)


@pytest.mark.parametrize(("command", "change", "expected"), [
    ("python train.py", "set:learning_rate=0.1", "python train.py --learning-rate 0.1"),
    ("python train.py", "set:lr=0.1", "python train.py --learning-rate 0.1"),
    ("python train.py --lr 1e-3 --amp", "set:lr=0.1", "python train.py --lr 0.1 --amp"),
    ("python train.py --lr=1e-3 > log.txt 2>&1", "set:lr=-0.1", "python train.py --lr=-0.1 > log.txt 2>&1"),
    ("python train.py --lr -1 --amp", "set:lr=2", "python train.py --lr 2 --amp"),
    ("python train.py | tee 'a b.log'", "set:lr=0.1", "python train.py --learning-rate 0.1 | tee 'a b.log'"),
    ("python train.py 2> err.log", "set:lr=0.1", "python train.py --learning-rate 0.1 2> err.log"),
    ("cd . && A=1 python train.py \\\n  --amp; echo done", "set:lr=0.1",
     "cd . && A=1 python train.py \\\n  --amp --learning-rate 0.1; echo done"),
    ("torchrun --nproc_per_node=2 train.py --amp", "set:lr=0.1",
     "torchrun --nproc_per_node=2 train.py --amp --learning-rate 0.1"),
    ("python -m train", "set:lr=0.1", "python -m train --learning-rate 0.1"),
    ("python train.py", "set:betas=0.5 0.9", "python train.py --betas 0.5 0.9"),
    ("python train.py", "set:amp=true", "python train.py --amp"),
    ("python train.py --amp --lr 1", "set:amp=false", "python train.py  --lr 1"),
    ("python train.py", "set:shuffle=false", "python train.py --no-shuffle"),
    ("python train.py", "set:run_name=it's", "python train.py --name 'it'\"'\"'s'"),
    ("python train.py", "set:lr=0.1,run_name=a", "python train.py --learning-rate 0.1 --name a"),
])
def test_an_option_of_the_command_line(tmp_path: Path, command: str, change: str, expected: str) -> None:
    write(tmp_path, train_dot_py=ARGPARSE)
    prepared = made(change, command, tmp_path)
    assert prepared.command == expected
    assert not prepared.files


def test_options_that_an_imported_file_declares_and_a_script_of_a_shell(tmp_path: Path) -> None:
    write(tmp_path, train_dot_py="from options import args\n", options_dot_py=ARGPARSE,
          run_dot_sh="set -e\n# the run\npython train.py --lr 1e-3 \"$@\"\n")
    assert made("set:name=x", "python train.py", tmp_path).command == "python train.py --name x"
    prepared = made("set:lr=0.5", "bash run.sh", tmp_path)
    assert prepared.command == "bash run.sh"
    assert prepared.files == {"run.sh": b"set -e\n# the run\npython train.py --lr 0.5 \"$@\"\n"}


@pytest.mark.parametrize(("source", "change", "expected"), [
    ("import tyro\nfrom dataclasses import dataclass\n@dataclass\nclass O:\n    weight_decay: float = 0.1\n"
     "@dataclass\nclass C:\n    optim: O\n    lr: float = 1.0\nc = tyro.cli(C)\n", "set:optim.weight_decay=0",
     "--optim.weight-decay 0"),
    ("import fire\ndef main(lr=1.0, batch_size=8): ...\nfire.Fire(main)\n", "set:batch_size=4", "--batch_size 4"),
    ("import click\n@click.command()\n@click.option('--batch-size', default=8)\n@click.option('--amp/--no-amp')\n"
     "def main(batch_size, amp): ...\nmain()\n", "set:amp=false", "--no-amp"),
    ("from transformers import HfArgumentParser\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n"
     "    per_device: int = 8\np = HfArgumentParser((A,))\n", "set:per_device=2", "--per_device 2"),
    ("from lightning.pytorch.cli import LightningCLI\nLightningCLI()\n", "set:trainer.precision=32",
     "--trainer.precision 32"),
])
def test_other_parsers_of_command_lines(tmp_path: Path, source: str, change: str, expected: str) -> None:
    write(tmp_path, train_dot_py=source)
    assert made(change, "python train.py", tmp_path).command == f"python train.py {expected}"


HYDRA = ("import hydra\n@hydra.main(version_base=None, config_path='conf', config_name='main')\n"
         "def run(cfg): ...\nrun()\n")


def test_hydra_takes_a_key_of_its_configuration_or_a_group(tmp_path: Path) -> None:
    write(tmp_path, train_dot_py=HYDRA, conf__main_dot_yaml="defaults:\n  - optim: adam\ntrain:\n  epochs: 3\n",
          conf__optim__adam_dot_yaml="lr: 0.1\n", conf__optim__sgd_dot_yaml="lr: 0.2\nmomentum: 0.9\n",
          conf__unused_dot_yaml="other: 1\n")
    def typed(change: str) -> str:
        return made(change, "python train.py", tmp_path).command.removeprefix("python train.py ")

    assert typed("set:train.epochs=1") == "train.epochs=1"
    assert typed("set:epochs=1") == "train.epochs=1"
    assert typed("set:optim.lr=0.5") == "optim.lr=0.5"
    assert typed("set:optim=sgd") == "optim=sgd"
    assert made("set:optim.lr=0.5", "python train.py optim.lr=0.1 -m", tmp_path).command == (
        "python train.py optim.lr=0.5 -m")
    with pytest.raises(BadUsage, match="nothing named 'other'"):
        typed("set:other=2")


YAML = """# the run
optim:
  lr: 1.0e-3   # as in the paper
  betas: [0.9, 0.999]
  name: "adam"  # or sgd
data: {batch: 8, shuffle: true}
text: |
  several
  lines
"""


@pytest.mark.parametrize(("change", "old", "new"), [
    ("set:optim.lr=0.00001", "lr: 1.0e-3 ", "lr: 1.0e-05 "),
    ("set:lr=0.5", "1.0e-3", "0.5"),
    ("set:betas=0.5,0.9", "[0.9, 0.999]", "[0.5, 0.9]"),
    ("set:name=sgd", '"adam"', "sgd"),
    ("set:name=no", '"adam"', "'no'"),
    ("set:shuffle=false", "shuffle: true", "shuffle: false"),
    ("set:data.batch=1", "batch: 8", "batch: 1"),
])
def test_a_yaml_file_that_the_command_names_keeps_everything_else(tmp_path: Path, change: str, old: str,
                                                                 new: str) -> None:
    write(tmp_path, train_dot_py="import sys, yaml\ncfg = yaml.safe_load(open(sys.argv[1]))\n", a_dot_yaml=YAML)
    prepared = made(change, "python train.py a.yaml", tmp_path)
    assert prepared.files["a.yaml"] == YAML.replace(old, new).encode()
    assert prepared.command == "python train.py a.yaml"


def test_json_and_toml_files_that_the_source_names(tmp_path: Path) -> None:
    toml = '# run\nseed = 1  # fixed\n[optim]\nlr = 1e-3 # rate\nname = "a # b" # text\n[optim.more]\nlr = 2\n'
    text = '{\n\t"model": {"width": 8},\n\t"list": [1, 2]\n}\n'
    write(tmp_path, train_dot_py="a, b = open('conf/c.toml'), open('m.json')\n", conf__c_dot_toml=toml, m_dot_json=text)
    assert made("set:optim.lr=0.5", "python train.py", tmp_path).files == {
        "conf/c.toml": toml.replace("lr = 1e-3 #", "lr = 0.5 #").encode()}
    assert made("set:name=sgd", "python train.py", tmp_path).files["conf/c.toml"] == (
        toml.replace('"a # b"', '"sgd"').encode())
    changed = made("set:width=4", "python train.py", tmp_path).files["m.json"]
    assert json.loads(changed or b"")["model"]["width"] == 4
    assert b'\n\t"model"' in (changed or b"")


def test_several_places_are_an_error_that_names_them_and_one_can_be_told(tmp_path: Path) -> None:
    write(tmp_path, train_dot_py="import sys\n", a_dot_yaml="x: {lr: 1}\ny: {lr: 2}\n", b_dot_yaml="lr: 3\n")
    with pytest.raises(BadUsage) as error:
        made("set:lr=5", "python train.py a.yaml b.yaml", tmp_path)
    assert all(t in str(error.value) for t in ("3 places", "set:a.yaml:x.lr=...", "set:b.yaml:lr=..."))
    assert made("set:a.yaml:y.lr=5", "python train.py a.yaml b.yaml", tmp_path).files == {
        "a.yaml": b"x: {lr: 1}\ny: {lr: 5}\n"}


SOURCE = '''"""Größe."""
from dataclasses import dataclass, field

LR = 1e-3  # rate
CONFIG = {"größe": 8, "width": 16}

@dataclass
class Config:
    dropout: float = 0.1
    steps: int = field(default=10)

def main():
    options = dict(warmup=100)
'''


@pytest.mark.parametrize(("change", "old", "new"), [
    ("set:lr=0.5", "LR = 1e-3", "LR = 0.5"),
    ("set:width=4", '"width": 16', '"width": 4'),
    ("set:größe=4", '"größe": 8', '"größe": 4'),
    ("set:dropout=0", "float = 0.1", "float = 0"),
    ("set:Config.steps=5", "default=10", "default=5"),
    ("set:warmup=0", "warmup=100", "warmup=0"),
])
def test_a_default_in_the_source_is_edited_where_it_stands(tmp_path: Path, change: str, old: str, new: str) -> None:
    write(tmp_path, train_dot_py="import settings\n", settings_dot_py=SOURCE)
    prepared = made(change, "python train.py", tmp_path)
    assert prepared.files == {"settings.py": SOURCE.replace(old, new).encode()}


def test_nothing_of_this_name_says_what_comes_near(tmp_path: Path) -> None:
    write(tmp_path, train_dot_py=ARGPARSE)
    with pytest.raises(BadUsage, match="near it: learning_rate"):
        made("set:learning_rat=1", "python train.py", tmp_path)
    with pytest.raises(BadUsage, match="starts no Python file"):
        made("set:lr=1", "make train", tmp_path)
    with pytest.raises(BadUsage, match="is a flag"):
        made("set:amp=0.5", "python train.py", tmp_path)
    write(tmp_path, broken_dot_yaml="a: [1\n", other_dot_py="open('broken.yaml')\n")
    with pytest.raises(BadUsage, match="cannot be read"):
        made("set:a=1", "python other.py", tmp_path)


def test_the_workspace_is_not_written(tmp_path: Path) -> None:
    write(tmp_path, train_dot_py=SOURCE, a_dot_yaml=YAML)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*")}
    made("set:optim.lr=0.5", "python train.py a.yaml", tmp_path)
    made("set:dropout=0.5", "python train.py", tmp_path)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*")} == before
