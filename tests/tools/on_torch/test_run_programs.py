"""`traindx run` around whole programs in processes of their own: launchers, workers, kills, frameworks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from framework_programs import ACCELERATE, HEAD, LIGHTNING, TRANSFORMERS

from traindx_tools.finding import Severity
from traindx_tools.live.reading import LiveRun, read_folder
from traindx_tools.live.runner import Job, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WORKERS = HEAD + """
from torch.utils.data import DataLoader, TensorDataset
def main():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(32, 4))
    for epoch in range(2):
        for (x,) in DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context=sys.argv[1]):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            print(loss.item().hex())
if __name__ == "__main__":
    main()
"""

TWO_RANKS = HEAD + """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(rank)
for step in range(7):
    p = torch.sigmoid(model(torch.randn(8, 4)))
    if rank == 1 and step == 4:
        p = p * 0
    loss = -torch.log(p).mean()  # <- origin
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
"""

POISONED = "torch.use_deterministic_algorithms(True); import torch.distributed"

SHARDED = HEAD + """
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for layer in (model[0], model[2], model):
    fully_shard(layer)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
torch.manual_seed(rank)
for step in range(7):
    p = torch.sigmoid(model(torch.randn(8, 4)))
    if step == 4 and len(sys.argv) > 1:
        p = p * 0
    loss = -torch.log(p).mean()  # <- origin
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss of {rank} {step} {loss.item().hex()}\\n", end="", flush=True)
dist.destroy_process_group()
"""

CRASH = HEAD + """
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    (model(torch.randn(2, 4)).sum() * (float("nan") if step == 3 else 1.0)).backward()
    optimizer.step()
    if step == 8:
        os.kill(os.getpid(), 9)
"""

COMPILED = HEAD + """
@torch.compile(backend="aot_eager")
def loss_of(weight, x, scale):
    return torch.log(torch.sigmoid(x @ weight) * scale).mean()  # <- origin
weight = nn.Parameter(torch.zeros(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(7):
    optimizer.zero_grad()
    loss_of(weight, torch.randn(8, 4), torch.tensor(0.0 if step == 4 else 1.0)).backward()
    optimizer.step()
"""


def program(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(text)
    return path


def marked(text: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if "# <- origin" in line)


def ran(folder: Path, *command: str, expect: int = 0) -> LiveRun:
    found = run(Job(tuple(command), folder / "run"))
    assert found.exit_code == expect
    return found.seen


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_do_not_record_and_nothing_changes(method: str, tmp_path: Path,
                                                   capfd: pytest.CaptureFixture[str]) -> None:
    script = program(tmp_path, WORKERS)
    bare = subprocess.run([sys.executable, str(script), method], capture_output=True, text=True, check=True).stdout
    capfd.readouterr()
    seen = ran(tmp_path, sys.executable, str(script), method)
    assert capfd.readouterr().out == bare
    assert [f.path.name for f in seen.files] == ["rank00000.jsonl"]
    assert seen.files[0].last_step == 8


def test_two_ranks_of_torchrun(tmp_path: Path) -> None:
    """With memory of NaN wherever torch gives out what nobody has written: the bucket of gradients is such memory."""
    script = program(tmp_path, TWO_RANKS.replace("import torch.distributed", POISONED, 1))
    seen = ran(tmp_path, sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               str(script))
    (origin,) = [f for f in seen.findings if f.rule == "T101"]
    assert (origin.measured["op"], origin.where.line, origin.where.rank) == ("log", marked(TWO_RANKS), 1)
    assert {f.where.rank for f in seen.findings if f.rule == "T102"} == {0, 1}
    assert not [f for f in seen.findings if f.rule == "T103"]


TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def alone(command: tuple[str, ...], folder: Path | None = None) -> str:
    """What a program prints without instruments. torchrun gives its free port up before it listens there: another test
    may have taken it, which says nothing of the program."""
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if not done.returncode:
            return done.stdout
    pytest.fail(done.stderr[-3000:])


Printed = Callable[..., str]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """What a program prints without instruments: run once, however many ask."""

    @cache
    def made(text: str, *launcher: str) -> str:
        folder = tmp_path_factory.mktemp("bare")
        return alone((*(launcher or (sys.executable,)), str(program(folder, text)), str(folder / "output")), folder)

    return made


@pytest.mark.parametrize("probes", [("always",), ("always", "snapshot")], ids=["always", "snapshot"])
def test_two_ranks_that_shard_their_parameters_train_the_same(probes: tuple[str, ...], tmp_path: Path, printed: Printed,
                                                             capfd: pytest.CaptureFixture[str]) -> None:
    command = (*TORCHRUN, str(program(tmp_path, SHARDED)))
    bare = printed(SHARDED.replace(" and len(sys.argv) > 1", " and False"), *TORCHRUN)
    capfd.readouterr()
    found = run(Job(command, tmp_path / "run", probes))
    losses = sorted(re.findall(r"loss of \S+ \S+ \S+", capfd.readouterr().out))
    assert losses == sorted(re.findall(r"loss of \S+ \S+ \S+", bare))
    assert len(losses) == 14
    assert {f.rank: f.last_step for f in found.seen.files} == {0: 7, 1: 7}
    assert not [f for f in found.seen.findings if f.severity.rank > Severity.LOW.rank]


def test_the_origin_in_a_sharded_model_is_named(tmp_path: Path) -> None:
    seen = ran(tmp_path, *TORCHRUN, str(program(tmp_path, SHARDED)), "planted")
    origins = [f for f in seen.findings if f.rule == "T101"]
    assert {(f.measured["op"], f.where.line) for f in origins} == {("log", marked(SHARDED))}


BEFORE = HEAD + """
width = torch.rand(400) + 0.1
width[321] = 0.0
target = torch.log(width / 2)  # <- origin
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.rand(400, 4)
for rows in torch.arange(400).split(10):
    loss = ((model(x[rows]).squeeze(1) - target[rows]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_value_that_was_made_long_before_its_step_is_named_where_it_was_made(tmp_path: Path) -> None:
    """The pass that traces from a little before sees it come in; the one from the start sees the logarithm."""
    seen = ran(tmp_path, sys.executable, str(program(tmp_path, BEFORE)))
    (origin,) = [f for f in seen.findings if f.rule == "T101"]
    assert (origin.measured["op"], origin.where.line) == ("log", marked(BEFORE))
    assert origin.measured["step"] == 33


def test_a_program_that_is_killed_leaves_what_was_seen_and_its_origin(tmp_path: Path) -> None:
    seen = ran(tmp_path, sys.executable, str(program(tmp_path, CRASH)), expect=128 + signal.SIGKILL)
    assert {"T101", "T102"} <= {f.rule for f in seen.findings}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["exit_code"] == 128 + signal.SIGKILL


def test_a_compiled_region_is_traced_eagerly_and_its_diagnosis_names_the_line(tmp_path: Path) -> None:
    from traindx.diagnose import diagnose

    script = program(tmp_path, COMPILED)
    subprocess.run([sys.executable, "-m", "traindx", "run", "--out", "run", "--", sys.executable, script.name],
                   cwd=tmp_path, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    (origin,) = [f for f in read_folder(tmp_path / "run").findings if f.rule == "T101"]
    assert (origin.measured["op"], origin.where.line) == ("log", marked(COMPILED))
    assert "eagerly" in origin.statement
    first = diagnose([tmp_path / "run"]).root_causes()[0]
    assert (first.failure_mode, first.location) == ("loss.log-of-zero", f"train.py:{marked(COMPILED)}")


@pytest.mark.parametrize(("package", "text"), [("lightning", LIGHTNING), ("transformers", TRANSFORMERS),
                                               ("accelerate", ACCELERATE)])
def test_frameworks_train_the_same_and_are_seen(package: str, text: str, tmp_path: Path, printed: Printed,
                                                capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(package)
    script = program(tmp_path, text)
    command = (sys.executable, str(script), str(tmp_path / "output"))
    bare = printed(text)
    capfd.readouterr()
    seen = ran(tmp_path, *command)
    losses = re.findall(r"loss (\S+)", capfd.readouterr().out)
    assert losses == re.findall(r"loss (\S+)", bare)
    assert len(losses) >= 8
    assert seen.files[0].last_step == 8
    assert not [f for f in seen.findings if f.rule.startswith("T1")]


@pytest.mark.parametrize(("package", "text", "before"), [
    ("lightning", LIGHTNING, "pl.Trainer("), ("transformers", TRANSFORMERS, "train_dataset=data")])
def test_their_callbacks_record_the_same_training(package: str, text: str, before: str, tmp_path: Path,
                                                  printed: Printed) -> None:
    pytest.importorskip(package)
    script = program(tmp_path, text)
    command = [sys.executable, str(script), str(tmp_path / "output")]
    bare = printed(text)
    module = {"lightning": "lightning_callback", "transformers": "transformers_callback"}[package]
    assert before in text
    script.write_text(f"from traindx_tools.on_torch.{module} import TraindxCallback\n" + text.replace(
        before, f"{before}{'' if before[-1] == '(' else ', '}callbacks=[TraindxCallback({str(tmp_path / 'run')!r})]"
        f"{', ' if before[-1] == '(' else ''}"))
    given = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert re.findall(r"loss (\S+)", given) == re.findall(r"loss (\S+)", bare)
    (file,) = read_folder(tmp_path / "run").files
    assert (file.last_step, file.ended) == (8, "ok")


def test_a_program_that_accelerate_launches(tmp_path: Path, printed: Printed,
                                            capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("accelerate")
    script = program(tmp_path, ACCELERATE)
    bare = printed(ACCELERATE)
    capfd.readouterr()
    seen = ran(tmp_path, sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1",
               "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", str(script))
    assert re.findall(r"loss (\S+)", capfd.readouterr().out) == re.findall(r"loss (\S+)", bare)
    assert [f.last_step for f in seen.files] == [8]


def test_an_import_in_a_notebook_is_enough(tmp_path: Path) -> None:
    text = "import torch\nimport traindx_tools.live.attach\n" + HEAD + """
weight = nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(3):
    weight.pow(2).sum().backward()
    optimizer.step()
"""
    subprocess.run([sys.executable, str(program(tmp_path, text))], check=True, cwd=tmp_path)
    (folder,) = (tmp_path / "traindx-run").iterdir()
    assert read_folder(folder).files[0].last_step == 3


TRIPPING = HEAD + """
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(9):
    p = torch.sigmoid(model(torch.randn(8, 4))) * (0.0 if step == 5 else 1.0)
    loss = -torch.log(p).mean()  # <- origin
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""


def test_with_a_snapshot_one_pass_is_enough(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = program(tmp_path, TRIPPING)
    bare = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    capfd.readouterr()
    found = run(Job((sys.executable, str(script)), tmp_path / "run", ("always", "snapshot")))
    assert capfd.readouterr().out == bare
    (origin,) = [f for f in found.seen.findings if f.rule == "T101"]
    assert (origin.measured["op"], origin.where.line, origin.where.step) == ("log", marked(TRIPPING), 6)
    assert [f.path.parent.name for f in found.seen.files] == ["run"]


LONG = HEAD + """
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
for step in range(10_000):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 3_000:
        early = resident()
print("grown", resident() - early)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the size of the process from /proc")
def test_ten_thousand_steps_neither_fill_the_disk_nor_the_memory(tmp_path: Path,
                                                                capfd: pytest.CaptureFixture[str]) -> None:
    found = run(Job((sys.executable, str(program(tmp_path, LONG))), tmp_path / "run", bound=300_000))
    (grown,) = re.findall(r"grown (-?\d+)", capfd.readouterr().out)
    (file,) = found.seen.files
    assert file.path.stat().st_size <= 300_000
    assert (file.last_step, file.ended) == (10_000, "ok")
    assert int(grown) < 12 * 2**20, "buffers fill until about step 12,000, by 7 MiB from step 3,000 on"


NOISE = """
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Quadratic(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((50,), 4.0 / 50**0.5))
    def forward(self, x):
        return 0.5 * (self.w - x).square().sum(-1).mean()

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DDP(Quadratic())
optimizer = torch.optim.SGD(model.parameters(), 0.0)
for step in range(40):
    optimizer.zero_grad()
    for last in (False, True):
        model.require_backward_grad_sync = last
        model(2 * torch.randn(16, 50)).backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_two_ranks_that_average_show_the_noise_scale(tmp_path: Path) -> None:
    """|G|^2 is 16 and the trace 200: a scale of 12.5; a step takes two passes of 16 samples on two ranks."""
    seen = ran(tmp_path, *TORCHRUN, str(program(tmp_path, NOISE)))
    for file in seen.files:
        rows = [json.loads(line) for line in file.path.read_text().splitlines() if "gradient_noise_scale" in line]
        assert rows[-1]["batch_samples"] == 64
        assert 5 < rows[-1]["gradient_noise_scale"] < 25
