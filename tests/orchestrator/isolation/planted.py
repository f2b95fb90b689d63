"""Differences that are planted in small programs, and how each is searched: what the benchmark and the tests run.

Each program takes a fraction of a second by itself and records its loss as any training does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from traindx.isolation import (
    Request,
    isolate_commits,
    isolate_config,
    isolate_data,
    isolate_runs,
    isolate_weights,
)

PYTHON = sys.executable
LOSS = 'for step in range(5):\n    print(f"step {step} loss {loss}")\n'


@dataclass(frozen=True)
class Found:
    """What a search named, the runs that it took, and the fewest that any search can take (0: there is no bound)."""

    named: list[list[str]]
    runs: int
    fewest: int


@dataclass(frozen=True)
class Planted:
    """`expected`: what has to be named, exactly."""

    name: str
    among: str
    expected: list[list[str]]
    search: Callable[[Path, Request], Found]
    needs: str = ""
    """A package without which it cannot run."""


def _of(answer: Any) -> Found:
    levels = answer.levels
    return Found([list(c) for c in levels[-1].result.named], answer.runs, sum(v.result.bound for v in levels))


def _settings(count: int, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    good = {"optim": {"lr": 0.1, "clip": 1.0}, "other": {f"k{i}": i for i in range(count - 2)}}
    bad = {"optim": {"lr": 9.0, "clip": 0.5}, "other": {f"k{i}": i + 1 for i in range(count - 2)}, **more}
    return good, bad


def _config(rule: str, write: Callable[[Any], str], suffix: str, count: int = 40, **more: Any) -> Any:
    read = {"json": "json.load(open(sys.argv[1]))", "yaml": "yaml.safe_load(open(sys.argv[1]))"}[suffix]

    def search(folder: Path, request: Request) -> Found:
        (folder / "train.py").write_text(f"import {suffix}, sys\nc = {read}\nloss = 5.0 if {rule} else 0.3\n" + LOSS)
        for name, tree in zip(("good", "bad"), _settings(count, **more), strict=True):
            (folder / f"{name}.{suffix}").write_text(write(tree))
        return _of(isolate_config(str(folder / f"good.{suffix}"), str(folder / f"bad.{suffix}"),
                                  replace(request, command=f"{PYTHON} train.py {{config}}", fails_if=("loss>1",))))

    return search


def _yaml(tree: Any) -> str:
    import yaml

    return str(yaml.safe_dump(tree, sort_keys=False))


def _noisy(folder: Path, request: Request) -> Found:
    (folder / "train.py").write_text(
        "import json, random, sys\nc = json.load(open(sys.argv[1]))\n"
        "rate = 0.85 if c['other']['k7'] == 8 else 0.02\nloss = 5.0 if random.random() < rate else 0.3\n" + LOSS)
    for name, tree in zip(("good", "bad"), _settings(12), strict=True):
        (folder / f"{name}.json").write_text(json.dumps(tree))
    return _of(isolate_config(str(folder / "good.json"), str(folder / "bad.json"),
                              replace(request, command=f"{PYTHON} train.py {{config}}", fails_if=("loss>1",))))


def _command_line(folder: Path, request: Request) -> Found:
    (folder / "train.py").write_text("import sys\nloss = 5.0 if '--fp16' in sys.argv else 0.3\n" + LOSS)
    options = [f"--k{i} {i}" for i in range(15)]
    good = f"{PYTHON} train.py {' '.join(options)}"
    bad = f"{PYTHON} train.py --fp16 {' '.join(o + '1' for o in options)}"
    return _of(isolate_config(good, bad, replace(request, fails_if=("loss>1",))))


def _environment(folder: Path, request: Request) -> Found:
    (folder / "train.py").write_text("import os\nloss = 5.0 if os.environ.get('PRECISION') == 'low' else 0.3\n" + LOSS)
    for name, value in (("good", "high"), ("bad", "low")):
        others = "".join(f"OTHER_{i}={name}\n" for i in range(20))
        (folder / f"{name}.env").write_text(f"{others}PRECISION={value}\ntorch=={len(name)}.0\n")
    return _of(isolate_config(str(folder / "good.env"), str(folder / "bad.env"),
                              replace(request, command=f"{PYTHON} train.py", fails_if=("loss>1",))))


def git(folder: Path, *words: str) -> str:
    """Git in a repository of its own, whatever the person's settings."""
    own = ("user.name=a", "user.email=a@b", "commit.gpgsign=false", "core.hooksPath=/dev/null")
    named = [word for setting in own for word in ("-c", setting)]
    command = ["git", "-C", str(folder), *named, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, program: str, subject: str) -> None:
    """One commit of train.py and a file that changes each time."""
    (folder / "train.py").write_text(program)
    (folder / "notes.txt").write_text(subject)
    git(folder, "add", "train.py", "notes.txt")
    git(folder, "commit", "-q", "-m", subject)


WELL, ILL = f"loss = 0.3\n{LOSS}", f"loss = 5.0\n{LOSS}"


def _commits(broken: tuple[int, ...], count: int, at: int) -> Any:
    def search(folder: Path, request: Request) -> Found:
        git(folder, "init", "-q", "-b", "main")
        for i in range(count + 1):
            program = "import no_such_module\n" if i in broken else ILL if i >= at else WELL
            commit(folder, program, f"change {i}")
        return _short(_of(isolate_commits(f"HEAD~{count}..HEAD", replace(
            request, command=f"{PYTHON} train.py", fails_if=("loss>1",)))))

    return search


def _merged(folder: Path, request: Request) -> Found:
    git(folder, "init", "-q", "-b", "main")
    commit(folder, WELL, "start")
    git(folder, "checkout", "-q", "-b", "side")
    for i in range(6):
        commit(folder, ILL if i >= 4 else WELL, f"side {i}")
    git(folder, "checkout", "-q", "main")
    for i in range(8):
        (folder / "other.txt").write_text(str(i))
        git(folder, "add", "other.txt")
        git(folder, "commit", "-q", "-m", f"main {i}")
    git(folder, "merge", "-q", "--no-ff", "-m", "merge side", "side")
    return _short(_of(isolate_commits("HEAD~9..HEAD", replace(
        request, command=f"{PYTHON} train.py", fails_if=("loss>1",)))))


def _short(found: Found) -> Found:
    """Subjects without the ids, which depend on the time."""
    return replace(found, named=[[c.partition(" ")[2] for c in cause] for cause in found.named])


READ_SHARDS = ("import glob, numpy as np\n"
               "x = np.concatenate([np.load(f)['x'] for f in sorted(glob.glob('data/*.npz'))])\n"
               "loss = float(np.abs(x).mean())\n")


def _shard(folder: Path, request: Request) -> Found:
    (folder / "train.py").write_text(READ_SHARDS + LOSS)
    (folder / "data").mkdir()
    rng = np.random.default_rng(0)
    for i in range(64):
        x = rng.normal(size=(20, 4))
        x[13] *= 1e6 if i == 37 else 1
        np.savez(folder / "data" / f"shard_{i:03d}.npz", x=x)
    return _of(isolate_data(None, folder / "data", replace(
        request, command=f"{PYTHON} train.py", fails_if=("loss>2",))))


def _folders(folder: Path, request: Request) -> Found:
    (folder / "train.py").write_text(READ_SHARDS.replace("'data/*.npz'", "sys.argv[1] + '/*.npz'").replace(
        "import glob", "import sys, glob") + LOSS)
    rng = np.random.default_rng(0)
    for name in ("v1", "v2"):
        (folder / name).mkdir()
    for i in range(16):
        x = rng.normal(size=(50, 4))
        np.savez(folder / "v1" / f"part{i}.npz", x=x)
        x = x + 0.01
        x[41] = np.nan if i == 11 else x[41]
        np.savez(folder / "v2" / f"part{i}.npz", x=x)
    return _of(isolate_data(folder / "v1", folder / "v2", replace(
        request, command=f"{PYTHON} train.py {{data}}", fails_if=("nan(loss)",))))


def _rows(folder: Path, request: Request) -> Found:
    (folder / "train.py").write_text("import sys, numpy as np\nd = np.load(sys.argv[1])\n"
                                     "loss = float((d['x'].sum(1) * d['y']).mean())\n" + LOSS)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(10_000, 8)).astype(np.float32), rng.integers(0, 2, 10_000)
    np.savez(folder / "good.npz", x=x, y=y)
    x = x + np.float32(0.001)
    x[6203], y[6203] = np.inf, 1
    np.savez(folder / "bad.npz", x=x, y=y)
    return _of(isolate_data(folder / "good.npz", folder / "bad.npz", replace(
        request, command=f"{PYTHON} train.py {{data}}", fails_if=("nan(loss)",))))


def _left_out(folder: Path, request: Request) -> Found:
    (folder / "train.py").write_text("import numpy as np\nx, y = np.load('x.npy'), np.load('y.npy')\n"
                                     "loss = float(np.max(np.abs(x[:, 0] - y)))\n" + LOSS)
    y = np.arange(10_000, dtype=np.float64)
    x = np.stack([y, y], 1)
    x[[17, 5_000, 9_998], 0] += 7
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    return _of(isolate_data(None, folder / "x.npy", replace(
        request, command=f"{PYTHON} train.py", fails_if=("loss>1",))))


def _weights(folder: Path, request: Request) -> Found:
    (folder / "evaluate.py").write_text("import sys, numpy as np\nw = np.load(sys.argv[1])\n"
                                        "loss = max(float(np.abs(w[k]).max()) for k in w.files)\n" + LOSS)
    rng = np.random.default_rng(0)
    good = {f"layer{i}.weight": rng.normal(size=(4, 4)) for i in range(24)}
    bad = {k: v + 0.01 for k, v in good.items()}
    bad["layer15.weight"] = bad["layer15.weight"] * 1e4
    np.savez(folder / "good.npz", **good)
    np.savez(folder / "bad.npz", **bad)
    return _of(isolate_weights(folder / "good.npz", folder / "bad.npz", replace(
        request, command=f"{PYTHON} evaluate.py {{weights}}", fails_if=("loss>100",))))


def _torch_weights(folder: Path, request: Request) -> Found:
    import torch

    (folder / "evaluate.py").write_text("import sys, torch\nw = torch.load(sys.argv[1], weights_only=True)['model']\n"
                                        "loss = 5.0 if w['layer3.bias'].abs().max() > 9 else 0.3\n" + LOSS)
    torch.manual_seed(0)
    good = {f"layer{i}.{n}": torch.randn(4) for i in range(6) for n in ("weight", "bias")}
    torch.save({"model": good, "epoch": 1}, folder / "good.pt")
    bad = {k: v + (20 if k == "layer3.bias" else 0.1) for k, v in good.items()}
    torch.save({"model": bad, "epoch": 2}, folder / "bad.pt")
    return _of(isolate_weights(folder / "good.pt", folder / "bad.pt", replace(
        request, command=f"{PYTHON} evaluate.py {{weights}}", fails_if=("loss>1",))))


TRAIN = """
import random, torch
torch.manual_seed(0)
{parts}
def main():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), {module}torch.nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in torch.utils.data.DataLoader(Rows(), 8, num_workers={workers}):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
"""
ROWS = """
class Rows(torch.utils.data.Dataset):
    x = torch.randn(32, 8, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], (i * 7) % 3
"""
RACE = "import time\nshared = torch.zeros(8).share_memory_()\n" + ROWS.replace("        return self.x[i],", """
        shared.copy_(self.x[i])
        time.sleep(random.SystemRandom().random() * 0.003)
        return shared.clone(),""")
KERNEL = ROWS + """

class Total(torch.nn.Module):
    def forward(self, x):
        if torch.are_deterministic_algorithms_enabled():
            return x + x.sum(0, keepdim=True)
        order = list(range(len(x)))
        random.SystemRandom().shuffle(order)
        return x + sum(x[i] for i in order)
"""
AUGMENT = ROWS.replace("return self.x[i],", "return self.x[i] * random.uniform(0.9, 1.1),")


def _runs(parts: str, module: str = "", workers: int = 0) -> Any:
    def search(folder: Path, request: Request) -> Found:
        (folder / "train.py").write_text(TRAIN.format(parts=parts, module=module, workers=workers))
        answer = isolate_runs(replace(request, command=f"{PYTHON} train.py"), steps=20)
        found = answer.result.parting
        assert found is not None, answer.result
        return Found([[found.kind, found.name, found.origin, *(" or ".join(r) for r in answer.result.removing)]],
                     answer.result.runs, 0)

    return search


PLANTED = (
    Planted("config key", "40 keys (JSON)", [["optim.lr: 0.1 -> 9.0"]],
            _config("c['optim']['lr'] > 1", json.dumps, "json")),
    Planted("two keys together", "40 keys (YAML)", [["optim.clip: 1.0 -> 0.5", "other.k30: 30 -> 31"]],
            _config("c['optim']['clip'] < 1 and c['other']['k30'] == 31", _yaml, "yaml")),
    Planted("added section", "41 keys (JSON)", [["aug.mix: not set -> 2"]],
            _config("c.get('aug', {}).get('mix') == 2", json.dumps, "json", aug={"mix": 2})),
    Planted("in 85 % of runs", "12 keys (JSON)", [["other.k7: 7 -> 8"]], _noisy),
    Planted("command line", "16 options", [["not given -> --fp16"]], _command_line),
    Planted("environment", "21 variables", [["PRECISION: high -> low"]], _environment),
    Planted("commit", "30 commits", [["change 19"]], _commits((), 30, 19)),
    Planted("commit, some broken", "30 commits", [["change 8"]], _commits((14, 15, 16, 22), 30, 8)),
    Planted("commit in a merge", "9 and 6 commits", [["side 4"]], _merged),
    Planted("shard, then row", "64 shards of 20", [["row 13"]], _shard),
    Planted("file, then row", "16 files of 50", [["row 41"]], _folders),
    Planted("row", "10,000 rows", [["row 6203"]], _rows),
    Planted("three rows", "10,000 rows left out", [["row 17"], ["row 5000"], ["row 9998"]], _left_out),
    Planted("tensor (npz)", "24 tensors", [["layer15.weight"]], _weights),
    Planted("tensor (torch)", "12 tensors", [["model.layer3.bias"]], _torch_weights, "torch"),
    Planted("worker race", "4 remedies", [["batch", "batch[0]", "values", "no workers"]], _runs(RACE, workers=2),
            "torch"),
    Planted("kernel", "4 remedies", [["module", "1 (Total)", "kernel", "deterministic"]], _runs(KERNEL, "Total(), "),
            "torch"),
    Planted("augmentation seed", "4 remedies", [["batch", "batch[0]", "values", "seeds"]], _runs(AUGMENT), "torch"),
)
