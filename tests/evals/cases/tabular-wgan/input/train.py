import csv
import sys

import torch

from nets import Critic, Maker, slope_penalty, table

ROUNDS, CRITIC_STEPS, BATCH = 900, 4, 128


@torch.no_grad()
def sliced(a, b, k=64):
    d = torch.nn.functional.normalize(torch.randn(a.shape[1], k), dim=0)
    return ((a @ d).sort(0).values - (b @ d).sort(0).values).abs().mean().item()


def main():
    torch.manual_seed(0)
    make, judge = Maker(), Critic()
    gopt = torch.optim.Adam(make.parameters(), lr=5e-4, betas=(0.0, 0.9))
    copt = torch.optim.Adam(judge.parameters(), lr=1e-3, betas=(0.0, 0.9))
    ref = table(2000)
    out = csv.writer(sys.stdout)
    fh = open("metrics.csv", "w", newline="")
    rec = csv.writer(fh)
    head = ["round", "critic_loss", "maker_loss", "penalty", "sliced_dist", "fake_std"]
    out.writerow(head)
    rec.writerow(head)
    for r in range(1, ROUNDS + 1):
        for _ in range(CRITIC_STEPS):
            real = table(BATCH)
            with torch.no_grad():
                fake = make(BATCH)
            pen = slope_penalty(judge, real, fake)
            closs = judge(fake).mean() - judge(real).mean() + 10.0 * pen
            copt.zero_grad()
            closs.backward()
            copt.step()
        gloss = -judge(make(BATCH)).mean()
        gopt.zero_grad()
        gloss.backward()
        gopt.step()
        if r % 50 == 0 or r == 1:
            with torch.no_grad():
                fake = make(2000)
            row = [r, f"{closs.item():.4f}", f"{gloss.item():.4f}", f"{pen.item():.4f}", f"{sliced(fake, ref):.4f}", f"{fake.std(0).mean().item():.3f}"]
            out.writerow(row)
            rec.writerow(row)
            sys.stdout.flush()
    fh.close()


if __name__ == "__main__":
    main()
