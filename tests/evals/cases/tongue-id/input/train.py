import csv
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from corpus import LETTERS, utterances

torch.manual_seed(2024)


class Utterances(Dataset):
    """encodes text as character ids and languages as class ids"""

    def __init__(self, rows):
        self.char = {c: i for i, c in enumerate(LETTERS)}
        self.lang = {}
        self.items = []
        for r in rows:
            label = self.lang.setdefault(r["lang"], len(self.lang))
            self.items.append((torch.tensor([self.char[c] for c in r["text"]]), label))

    @property
    def n_classes(self):
        return len(self.lang)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class CharCNN(nn.Module):
    def __init__(self, n_chars, n_classes, emb=24, channels=96):
        super().__init__()
        self.emb = nn.Embedding(n_chars, emb)
        self.convs = nn.ModuleList(nn.Conv1d(emb, channels, k) for k in (2, 3))
        self.fc = nn.Linear(2 * channels, n_classes)

    def forward(self, ids):
        x = self.emb(ids).transpose(1, 2)
        x = torch.cat([F.relu(c(x)).mean(-1) for c in self.convs], dim=1)
        return self.fc(x)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = hits = n = 0
    for ids, y in loader:
        logits = model(ids)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        hits += (logits.argmax(-1) == y).sum().item()
        n += len(y)
    return loss / n, hits / n


def main():
    train_set = Utterances(utterances(1500, seed=1))
    valid_set = Utterances(utterances(400, seed=2))
    assert train_set.n_classes == valid_set.n_classes == 12
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=200)
    model = CharCNN(len(LETTERS), train_set.n_classes)
    optim = torch.optim.Adam(model.parameters(), lr=2e-3)

    out = open("metrics.csv", "w", newline="")
    writer = csv.writer(out)
    writer.writerow(["epoch", "train_loss", "train_acc", "valid_loss", "valid_acc"])
    print("epoch | train loss | train acc | valid loss | valid acc | sec")
    print("------+------------+-----------+------------+-----------+----")
    for epoch in range(1, 9):
        start = time.time()
        model.train()
        tot = hits = 0
        for ids, y in train_loader:
            optim.zero_grad()
            logits = model(ids)
            loss = F.cross_entropy(logits, y)
            loss.backward()
            optim.step()
            tot += loss.item() * len(y)
            hits += (logits.argmax(-1) == y).sum().item()
        n = len(train_set)
        vl, va = evaluate(model, valid_loader)
        writer.writerow([epoch, f"{tot / n:.4f}", f"{hits / n:.4f}", f"{vl:.4f}", f"{va:.4f}"])
        print(f"{epoch:5d} | {tot / n:10.4f} | {hits / n:9.3f} | {vl:10.4f} | {va:9.3f} | {time.time() - start:3.1f}")
    out.close()


if __name__ == "__main__":
    main()
