import json
import sys

import torch
from torch.utils.data import DataLoader

from fleet import Windows
from regressor import RulNet


def validate(net, loader):
    with torch.no_grad():
        err = torch.cat([(net(x) - y).abs() for x, y in loader])
    return err.mean().item()


def main():
    torch.manual_seed(0)
    train_dl = DataLoader(Windows(100, seed=SEED), batch_size=32, shuffle=True)
    val_dl = DataLoader(Windows(12, seed=77), batch_size=128)
    net = RulNet()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    huber = torch.nn.HuberLoss(delta=0.2)
    it = 0
    with open("history.jsonl", "w") as fh:
        for epoch in range(5):
            for x, y in train_dl:
                loss = huber(net(x), y.float())
                opt.zero_grad()
                loss.backward()
                norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
                it += 1
                if it % 5 == 0:
                    fh.write(json.dumps({"it": it, "loss": loss.item(), "grad_norm": norm.item()}) + "\n")
                if it % 15 == 0:
                    print(f"it {it} loss {loss.item():.5f} gnorm {norm.item():.3f}", file=sys.stderr)
            print(f"epoch {epoch} done, val MAE {validate(net, val_dl):.4f}", file=sys.stderr)


SEED = 7

if __name__ == "__main__":
    main()
