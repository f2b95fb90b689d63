import random
import string

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ALPHABET = "-" + string.digits + string.ascii_lowercase[:10]
IMG_H, COL_W = 12, 8
random.seed(5)
torch.manual_seed(5)
GLYPHS = {c: (torch.rand(IMG_H, COL_W) > 0.6).float() for c in ALPHABET[1:]}


def render(word):
    canvas = torch.zeros(IMG_H, 96)
    x = 2
    for c in word:
        canvas[:, x:x + COL_W] = GLYPHS[c]
        x += COL_W + random.choice([0, 0, 1])
    return (canvas + 0.15 * torch.randn_like(canvas)).unsqueeze(0)


class PlateDataset(Dataset):
    def __init__(self, n, max_len):
        self.items = ["".join(random.choice(ALPHABET[1:]) for _ in range(random.randint(3, max_len))) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        word = self.items[i]
        return render(word), torch.tensor([ALPHABET.index(c) for c in word])


def pad_batch(samples):
    imgs, labels = zip(*samples)
    lengths = torch.tensor([len(l) for l in labels])
    return torch.stack(imgs), torch.cat(labels), lengths


class CRNN(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d((3, 2)),
        )
        self.rnn = nn.LSTM(48, hidden, bidirectional=True)
        self.cls = nn.Linear(2 * hidden, len(ALPHABET))

    def forward(self, x):
        f = self.backbone(x).squeeze(2).permute(2, 0, 1)
        f, _ = self.rnn(f)
        return self.cls(f).log_softmax(-1)


def greedy(logp):
    words = []
    for seq in logp.argmax(-1).t():
        out, prev = "", 0
        for k in seq.tolist():
            if k != prev and k != 0:
                out += ALPHABET[k]
            prev = k
        words.append(out)
    return words


@torch.no_grad()
def word_accuracy(net, loader, ds):
    net.eval()
    pred = [w for imgs, _, _ in loader for w in greedy(net(imgs))]
    net.train()
    return sum(p == t for p, t in zip(pred, ds.items)) / len(ds)


def train(epochs=6):
    tr, va = PlateDataset(1400, 10), PlateDataset(150, 10)
    loader = DataLoader(tr, 50, shuffle=True, collate_fn=pad_batch)
    va_loader = DataLoader(va, 50, collate_fn=pad_batch)
    net = CRNN()
    criterion = nn.CTCLoss(blank=0)
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    step = 0
    for ep in range(1, epochs + 1):
        for imgs, labels, lengths in loader:
            logp = net(imgs)
            T, B, _ = logp.shape
            ctc = criterion(logp, labels, torch.full((B,), T, dtype=torch.long), lengths)
            opt.zero_grad()
            ctc.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
            if step % 15 == 0:
                print(f"epoch {ep:2d} step {step:4d} ctc {ctc.item():.3f}")
            step += 1
        print(f"epoch {ep:2d} done  word acc {word_accuracy(net, va_loader, va):.3f}")


if __name__ == "__main__":
    print(f"alphabet {len(ALPHABET)} symbols, image {IMG_H}x96")
    train()
