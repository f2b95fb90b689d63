"""Document VAE (NVDM-like) on bags of words."""
from dataclasses import dataclass, asdict
import csv
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class HParams:
    vocab: int = 150
    topics: int = 8
    latent: int = 10
    hidden: int = 64
    lr: float = 2e-3
    batch: int = 100
    epochs: int = 12
    beta: float = 1.0


class DocVAE(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(hp.vocab, hp.hidden), nn.ReLU())
        self.mu, self.logvar = nn.Linear(hp.hidden, hp.latent), nn.Linear(hp.hidden, hp.latent)
        self.dec = nn.Linear(hp.latent, hp.vocab)

    def forward(self, bow):
        h = self.enc(torch.log1p(bow))
        mu, lv = self.mu(h), self.logvar(h).clamp(-8, 8)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return F.log_softmax(self.dec(z), -1), mu, lv


def documents(hp, n, seed, length=40):
    g = torch.Generator().manual_seed(2)
    topic = torch.distributions.Dirichlet(torch.full((hp.vocab,), 0.05))
    torch.manual_seed(2)
    phi = topic.sample((hp.topics,))
    theta = torch.distributions.Dirichlet(torch.full((hp.topics,), 0.15)).sample((n,))
    p = theta @ phi
    words = torch.multinomial(p, length, replacement=True, generator=g)
    return F.one_hot(words, hp.vocab).sum(1).float()


def elbo_terms(hp, logp, mu, lv, bow):
    rec = -(bow * logp).sum(-1) / bow.sum(-1)
    kl = 0.5 * (mu.pow(2) + lv.exp() - 1 - lv).sum(-1)
    return rec.mean(), kl.mean()


def main(hp=HParams()):
    data = documents(hp, 3000, 1)
    torch.manual_seed(0)
    net = DocVAE(hp)
    opt = torch.optim.Adam(net.parameters(), lr=hp.lr)
    print("hparams:", asdict(hp))
    w = csv.writer(open("metrics.csv", "w"))
    w.writerow(["epoch", "rec_per_word", "kl", "active_units"])
    for ep in range(hp.epochs):
        R = K = 0.0
        for idx in torch.randperm(len(data)).split(hp.batch):
            rec, kl = elbo_terms(hp, *net(data[idx]), data[idx])
            opt.zero_grad()
            (rec + hp.beta * kl).backward()
            opt.step()
            R, K = R + rec.item() * len(idx) / len(data), K + kl.item() * len(idx) / len(data)
        with torch.no_grad():
            active = int((net(data)[1].var(0) > 0.01).sum())
        w.writerow([ep, R, K, active])
        print(f"epoch={ep:02d} rec/word={R:.4f} kl={K:.5f} active_units={active}/{hp.latent} ppl={torch.tensor(R).exp():.1f}")


if __name__ == "__main__":
    main()
