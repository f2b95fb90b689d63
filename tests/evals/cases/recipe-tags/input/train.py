"""Tag ingredients, amounts and tools in recipe steps."""
import argparse
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

TAGS = ["O", "B-ING", "I-ING", "AMT", "TOOL"]
ING = ["butter", "flour", "salt", "milk", "rye", "honey", "eggs", "basil", "oats", "leek"]
MOD = ["brown", "fresh", "coarse", "sweet", "wild"]
AMT = ["two", "three", "half", "dozen", "pinch", "cup"]
TOOL = ["pan", "whisk", "oven", "bowl"]
FILL = ["the", "and", "then", "stir", "add", "with", "until", "done", "in", "slowly", "of", "a", "sweet", "fresh", "half"]
VOCAB = {w: i + 1 for i, w in enumerate(sorted({*ING, *MOD, *AMT, *TOOL, *FILL}))}


def sentence(rng):
    words, tags = [], []

    def put(w, t):
        words.append(w)
        tags.append(TAGS.index(t))

    for _ in range(rng.randint(1, 4)):
        for _ in range(rng.randint(1, 4)):
            put(rng.choice(FILL), "O")
        kind = rng.random()
        if kind < 0.45:
            if rng.random() < 0.5:
                put(rng.choice(MOD), "B-ING")
                put(rng.choice(ING), "I-ING")
            else:
                put(rng.choice(ING), "B-ING")
        elif kind < 0.75:
            put(rng.choice(AMT), "AMT")
        else:
            put(rng.choice(TOOL), "TOOL")
    if rng.random() < 0.04:  # now and then a scraped page without a full stop
        while len(words) < 110:
            put(rng.choice(FILL), "O")
    return torch.tensor([VOCAB[w] for w in words]), torch.tensor(tags)


class Steps(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.items = [sentence(rng) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    tokens, tags = zip(*items)
    return pad_sequence(tokens, batch_first=True), pad_sequence(tags, batch_first=True)


class Tagger(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(len(VOCAB) + 1, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, len(TAGS))

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = count = hit = ents = 0
    for x, y in loader:
        p = model(x).argmax(-1)
        right += (p == y).sum().item()
        count += y.numel()
        e = y > 0
        hit += (p[e] == y[e]).sum().item()
        ents += e.sum().item()
    return right / count, hit / ents


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--epochs", type=int, default=6)
    a.add_argument("--lr", type=float, default=1.5e-3)
    a = a.parse_args()
    torch.manual_seed(0)
    train = DataLoader(Steps(1200, 1), batch_size=32, shuffle=True, collate_fn=collate)
    val = DataLoader(Steps(300, 2), batch_size=32, collate_fn=collate)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), lr=a.lr)
    lossf = nn.CrossEntropyLoss()
    for epoch in range(a.epochs):
        model.train()
        bar = tqdm(train, desc=f"epoch {epoch}", mininterval=2)
        for x, y in bar:
            loss = lossf(model(x).transpose(1, 2), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            bar.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
        acc, recall = evaluate(model, val)
        print(f"epoch {epoch}: val token accuracy {acc:.3f} | entity recall {recall:.3f}")


if __name__ == "__main__":
    main()
