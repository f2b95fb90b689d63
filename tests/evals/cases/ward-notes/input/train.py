#!/usr/bin/env python
"""Triage of short ward notes (4 urgency levels) with a packed GRU."""
import json
import random
import time

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

SEED, VOCAB, LEVELS = 17, 120, 4


class Notes(Dataset):
    def __init__(self, n, seed):
        rnd = random.Random(seed)
        self.items = []
        for _ in range(n):
            level = rnd.randrange(LEVELS)
            length = rnd.randint(5, 30)
            words = [rnd.randrange(1, VOCAB) for _ in range(length)]
            for _ in range(3):
                words[rnd.randrange(length)] = 1 + level * 10 + rnd.randrange(10)
            self.items.append((words, level))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(samples):
    tokens = [torch.tensor(words) for words, _ in samples]
    level = torch.tensor([lv for _, lv in samples])
    # packed sequences want descending lengths
    tokens.sort(key=len, reverse=True)
    lengths = torch.tensor([len(t) for t in tokens])
    return pad_sequence(tokens, batch_first=True), lengths, level


class Triage(nn.Module):
    def __init__(self, emb=32, hid=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, emb, padding_idx=0)
        self.rnn = nn.GRU(emb, hid, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(2 * hid, LEVELS))

    def forward(self, tok, lengths):
        packed = pack_padded_sequence(self.emb(tok), lengths, batch_first=True)
        _, h = self.rnn(packed)
        return self.head(torch.cat([h[0], h[1]], 1))


def evaluate(model, loader):
    model.eval()
    hit = n = 0
    with torch.no_grad():
        for tok, lengths, level in loader:
            hit += (model(tok, lengths).argmax(1) == level).sum().item()
            n += len(level)
    model.train()
    return hit / n


def main():
    torch.manual_seed(SEED)
    train = DataLoader(Notes(1600, 1), batch_size=32, shuffle=True, collate_fn=collate)
    dev = DataLoader(Notes(300, 2), batch_size=50, collate_fn=collate)
    model = Triage()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    crit = nn.CrossEntropyLoss()
    t0 = time.time()
    for epoch in range(8):
        losses = []
        for tok, lengths, level in train:
            opt.zero_grad()
            loss = crit(model(tok, lengths), level)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            losses.append(loss.item())
        print(json.dumps({"event": "epoch_end", "epoch": epoch, "xent": round(sum(losses) / len(losses), 4),
                          "dev_acc": round(evaluate(model, dev), 4), "wall": round(time.time() - t0, 1)}))


if __name__ == "__main__":
    main()
