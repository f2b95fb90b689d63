import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader

from data import LETTERS, PAD, Keying, collate


class Listener(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.conv = nn.Conv1d(1, 32, 9, padding=4)
        self.rnn = nn.LSTM(32, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, len(LETTERS) + 1)

    def forward(self, x, n):
        h = F.gelu(self.conv(x.unsqueeze(1))).transpose(1, 2)
        h, _ = self.rnn(pack_padded_sequence(h, n, batch_first=True))
        h, _ = pad_packed_sequence(h, batch_first=True, total_length=x.shape[1])
        return self.out(h)


def windows(loader, size):
    """Groups of micro-batches; the last group may be smaller."""
    group = []
    for batch in loader:
        group.append(batch)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hit = n = 0
    for x, y, lens in loader:
        keep = y > 0
        hit += (model(x, lens).argmax(-1)[keep] == y[keep]).sum().item()
        n += keep.sum().item()
    return hit / n


def main():
    torch.manual_seed(0)
    train = DataLoader(Keying(1000, 1), batch_size=8, shuffle=True, collate_fn=collate)
    val = DataLoader(Keying(150, 2), batch_size=50, collate_fn=collate)
    model = Listener()
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda k: min(1.0, (k + 1) / 30))
    with open("metrics.jsonl", "w") as f:
        for epoch in range(6):
            model.train()
            total = count = 0
            largest = 0.0
            for group in windows(train, 4):
                labels = sum((y != PAD).sum() for _, y, _ in group)
                opt.zero_grad()
                for x, y, n in group:
                    loss = F.cross_entropy(model(x, n).flatten(0, 1), y.flatten(), ignore_index=PAD, reduction="sum")
                    (loss / labels).backward()
                    total += loss.item()
                count += labels.item()
                largest = max(largest, nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
                opt.step()
                warm.step()
            row = {"epoch": epoch, "loss": round(total / count, 4), "max_grad_norm_before_clip": round(largest, 3),
                   "val_letter_acc": round(evaluate(model, val), 4), "lr": warm.get_last_lr()[0]}
            print(json.dumps(row), flush=True)
            f.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
