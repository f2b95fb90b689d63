import datetime
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

from demand import hourly_table, split_by_time

WORLD = 2
MAX_EPOCHS = 50
PATIENCE = 4


class EarlyStopping:
    def __init__(self, patience, min_delta=1e-3):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad = float("inf"), 0

    def should_stop(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def make_net():
    return nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))


@torch.no_grad()
def validate(net, loader):
    net.eval()
    total, n = 0.0, 0
    for x, y in loader:
        log_rate = net.module(x).squeeze(-1)
        total += nn.functional.poisson_nll_loss(log_rate, y, full=True, reduction="sum").item()
        n += len(y)
    net.train()
    return total / n


def worker(rank, world):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29617")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=20))
    torch.manual_seed(0)
    train, valid = split_by_time(*hourly_table())
    train_ds, valid_ds = TensorDataset(*train), TensorDataset(*valid)
    sampler = DistributedSampler(train_ds, shuffle=True, seed=1)
    train_dl = DataLoader(train_ds, batch_size=64, sampler=sampler)
    # every worker scores its own block of the validation weeks
    block = torch.arange(len(valid_ds)).tensor_split(world)[rank].tolist()
    valid_dl = DataLoader(Subset(valid_ds, block), batch_size=256)
    net = DistributedDataParallel(make_net())
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-4)
    stopper = EarlyStopping(PATIENCE)
    for epoch in range(MAX_EPOCHS):
        sampler.set_epoch(epoch)
        running = 0.0
        for x, y in train_dl:
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.poisson_nll_loss(net(x).squeeze(-1), y, full=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
            running += loss.item()
        val = validate(net, valid_dl)
        if rank == 0:
            print(f"[epoch {epoch:02d}] train_nll {running / len(train_dl):.3f} val_nll {val:.3f}", flush=True)
        if stopper.should_stop(val):
            if rank == 0:
                print(f"early stop, best val_nll {stopper.best:.3f}", flush=True)
            break
    if rank == 0:
        torch.save(net.module.state_dict(), "station.pt")
        print("saved station.pt", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(WORLD,), nprocs=WORLD)
    print("all workers done")
