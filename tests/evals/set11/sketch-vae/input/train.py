"""VAE on little line sketches. beta is raised during training (KL warm-up) so that the latents get used first."""
import json

import torch
import yaml
from torch import nn
import torch.nn.functional as F

SIZE = 14


def sketches(n, seed):
    """Binary images with one ring, one bar or a cross at a random place."""
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    kind = torch.randint(0, 3, (n,), generator=g)
    cy, cx = (torch.randint(5, SIZE - 5, (2, n), generator=g))
    r = torch.randint(2, 5, (n,), generator=g)
    dy, dx = (yy - cy[:, None, None]).float(), (xx - cx[:, None, None]).float()
    rr = r[:, None, None].float()
    ring = ((dy ** 2 + dx ** 2).sqrt() - rr).abs() < 0.6
    bar = (dy.abs() < 0.5) & (dx.abs() <= rr)
    cross = bar | ((dx.abs() < 0.5) & (dy.abs() <= rr))
    shapes = torch.stack([ring, bar, cross], 1)
    return shapes[torch.arange(n), kind].float().flatten(1)


class VAE(nn.Module):
    def __init__(self, hidden, latent):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(SIZE * SIZE, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        self.mu, self.logvar = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
                                 nn.Linear(hidden, SIZE * SIZE))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h).clamp(-8, 4)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.dec(z), mu, logvar


def terms(model, x):
    logits, mu, logvar = model(x)
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = 0.5 * (mu.square() + logvar.exp() - 1 - logvar).sum(1).mean()
    return rec, kl


def beta_at(epoch, kl):
    progress = min(max((epoch - kl["hold_epochs"]) / kl["ramp_epochs"], 0.0), 1.0)
    return kl["beta_start"] + (kl["beta_end"] - kl["beta_start"]) * progress


def main():
    with open("config.yaml") as fh:
        cfg = yaml.safe_load(fh)
    torch.manual_seed(cfg["seed"])
    tr = cfg["train"]
    x, vx = sketches(tr["samples"], 1), sketches(512, 2)
    model = VAE(**cfg["model"])
    opt = torch.optim.Adam(model.parameters(), lr=tr["lr"])
    print(f"{len(x)} sketches, {x.mean():.3f} of the pixels set, {sum(p.numel() for p in model.parameters())} parameters")

    with open("metrics.jsonl", "w") as log:
        for epoch in range(tr["epochs"]):
            beta = beta_at(epoch, cfg["kl"])
            model.train()
            sums = torch.zeros(3)
            for idx in torch.randperm(len(x)).split(tr["batch_size"]):
                rec, kl = terms(model, x[idx])
                loss = rec + beta * kl
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 20.0)
                opt.step()
                sums += torch.tensor([loss.item(), rec.item(), kl.item()]) * len(idx)
            loss, rec, kl = (sums / len(x)).tolist()
            model.eval()
            with torch.no_grad():
                vrec, vkl = (t.item() for t in terms(model, vx))
            row = {"epoch": epoch, "loss": loss, "rec": rec, "kl": kl, "valid_rec": vrec, "valid_kl": vkl, "beta": beta}
            log.write(json.dumps(row) + "\n")
            if epoch % 2 == 0 or epoch == tr["epochs"] - 1:
                print(f"epoch {epoch:2d}  loss {loss:7.3f}  rec {rec:7.3f}  kl {kl:7.3f}  valid loss {vrec + beta * vkl:7.3f}")
    torch.save(model.state_dict(), "vae.pt")


if __name__ == "__main__":
    main()
