"""Sorting network (pointer-free): predict the sorted digit sequence. Job chain with full state in the checkpoint."""
import json
import os
import random
import time
import torch
import torch.nn as nn

STATE = "state.pt"
TOTAL = 500


class Sorter(nn.Module):
    def __init__(self, d=48, n=6, k=10):
        super().__init__()
        self.e, self.p = nn.Embedding(k, d), nn.Parameter(0.02 * torch.randn(n, d))
        self.b = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 96, dropout=0.0, batch_first=True), 1,
                                       enable_nested_tensor=False)
        self.o = nn.Linear(d, k)

    def forward(self, x):
        return self.o(self.b(self.e(x) + self.p))


def job(until):
    net = Sorter()
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3)
    lrs = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) / 40, max(0.0, 1 - s / TOTAL)))
    g = torch.Generator().manual_seed(1)
    start = 0
    if os.path.exists(STATE):
        st = torch.load(STATE, weights_only=False)
        net.load_state_dict(st["net"])
        opt.load_state_dict(st["opt"])
        lrs.load_state_dict(st["lrs"])
        g.set_state(st["g"])
        start = st["step"]
        print(f"WARNING - found {STATE}, resuming from step {start} (rank 0)", flush=True)
    with open("metrics.jsonl", "a") as sink:
        t = time.time()
        for s in range(start + 1, until + 1):
            x = torch.randint(0, 10, (48, 6), generator=g)
            ce = nn.functional.cross_entropy(net(x).flatten(0, 1), x.sort(1).values.flatten())
            opt.zero_grad()
            ce.backward()
            gn = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            lr = lrs.get_last_lr()[0]
            lrs.step()
            sink.write(json.dumps({"step": s, "ce": ce.item(), "lr": lr, "grad_norm": gn.item()}) + "\n")
            if s % 20 == 0:
                print(f"{s:6d} ce={ce.item():.4f} lr={lr:.3e} gnorm={gn.item():.2f} ({time.time() - t:.2f}s)", flush=True)
                t = time.time()
    torch.save(dict(net=net.state_dict(), opt=opt.state_dict(), lrs=lrs.state_dict(), g=g.get_state(), step=until), STATE)


if __name__ == "__main__":
    torch.manual_seed(0)
    if os.path.exists(STATE):
        os.remove(STATE)
    job(220)
    print("slurmstepd: error: *** JOB 448151 CANCELLED DUE TO TIME LIMIT, requeued ***", flush=True)
    torch.manual_seed(random.randrange(10 ** 6))
    job(TOTAL)
