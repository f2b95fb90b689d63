# hive state (queenright / queenless / swarming) from log-mel frames
import argparse, sys, time
import torch
from torch import nn

p = argparse.ArgumentParser()
p.add_argument("--epochs", type=int, default=4)
p.add_argument("--lr", type=float, default=3e-3)
p.add_argument("--mels", type=int, default=40)
p.add_argument("--eval-first", action="store_true")
args = p.parse_args()
torch.manual_seed(11)


def hive_clips(n):
    state = torch.randint(0, 3, (n,))
    centre = torch.tensor([8.0, 18.0, 30.0])[state]
    bands = torch.arange(args.mels).float()
    env = torch.exp(-((bands - centre[:, None]) ** 2) / 30)
    clip = env[:, :, None] + 0.4 * torch.randn(n, args.mels, 25)
    return clip, state


class HiveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(args.mels, 32, 5), nn.ReLU(), nn.Dropout(0.2), nn.Conv1d(32, 32, 5), nn.ReLU())
        self.cls = nn.Linear(32, 3)

    def forward(self, x):
        return self.cls(self.conv(x).mean(-1))


def score(model, clips, states, chunk=100):
    model.eval()
    torch.set_grad_enabled(False)
    right = 0
    for x, y in zip(clips.split(chunk), states.split(chunk)):
        right += (model(x).argmax(1) == y).sum().item()
    model.train()
    return right / len(states)


def main():
    tr_x, tr_y = hive_clips(1000)
    va_x, va_y = hive_clips(300)
    model = HiveNet()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    crit = nn.CrossEntropyLoss(label_smoothing=0.05)
    for ep in range(1, args.epochs + 1):
        t0, perm = time.time(), torch.randperm(len(tr_x))
        for b, idx in enumerate(perm.split(50)):
            loss = crit(model(tr_x[idx]), tr_y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if b % 5 == 0:
                print(f"ep{ep} [{b:>2}/20] loss={loss.item():.4f}", file=sys.stderr)
        acc = score(model, va_x, va_y)
        print(f"ep{ep} done in {time.time() - t0:.2f}s val_acc={acc:.3f}", file=sys.stderr)


main()
