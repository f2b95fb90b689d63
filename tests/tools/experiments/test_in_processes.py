"""Changes as an experiment applies them: in processes of their own, several ranks, and one that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.interventions import prepare_all, settings_options
from traindx_tools.experiments.live.applied import applied_in, applied_of
from traindx_tools.live.settings import Settings, environment_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PATIENCE = 280
"""Seconds for one run: a busy machine takes a minute to import torch."""

TRAIN = """
import random, sys, time
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self): return 32
    def __getitem__(self, i):
        x = torch.full((4,), i / 32) + torch.rand(4) * float("augment" in sys.argv)
        return x, i % 2

def main():
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    workers = {"num_workers": 1, "multiprocessing_context": "spawn"} if "spawn" in sys.argv else {}
    loader = DataLoader(Data(), batch_size=8, shuffle="spawn" not in sys.argv, **workers)
    for epoch in range(100 if "long" in sys.argv else 2):
        sums = []
        for x, y in loader:
            sums.append(x.sum().item())
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
            if "long" in sys.argv: print("step", flush=True); time.sleep(0.05)
        print(loss.item().hex(), *(s.hex() for s in sums), random.random(), np.random.rand())

if __name__ == "__main__": main()
"""

RANKS = """
import os, torch, torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.arange(128.0).reshape(32, 4) / 128, torch.arange(32) % 2)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
first = model.module[0].weight.detach().clone()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
now = [p.detach() for p in model.parameters()]
others = [torch.zeros_like(now[2]) for _ in range(2)]
dist.all_gather(others, now[2])
line = f"{int(torch.equal(first, now[0]))} {int(torch.equal(*others))} {len(loader)}\\n"
os.write(1, line.encode())  # at once: the other rank prints too
dist.destroy_process_group()
"""


def ran(folder: Path, change: str, script: str, *words: str, launcher: str = sys.executable) -> tuple[list[str], Path]:
    """The lines that the run with a change prints (or with several, each after a blank), and its run folder."""
    (folder / "train.py").write_text(script)
    changes = [parse_change(c) for c in change.split()]
    prepared = prepare_all(changes, f"{launcher} train.py {' '.join(words)}".strip(), folder)
    live = folder / f"live{len(list(folder.glob('live*')))}"
    base = {**os.environ, **prepared.environment, "OMP_NUM_THREADS": "1"}
    environment = environment_for(Settings(str(live), (), options=settings_options(prepared)), base)
    done = subprocess.run(prepared.command, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines(), live


def test_the_placebo_is_the_control_bit_for_bit(tmp_path: Path) -> None:
    control, _ = ran(tmp_path, "", TRAIN)
    placebo, live = ran(tmp_path, "placebo", TRAIN)
    assert placebo == control
    assert applied_of(parse_change("placebo"), live).times == 1


def test_a_spawned_worker_applies_what_is_done_there_and_leaves_no_record(tmp_path: Path) -> None:
    lines, live = ran(tmp_path, "augmentation-fixed", TRAIN, "spawn", "augment")
    assert lines[0].split()[1:5] == lines[1].split()[1:5]
    assert len(list(live.glob("rank*.jsonl"))) == 1
    assert applied_of(parse_change("augmentation-fixed"), live).times == 8


@pytest.mark.parametrize(("change", "printed"), [
    ("frozen:module=0 indices-left-out:from=0,to=9", "1 1 3"), ("one-batch", "0 1 4")])
def test_every_rank_does_the_same_and_the_launcher_leaves_no_record(tmp_path: Path, change: str, printed: str) -> None:
    launcher = f"{Path(sys.executable).parent / 'torchrun'} --nproc_per_node=2 --standalone"
    lines, live = ran(tmp_path, change, RANKS, launcher=launcher)
    assert lines == [printed] * 2
    assert sorted(p.name for p in live.glob("rank*.jsonl")) == ["rank00000.jsonl", "rank00001.jsonl"]
    for applied in [applied_of(parse_change(c), live) for c in change.split()]:
        assert applied.times >= 1
        assert not applied.problem


def test_a_run_that_is_killed_has_told_what_took_hold(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    prepared = prepare_all([parse_change("no-clipping")], f"{sys.executable} train.py long", tmp_path)
    live = tmp_path / "live"
    environment = environment_for(Settings(str(live), (), options=settings_options(prepared)), dict(os.environ))
    run = subprocess.Popen(prepared.command.split(), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    deadline = time.monotonic() + PATIENCE
    for number, _ in enumerate(run.stdout):
        if number >= 12 or time.monotonic() > deadline:
            break
    run.send_signal(signal.SIGKILL)
    run.wait(30)
    run.stdout.close()
    assert applied_in(live)["no-clipping"].times >= 8
