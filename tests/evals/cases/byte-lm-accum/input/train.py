import math
import time

import torch
import torch.nn.functional as F

from rnnlm import ByteLM, prose

STREAMS, BPTT, ACC = 16, 40, 2


def streams(text):
    t = torch.tensor(list(text))
    t = t[: len(t) // STREAMS * STREAMS]
    return t.view(STREAMS, -1)


def windows(s):
    for i in range(0, s.shape[1] - 1, BPTT):
        yield s[:, i : min(i + BPTT, s.shape[1] - 1)], s[:, i + 1 : i + 1 + BPTT]


def detach(state):
    return tuple(v.detach() for v in state)


@torch.no_grad()
def bits(model, s):
    model.eval()
    state, nll, n = None, 0.0, 0
    for x, y in windows(s):
        z, state = model(x, state)
        nll += F.cross_entropy(z.float().flatten(0, 1), y.flatten(), reduction="sum").item()
        n += y.numel()
    model.train()
    return nll / n / math.log(2)


def main():
    torch.manual_seed(77)
    tr, va = streams(prose(4000, 1)), streams(prose(200, 2))
    model = ByteLM()
    opt = torch.optim.AdamW(model.parameters(), lr=8e-3, weight_decay=0.0)
    steps_per_epoch = math.ceil(math.ceil((tr.shape[1] - 1) / BPTT) / ACC)
    epochs = 6
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 8e-3, total_steps=epochs * steps_per_epoch, pct_start=0.1)
    print(f"{tr.numel()} bytes, {steps_per_epoch} optimizer steps per epoch")
    for epoch in range(1, epochs + 1):
        state, t0, total, seen = None, time.time(), 0.0, 0
        todo = list(windows(tr))
        opt.zero_grad(set_to_none=True)
        for k in range(0, len(todo), ACC):
            group = todo[k : k + ACC]
            tokens = sum(y.numel() for _, y in group)
            for x, y in group:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    z, state = model(x, state)
                state = detach(state)
                nll = F.cross_entropy(z.float().flatten(0, 1), y.flatten(), reduction="sum")
                (nll / tokens).backward()
                total += nll.item()
            seen += tokens
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
            sched.step()
            opt.zero_grad(set_to_none=True)
            if (k // ACC) % 30 == 29:
                print(f"  epoch {epoch} step {k // ACC + 1}: bpb {total / seen / math.log(2):.3f} | norm {norm:.2f} | lr {sched.get_last_lr()[0]:.2e}")
        print(f"== epoch {epoch}: train bpb {total / seen / math.log(2):.3f}, valid bpb {bits(model, va):.3f}, {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
