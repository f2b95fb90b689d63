import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
import yaml
from torch.nn.parallel import DistributedDataParallel as DDP

from nets import BirdCalls, freeze, pretend_pretrained

N_SPECIES = 6


def recordings(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, N_SPECIES, (n,), generator=g)
    t = torch.arange(64) / 64
    f = 4.0 + 3.0 * y[:, None] + 0.5 * torch.randn(n, 1, generator=g)
    x = torch.sin(6.283 * (f * t + torch.rand(n, 1, generator=g))) + 0.5 * torch.randn(n, 64, generator=g)
    return x[:, None], y


def spread(module, world):
    """largest absolute difference of the parameters between the ranks"""
    flat = torch.cat([p.detach().flatten() for p in module.parameters()])
    everyone = [torch.empty_like(flat) for _ in range(world)]
    dist.all_gather(everyone, flat)
    return max((e - everyone[0]).abs().max().item() for e in everyone)


class FineTuner:
    def __init__(self, rank, cfg):
        self.rank, self.cfg, self.world = rank, cfg, cfg["ddp"]["world"]
        torch.manual_seed(11)
        net = BirdCalls(cfg["backbone"]["channels"], N_SPECIES)
        pretend_pretrained(net)
        freeze(net.backbone)
        self.net = DDP(net)
        self.opt = torch.optim.Adam(net.head.parameters(), lr=cfg["optim"]["head_lr"])
        x, y = recordings(1536, 1)
        self.x, self.y = x[rank::self.world], y[rank::self.world]
        self.val = recordings(300, 2)
        self.g = torch.Generator().manual_seed(rank)

    def on_epoch_start(self, epoch):
        if epoch == self.cfg["backbone"]["frozen_epochs"]:
            core = self.net.module
            freeze(core.backbone, False)
            self.opt.add_param_group({"params": list(core.backbone.parameters()), "lr": self.cfg["optim"]["backbone_lr"]})
            if self.rank == 0:
                n = sum(p.numel() for p in core.parameters() if p.requires_grad)
                print(f"epoch {epoch}: backbone unfrozen, {n} trainable parameters", flush=True)

    def epoch(self):
        self.net.train()
        order = torch.randperm(len(self.y), generator=self.g)
        b = self.cfg["batch"]
        total = 0.0
        for i in range(0, len(order), b):
            idx = order[i:i + b]
            ce = F.cross_entropy(self.net(self.x[idx]), self.y[idx])
            self.opt.zero_grad()
            ce.backward()
            self.opt.step()
            total += ce.item() * len(idx)
        return total / len(order)

    def accuracy(self):
        self.net.eval()
        with torch.no_grad():
            return (self.net.module(self.val[0]).argmax(1) == self.val[1]).float().mean().item()

    def run(self):
        for epoch in range(self.cfg["epochs"]):
            self.on_epoch_start(epoch)
            ce = self.epoch()
            acc = self.accuracy()
            core = self.net.module
            sb, sh = spread(core.backbone, self.world), spread(core.head, self.world)
            print(f"rank{self.rank} epoch {epoch} ce {ce:.4f} val_acc {acc:.3f} max|dw| backbone {sb:.2e} head {sh:.2e}", flush=True)


def entry(rank, cfg):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(cfg["ddp"]["port"])
    dist.init_process_group("gloo", rank=rank, world_size=cfg["ddp"]["world"])
    FineTuner(rank, cfg).run()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    conf = yaml.safe_load(open("config.yaml"))
    mp.spawn(entry, args=(conf,), nprocs=conf["ddp"]["world"])
