"""Toxicity classifier for forum posts; micro-batches because of memory."""
import argparse
import torch
from torch import nn

ap = argparse.ArgumentParser()
ap.add_argument("--micro", type=int, default=4)
ap.add_argument("--accum", type=int, default=16)
ap.add_argument("--epochs", type=int, default=4)
ap.add_argument("--lr", type=float, default=0.005)
cfg = ap.parse_args()
torch.manual_seed(0)
DIM = 64


def posts(n):
    """Sentence embeddings of posts and a noisy moderator label."""
    toxic = torch.randint(0, 2, (n,))
    emb = torch.randn(n, DIM)
    emb[:, :16] += 0.45 * (2 * toxic[:, None] - 1) * torch.linspace(0.5, 1, 16)
    flip = torch.rand(n) < 0.05
    return emb, torch.where(flip, 1 - toxic, toxic)


class PostNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(DIM, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, emb):
        return self.mlp(emb)


def evaluate(net, emb, y):
    net.eval()
    with torch.no_grad():
        out = net(emb)
    net.train()
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def main():
    tr, dev = posts(8192), posts(2048)
    net = PostNet()
    opt = torch.optim.SGD(net.parameters(), lr=cfg.lr, momentum=0.9)
    updates = 0
    print(f"micro={cfg.micro} accum={cfg.accum} effective={cfg.micro * cfg.accum}")
    for epoch in range(cfg.epochs):
        window, perm = [], torch.randperm(len(tr[0]))
        for i, idx in enumerate(perm.split(cfg.micro)):
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(net(tr[0][idx]), tr[1][idx]) / cfg.accum
            loss.backward()
            window.append(loss.item() * cfg.accum)
            if (i + 1) % cfg.accum == 0:
                gnorm = nn.utils.clip_grad_norm_(net.parameters(), 10.0)
                opt.step()
                updates += 1
                if updates % 32 == 0:
                    print(f"epoch {epoch} update {updates:5d} loss {sum(window) / len(window):.4f} gnorm {gnorm:.5f}")
                    window.clear()
        dl, da = evaluate(net, *dev)
        print(f"epoch {epoch} dev_loss {dl:.4f} dev_acc {da:.4f}")


main()
