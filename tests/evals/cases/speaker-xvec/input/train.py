import sys
import time
import torch
import torch.nn as nn


class Config:
    mel = 10
    frames = 16
    hidden = 48
    speakers = 6
    batch = 40
    lr = 3e-3
    iters = 500
    conf_penalty = 0.05   # entropy bonus against over-confident posteriors (Pereyra et al.)


def synth(n, gen, means):
    y = torch.randint(0, Config.speakers, (n,), generator=gen)
    x = means[y][:, None] + 0.4 * torch.randn(n, Config.frames, Config.mel, generator=gen)
    gain = torch.exp(0.7 * torch.randn(n, 1, 1, generator=gen))   # microphones differ
    return 2 * gain * x, y


class Xvector(nn.Module):
    def __init__(self):
        super().__init__()
        self.tdnn = nn.Sequential(nn.Linear(Config.mel, Config.hidden), nn.ReLU(), nn.Linear(Config.hidden, Config.hidden), nn.ReLU())
        self.proj = nn.Linear(2 * Config.hidden, Config.speakers)

    def forward(self, x):
        h = self.tdnn(x)
        stats = torch.cat([h.mean(1), h.var(1)], -1)
        return torch.softmax(self.proj(stats), -1)


def criterion(post, y):
    onehot = nn.functional.one_hot(y, Config.speakers).float()
    ce = -(onehot * torch.log(post)).sum(-1).mean()
    entropy = -(post * torch.log(post)).sum(-1).mean()
    return ce - Config.conf_penalty * entropy, ce, entropy


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    means = torch.randn(Config.speakers, Config.mel, generator=gen)
    net = Xvector()
    opt = torch.optim.Adam(net.parameters(), lr=Config.lr)
    start = time.time()
    for i in range(1, Config.iters + 1):
        x, y = synth(Config.batch, gen, means)
        post = net(x)
        loss, ce, ent = criterion(post, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 20 == 0:
            err = (post.argmax(-1) != y).float().mean().item()
            sys.stderr.write(f"INFO:trainer:[{time.time() - start:6.1f}s] it {i:>4} total {loss.item():.4f} ce {ce.item():.4f} "
                             f"ent {ent.item():.4f} err {100 * err:.1f}%\n")


if __name__ == "__main__":
    main()
