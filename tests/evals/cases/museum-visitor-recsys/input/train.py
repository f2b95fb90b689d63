import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(3)
N_VISITORS, N_EXHIBITS, N_TRAITS = 300, 80, 12

traits = torch.randn(N_EXHIBITS, N_TRAITS)
taste = torch.randn(N_VISITORS, N_TRAITS)
affinity = taste @ traits.T
liked = affinity.topk(10, dim=1).indices
pairs = torch.stack([torch.arange(N_VISITORS).repeat_interleave(10), liked.flatten()], 1)
pairs = pairs[torch.randperm(len(pairs))]
train_pairs, test_pairs = pairs[:2600], pairs[2600:]


class ExhibitTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(N_TRAITS, 64), nn.GELU(), nn.Linear(64, dim))

    def forward(self, t):
        return F.normalize(self.net(t), dim=-1)


class VisitorTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.table = nn.Embedding(N_VISITORS, dim)

    def forward(self, ids):
        return F.normalize(self.table(ids), dim=-1)


def recall_at(k, visitors, exhibit_vecs):
    with torch.no_grad():
        scores = visitors(test_pairs[:, 0]) @ exhibit_vecs.T
        return (scores.topk(k).indices == test_pairs[:, 1:]).any(1).float().mean().item()


def fit(epochs=6, batch=128, temperature=0.1):
    exhibits, visitors = ExhibitTower(24), VisitorTower(24)
    opt = torch.optim.Adam([*exhibits.parameters(), *visitors.parameters()], lr=5e-3)
    catalogue = exhibits(traits)
    print("catalogue", tuple(catalogue.shape), "untrained recall@10 %.3f" % recall_at(10, visitors, catalogue.detach()))
    for epoch in range(epochs):
        order = torch.randperm(len(train_pairs))
        running = 0.0
        for n, chunk in enumerate(order.split(batch)):
            v, e = train_pairs[chunk].T
            scores = visitors(v) @ catalogue.T / temperature
            loss = F.cross_entropy(scores, e)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
            print(f"epoch {epoch} batch {n} loss {loss.item():.4f}")
        print(f"epoch {epoch} mean {running / (n + 1):.4f} recall@10 {recall_at(10, visitors, exhibits(traits)):.3f}")


if __name__ == "__main__":
    fit()
