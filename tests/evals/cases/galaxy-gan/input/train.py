"""GAN for galaxy colour vectors, classic minimax loss."""
import json
import torch
import torch.nn as nn

C = {"z": 8, "dim": 16, "g_lr": 2e-4, "d_lr": 1e-3, "batch": 64, "d_steps": 3, "steps": 500, "device": "cpu"}


def block(i, o):
    return [nn.Linear(i, o), nn.LeakyReLU(0.2)]


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.Sequential(*block(C["z"], 64), *block(64, 64), nn.Linear(64, C["dim"]))

    def forward(self, n):
        return self.m(torch.randn(n, C["z"]))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.Sequential(*block(C["dim"], 128), *block(128, 128), nn.Linear(128, 1), nn.Sigmoid())

    def forward(self, x):
        return self.m(x).clamp(1e-7, 1 - 1e-7)


class Survey:
    """Two populations (red and blue sequence)."""

    def __init__(self):
        g = torch.Generator().manual_seed(3)
        self.mu = 3 * torch.randn(2, C["dim"], generator=g) + 4
        self.g = g

    def sample(self, n):
        k = (torch.rand(n, generator=self.g) < 0.4).long()
        return self.mu[k] + 0.25 * torch.randn(n, C["dim"], generator=self.g)


def main():
    torch.manual_seed(1)
    G, D, data = Generator(), Critic(), Survey()
    og = torch.optim.Adam(G.parameters(), lr=C["g_lr"], betas=(0.5, 0.999))
    od = torch.optim.Adam(D.parameters(), lr=C["d_lr"], betas=(0.5, 0.999))
    with open("metrics.jsonl", "w") as sink:
        for t in range(1, C["steps"] + 1):
            for _ in range(C["d_steps"]):
                pr, pf = D(data.sample(C["batch"])), D(G(C["batch"]).detach())
                d_loss = -(pr.log() + (1 - pf).log()).mean()
                od.zero_grad()
                d_loss.backward()
                od.step()
            pf = D(G(C["batch"]))
            g_loss = (1 - pf).log().mean()
            og.zero_grad()
            g_loss.backward()
            gn = torch.nn.utils.get_total_norm([p.grad for p in G.parameters()]).item()
            og.step()
            if t % 20 == 0:
                with torch.no_grad():
                    gap = (G(512).mean(0) - data.sample(512).mean(0)).norm().item()
                rec = {"t": t, "d_loss": d_loss.item(), "g_loss": g_loss.item(), "p_real": pr.mean().item(),
                       "p_fake": pf.mean().item(), "g_gradnorm": gn, "mean_gap": gap}
                sink.write(json.dumps(rec) + "\n")
                print("[%4d/%d] Loss_D: %.3e  Loss_G: %.3e  D(x): %.4f  D(G(z)): %.2e  |gradG|: %.2e  gap: %.3f" % (
                    t, C["steps"], rec["d_loss"], rec["g_loss"], rec["p_real"], rec["p_fake"], gn, gap))


if __name__ == "__main__":
    main()
