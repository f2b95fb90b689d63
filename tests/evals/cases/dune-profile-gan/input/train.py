"""GAN for beach-dune cross sections reduced to 4 shape parameters; evaluation by sliced distance to held-out surveys."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def surveys(n, seed):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 3, (n,), generator=g)
    centre = torch.tensor([[1.2, 0.1, -0.8, 0.5], [-0.9, 1.1, 0.2, -0.6], [-0.1, -1.2, 0.7, 0.3]])[kind]
    z = torch.randn(n, 4, generator=g)
    z[:, 1] = 0.6 * z[:, 0] + 0.8 * z[:, 1]
    return centre + 0.28 * z


def mlp(i, o, w=96):
    return nn.Sequential(nn.Linear(i, w), nn.LeakyReLU(0.2), nn.Linear(w, w), nn.LeakyReLU(0.2), nn.Linear(w, o))


def distance(a, b, k=96):
    d = torch.randn(a.shape[1], k, generator=torch.Generator().manual_seed(3))
    d = d / d.norm(dim=0)
    return ((a @ d).sort(0).values - (b @ d).sort(0).values).abs().mean().item()


def r1(d_out, x):
    (g,) = torch.autograd.grad(d_out.sum(), x, create_graph=True)
    return g.pow(2).sum(1).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=2500)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--gamma", type=float, default=0.05)
    a = ap.parse_args()
    torch.manual_seed(6)
    data, held = surveys(20000, 1), surveys(3000, 2)
    G, D = mlp(8, 4), mlp(4, 1)
    G_avg = mlp(8, 4)
    G_avg.load_state_dict(G.state_dict())
    og = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.99))
    od = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.0, 0.99))
    print(f"reference: two real halves differ by {distance(surveys(3000, 5), held):.4f}")
    for step in range(1, a.steps + 1):
        x = data[torch.randint(0, len(data), (a.batch,))].requires_grad_()
        fake = G(torch.randn(a.batch, 8)).detach()
        dr, df = D(x), D(fake)
        loss_d = F.softplus(-dr).mean() + F.softplus(df).mean() + 0.5 * a.gamma * r1(dr, x)
        od.zero_grad(); loss_d.backward(); od.step()
        loss_g = F.softplus(-D(G(torch.randn(a.batch, 8)))).mean()
        og.zero_grad(); loss_g.backward(); og.step()
        with torch.no_grad():
            for p, q in zip(G_avg.parameters(), G.parameters()):
                p.lerp_(q, 0.005)
        if step % 100 == 0:
            with torch.no_grad():
                s = G_avg(torch.randn(3000, 8, generator=torch.Generator().manual_seed(1)))
                near = torch.cdist(s, torch.tensor([[1.2, 0.1, -0.8, 0.5], [-0.9, 1.1, 0.2, -0.6], [-0.1, -1.2, 0.7, 0.3]])).argmin(1)
            share = "/".join(f"{(near == k).float().mean():.2f}" for k in range(3))
            print(f"[{step:5d}] D {loss_d.item():.3f} G {loss_g.item():.3f} D(real) {dr.sigmoid().mean().item():.2f} D(fake) {df.sigmoid().mean().item():.2f} | dist {distance(s, held):.4f} types {share}", flush=True)


if __name__ == "__main__":
    main()
