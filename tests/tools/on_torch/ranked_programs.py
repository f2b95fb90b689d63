"""Programs of two ranks, each faulty in how its replicas are kept equal, or healthy though it looks so."""

from __future__ import annotations

LAUNCHER = """
import os, socket, subprocess, sys
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = str(s.getsockname()[1])
told = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]], env={**told, "RANK": str(r)}) for r in range(2)]
sys.exit(max(abs(r.wait()) for r in ranks))
"""
"""Starts the ranks without importing torch itself."""

HEAD = """
import contextlib, os, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
def told(step, loss):
    print(f"loss of {rank} {step} {loss.item().hex()}\\n", end="", flush=True)
def network():
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
draws = torch.Generator().manual_seed(100 + rank)
def batch(rows=8):
    x = torch.randn(rows, 6, generator=draws)
    return x, x[:, :2].prod(1, keepdim=True)
def reduce(parameters):
    for p in parameters:
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
"""
TAIL = """
dist.destroy_process_group()
"""

TOGETHER = """
import sys
import torch.distributed as dist
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.on_torch.attachment import attach, detach
dist.init_process_group("gloo")
for folder in sys.argv[1:]:
    with open(f"{folder}/train.py") as file:
        program = compile(file.read(), file.name, "exec")
    attach(open_session(Settings(f"{folder}/run", ("replicas",))))
    try:
        exec(program, {"__name__": "__main__"})
    finally:
        close_session()
        detach()
    dist.barrier()
print("all of them came to their end", flush=True)
dist.destroy_process_group()
"""
"""Runs the programs in these folders one after the other, each under instruments of its own, in one pair of ranks."""

HEAD_TOGETHER = HEAD.replace('dist.init_process_group("gloo")', "pass")
"""As many lines."""

WRAPPED = """
torch.manual_seed(5)
model = DistributedDataParallel(network())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
"""

ACCUMULATED = WRAPPED + """
for step in range(8):
    optimizer.zero_grad()
    for micro in range(3):
        x, y = batch()
        last = micro == 2
        {before}
        with {context}:
            loss = nn.functional.mse_loss(model(x), y) / 3  # <- call
            {between}
            loss.backward()
    optimizer.step()
    told(step, loss)
"""


def accumulated(before: str = "pass", context: str = "contextlib.nullcontext()", between: str = "pass") -> str:
    return ACCUMULATED.format(before=before, context=context, between=between)


AROUND = WRAPPED + """
for step in range(6):
    x, y = batch()
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model.module(x), y)  # <- call
    loss.backward()
    optimizer.step()
    told(step, loss)
"""

BY_HAND = """
torch.manual_seed({seed})
model = network()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(6):
    x, y = batch()
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    {reduced}
    optimizer.step()
    told(step, loss)
"""


def by_hand(seed: str = "5", reduced: str = "reduce(model.parameters())") -> str:
    return BY_HAND.format(seed=seed, reduced=reduced)


THAWED = """
torch.manual_seed(5)
inner = network()
inner[0].requires_grad_(False)
model = DistributedDataParallel(inner)
inner[0].requires_grad_(True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(6):
    x, y = batch()
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    told(step, loss)
"""

FAULTY = {
    "the flag is set after the forward": (
        accumulated(between="model.require_backward_grad_sync = last"), "R101", "flag-late"),
    "no_sync around the last": (
        accumulated(context="model.no_sync() if last else contextlib.nullcontext()"), "R101", "unsynchronised"),
    "no_sync around the forward of every one": (accumulated(context="model.no_sync()"), "R101", "unsynchronised"),
    "the module inside is called": (AROUND, "R101", "around"),
    "a seed per rank": (by_hand(seed="5 + rank"), "R102", "start"),
    "some are not reduced": (by_hand(reduced="reduce(model[:4].parameters())"), "R101", "partly"),
    "thawed after the wrapping": (THAWED, "R101", "outside"),
}


AVERAGED_NOW_AND_THEN = """
torch.manual_seed(5)
model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(40):
    x, y = batch()
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 9 == 8:
        with torch.no_grad():
            for p in model.parameters():
                dist.all_reduce(p.data)
                p.data /= 2
"""

COMPRESSED = WRAPPED + """
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
model.register_comm_hook(None, default_hooks.fp16_compress_hook)
for step in range(8):
    x, y = batch()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""

POST_LOCAL_SGD = WRAPPED + """
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
model.register_comm_hook(PostLocalSGDState(None, dist.new_subgroups(1)[0], start_localSGD_iter=2), post_localSGD_hook)
averager = PeriodicModelAverager(period=5, warmup_steps=2)
for step in range(22):
    x, y = batch()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    averager.average_parameters(model.parameters())
"""

ACTORS = """
torch.manual_seed(11 + rank)
policy = network()
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for step in range(8):
    x, y = batch()
    optimizer.zero_grad()
    loss = (policy(x) * torch.sign(y)).mean()
    loss.backward()
    optimizer.step()
    reward = loss.detach().clone()
    dist.all_reduce(reward)
"""

PIPELINE = """
torch.manual_seed(3)
stage = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
optimizer = torch.optim.SGD(stage.parameters(), lr=0.05)
for step in range(8):
    optimizer.zero_grad()
    if rank == 0:
        out = stage(torch.randn(4, 8, generator=draws))
        dist.send(out.detach(), 1)
        grad = torch.empty_like(out)
        dist.recv(grad, 1)
        out.backward(grad)
    else:
        given = torch.empty(4, 8)
        dist.recv(given, 0)
        given.requires_grad_()
        stage(given).square().mean().backward()
        dist.send(given.grad, 0)
    optimizer.step()
"""

TENSOR_PARALLEL = """
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x
    @staticmethod
    def backward(ctx, grad):
        return grad
class Share(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.into = nn.Linear(6, 8)
        self.back = nn.Linear(8, 1, bias=False)
    def forward(self, x):
        return Sum.apply(self.back(torch.tanh(self.into(self.norm(x)))))
torch.manual_seed(3)
model = Share()
with torch.no_grad():
    model.back.weight.mul_(1 + rank)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
draws.manual_seed(1)
for step in range(8):
    x, y = batch()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""

JOINED = """
torch.manual_seed(5)
model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
with model.join():
    for step in range(7 + 2 * rank):
        x, y = batch()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
"""

SHARDED = """
from torch.distributed.fsdp import fully_shard
torch.manual_seed(5)
model = network()
for layer in (model[0], model[2], model):
    fully_shard(layer)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(6):
    x, y = batch()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""

SHARED_STATE = """
from torch.distributed.optim import ZeroRedundancyOptimizer
torch.manual_seed(5)
model = DistributedDataParallel(network())
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
for step in range(6):
    x, y = batch()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""

PARAMETER_SERVER = """
torch.manual_seed(5)
model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(6):
    x, y = batch()
    model.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    for p in model.parameters():
        dist.reduce(p.grad, 0)
    if rank == 0:
        optimizer.step()
    for p in model.parameters():
        dist.broadcast(p.data, 0)
"""

HEALTHY = {
    "no_sync around all but the last": accumulated(context="contextlib.nullcontext() if last else model.no_sync()"),
    "the flag is set before the forward": accumulated(before="model.require_backward_grad_sync = last"),
    "reduced by hand": by_hand(),
    "averaged now and then": AVERAGED_NOW_AND_THEN,
    "a compressing hook": COMPRESSED,
    "a hook of local SGD": POST_LOCAL_SGD,
    "actors of their own": ACTORS,
    "stages of a pipeline": PIPELINE,
    "shares of a layer": TENSOR_PARALLEL,
    "unequal batches with join": JOINED,
    "sharded parameters": SHARDED,
    "sharded optimizer state": SHARED_STATE,
    "a parameter server": PARAMETER_SERVER,
    "never synchronised and never wrapped": by_hand(reduced="pass"),
}
"""The last says "low" at most: models of their own may begin from one seed."""
