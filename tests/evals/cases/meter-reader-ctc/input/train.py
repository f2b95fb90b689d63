"""Reads water meter dials from column features of the dial strip."""
import random
import torch
import torch.nn as nn
import torch.nn.functional as F
from tqdm import tqdm
from charset import N_CLASS, SYMBOLS, edit_distance, encode, greedy

FEAT = 16


class Strip:
    """Synthetic strips: each symbol is 3 to 6 columns of its glyph pattern, with gaps between."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.glyph = torch.randn(len(SYMBOLS), FEAT, generator=torch.Generator().manual_seed(8))
        self.g = torch.Generator().manual_seed(seed)

    def one(self):
        text = "".join(self.r.choice("0123456789") for _ in range(self.r.randint(4, 7)))
        if self.r.random() < 0.3:
            text = text[:-2] + "-" + text[-2:]
        cols = []
        for c in encode(text):
            cols += [torch.zeros(FEAT)] * self.r.randint(1, 3)
            cols += [self.glyph[c]] * self.r.randint(3, 6)
        x = torch.stack(cols)
        return x + 0.35 * torch.randn(x.shape, generator=self.g), text

    def batch(self, n):
        items = [self.one() for _ in range(n)]
        xs = nn.utils.rnn.pad_sequence([x for x, _ in items], batch_first=True)
        return xs, torch.tensor([len(x) for x, _ in items]), [t for _, t in items]


class Reader(nn.Module):
    def __init__(self, ch=48):
        super().__init__()
        self.a = nn.Conv1d(FEAT, ch, 5, padding=2)
        self.b = nn.Conv1d(ch, ch, 5, padding=2)
        self.out = nn.Conv1d(ch, N_CLASS, 1)

    def forward(self, x):
        h = F.relu(self.a(x.transpose(1, 2)))
        return self.out(F.relu(self.b(h))).permute(2, 0, 1).log_softmax(-1)  # T, B, C


def cer(model, strip, n=200):
    x, lens, texts = strip.batch(n)
    with torch.no_grad():
        best = model(x).argmax(-1).T
    guess = [greedy(b[:l].tolist()) for b, l in zip(best, lens)]
    err = sum(edit_distance(g, t) for g, t in zip(guess, texts))
    return err / sum(map(len, texts)), list(zip(texts, guess))[:3]


def main():
    torch.manual_seed(0)
    train, model = Strip(1), Reader()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    crit = nn.CTCLoss(zero_infinity=True)
    bar = tqdm(range(1, 351), mininterval=1.0, ncols=80)
    for step in bar:
        x, lens, texts = train.batch(32)
        target = torch.tensor([i for t in texts for i in encode(t)])
        tlen = torch.tensor([len(t) for t in texts])
        loss = crit(model(x), target, lens, tlen)
        opt.zero_grad()
        loss.backward()
        opt.step()
        bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        if step % 50 == 0:
            e, ex = cer(model, Strip(77))
            tqdm.write(f"step {step} loss {loss.item():.3f} CER {e:.3f} " + " ".join(f"{t}->{g or '(empty)'}" for t, g in ex))


if __name__ == "__main__":
    main()
