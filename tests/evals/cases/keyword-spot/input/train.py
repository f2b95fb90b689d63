# Keyword spotting on log-mel-like frames, 10 words
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
WORDS = 10
BATCH = 32
EPOCHS = 6


class DSConv(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.dw = nn.Conv1d(ch, ch, 5, padding=2, groups=ch)
        self.pw = nn.Conv1d(ch, ch, 1)

    def forward(self, x):
        return x + F.relu(self.pw(self.dw(x)))


class Spotter(nn.Module):
    def __init__(self, mels=12, ch=32):
        super().__init__()
        self.inp = nn.Conv1d(mels, ch, 3, padding=1)
        self.body = nn.Sequential(DSConv(ch), DSConv(ch))
        self.out = nn.Linear(ch, WORDS)

    def forward(self, x):
        return self.out(self.body(F.relu(self.inp(x))).mean(-1))


def recordings(n, seed):
    g = torch.Generator().manual_seed(99)
    templates = torch.randn(WORDS, 12, 20, generator=g)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, WORDS, (n,), generator=g)
    return 0.5 * templates[y] + torch.randn(n, 12, 20, generator=g), y


def progress(i, n, **kv):
    done = int(30 * i / n)
    bar = "=" * done + (">" if done < 30 else "") + "." * (29 - done)
    stats = " - ".join(f"{k}: {v:.4f}" for k, v in kv.items())
    sys.stdout.write(f"\r{i}/{n} [{bar}] - {stats}")
    sys.stdout.flush()


def build_optimizer(model):
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    # 0.9 per pass over the data
    decay = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)
    return opt, decay


def main():
    x, y = recordings(2560, 1)
    xv, yv = recordings(500, 2)
    model = Spotter()
    opt, decay = build_optimizer(model)
    n = len(x) // BATCH
    for epoch in range(EPOCHS):
        print(f"Epoch {epoch + 1}/{EPOCHS}")
        run_loss, run_hit = 0.0, 0
        for i, idx in enumerate(torch.randperm(len(x)).split(BATCH), 1):
            logits = model(x[idx])
            loss = F.cross_entropy(logits, y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            decay.step()
            run_loss += loss.item()
            run_hit += (logits.argmax(1) == y[idx]).sum().item()
            if i % 16 == 0:
                progress(i, n, loss=run_loss / i, categorical_accuracy=run_hit / (i * BATCH))
        with torch.no_grad():
            out = model(xv)
            vl, va = F.cross_entropy(out, yv).item(), (out.argmax(1) == yv).float().mean().item()
        print(f" - val_loss: {vl:.4f} - val_categorical_accuracy: {va:.4f}")


if __name__ == "__main__":
    main()
