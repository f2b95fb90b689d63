"""Next-alarm prediction on plant event logs. Sequences differ in length; a plant state vector is carried over shifts."""
import argparse
import random
import torch
import torch.nn as nn
import torch.nn.functional as F
from layers import Block

EVENTS, DIM = 24, 32


def shift_log(rng, batch):
    n = rng.randint(40, 90)
    seq = torch.zeros(batch, n + 1, dtype=torch.long)
    for i in range(batch):
        s = rng.randrange(EVENTS)
        for t in range(n + 1):
            seq[i, t] = s
            s = (s * 5 + 3) % EVENTS if rng.random() < 0.85 else rng.randrange(EVENTS)
    return seq[:, :-1], seq[:, 1:]


class AlarmModel(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.emb = nn.Embedding(EVENTS, DIM)
        self.blocks = nn.ModuleList(Block(DIM, 4) for _ in range(layers))
        self.update = nn.GRUCell(DIM, DIM)
        self.head = nn.Linear(DIM, EVENTS)

    def forward(self, x, state):
        h = self.emb(x)
        for b in self.blocks:
            h = b(h, state)
        return self.head(h), self.update(h.mean(1), state)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--batch", type=int, default=16)
    a = ap.parse_args()
    torch.manual_seed(3)
    rng = random.Random(3)
    model = AlarmModel()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    state = torch.zeros(a.batch, DIM)
    for step in range(a.steps):
        x, y = shift_log(rng, a.batch)
        logits, state = model(x, state)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        state = state.detach()
        if step % 4 == 0 or step < 12:
            print(f"step {step} len {x.shape[1]} loss {loss.item():.4f}", flush=True)
    print("finished")


if __name__ == "__main__":
    main()
