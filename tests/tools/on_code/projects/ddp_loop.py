"""An image classifier on several processes by hand: DistributedDataParallel, AMP, resumption."""

import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

EPOCHS = 10


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def evaluate(model, loader, device):
    model.eval()
    hits = torch.zeros(2, device=device)
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            hits += torch.stack([(model(x).argmax(1) == y).sum(), torch.tensor(len(y), device=device)])
    dist.all_reduce(hits)
    model.train()
    return (hits[0] / hits[1]).item()


def save(path, epoch, model, optimizer, schedule, scaler):
    torch.save(
        {
            "epoch": epoch,
            "model": model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "scaler": scaler.state_dict(),
        },
        path,
    )


def main():
    dist.init_process_group("nccl")
    rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    torch.manual_seed(0)
    model = DistributedDataParallel(Net().to(device), device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    scaler = torch.amp.GradScaler("cuda")
    data = TensorDataset(torch.rand(5000, 3, 32, 32), torch.randint(0, 10, (5000,)))
    held = TensorDataset(torch.rand(1000, 3, 32, 32), torch.randint(0, 10, (1000,)))
    sampler = DistributedSampler(data)
    train = DataLoader(data, batch_size=64, sampler=sampler, num_workers=4, drop_last=True)
    val = DataLoader(held, batch_size=64, sampler=DistributedSampler(held, shuffle=False))
    first = 0
    if os.path.exists("last.pt"):
        state = torch.load("last.pt", map_location=device)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        scaler.load_state_dict(state["scaler"])
        first = state["epoch"] + 1
    for epoch in range(first, EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in train:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        schedule.step()
        accuracy = evaluate(model, val, device)
        if rank == 0:
            print(epoch, loss.item(), accuracy)
            save("last.pt", epoch, model, optimizer, schedule, scaler)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
