"""Aligns wrist-IMU windows with short activity captions (symmetric InfoNCE)."""
import json
import time

import torch

from towers import Aligner

CFG = {"batch": 128, "steps": 400, "lr": 0.2, "momentum": 0.9, "temperature": 0.07, "vocab": 60, "words": 5}


def make_pairs(n, gen):
    """Each word contributes a fixed waveform; the window is their sum plus sensor noise."""
    waves = torch.randn(CFG["vocab"], 6, 40, generator=torch.Generator().manual_seed(99))
    ids = torch.stack([torch.randperm(CFG["vocab"], generator=gen)[: CFG["words"]] for _ in range(n)])
    x = waves[ids].sum(1) / CFG["words"] ** 0.5
    return x + 0.2 * torch.randn(x.shape, generator=gen), ids


@torch.no_grad()
def recall_at_1(model, x, ids):
    model.eval()
    m, c = model.encode(x, ids)
    model.train()
    return ((m @ c.t()).argmax(1) == torch.arange(len(x))).float().mean().item()


def grad_norm(model):
    return sum(p.grad.pow(2).sum() for p in model.parameters() if p.grad is not None).sqrt().item()


def main():
    torch.manual_seed(11)
    gen = torch.Generator().manual_seed(4)
    x, ids = make_pairs(4096, gen)
    xv, iv = make_pairs(256, gen)
    model = Aligner(CFG["vocab"], CFG["temperature"])
    opt = torch.optim.SGD(model.parameters(), lr=CFG["lr"], momentum=CFG["momentum"], nesterov=True)
    print(json.dumps({"event": "start", **CFG, "params": sum(p.numel() for p in model.parameters())}))
    t0 = time.time()
    with open("metrics.jsonl", "w") as fh:
        for step in range(1, CFG["steps"] + 1):
            pick = torch.randint(0, len(x), (CFG["batch"],), generator=gen)
            loss = model(x[pick], ids[pick])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            gn = grad_norm(model)
            opt.step()
            if step % 20 == 0 or step == 1:
                rec = {"step": step, "nce": round(loss.item(), 4), "gnorm": round(gn, 5),
                       "r@1": round(recall_at_1(model, xv, iv), 4), "sec": round(time.time() - t0, 1)}
                fh.write(json.dumps(rec) + "\n")
                print(json.dumps(rec))


if __name__ == "__main__":
    main()
