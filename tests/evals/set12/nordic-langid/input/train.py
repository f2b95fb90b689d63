"""Bag of character n-grams with an averaged embedding, as in fastText."""
import zlib
from collections import defaultdict

import torch
import yaml
from torch import nn
from torch.nn import functional as F


def read_tsv(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            lang, text = line.rstrip("\n").split("\t")
            yield lang, text


def ngrams(text, sizes, buckets):
    padded = f"_{text.replace(' ', '_')}_"
    return [zlib.crc32(padded[i:i + n].encode()) % buckets for n in sizes for i in range(len(padded) - n + 1)]


class NgramClassifier(nn.Module):
    def __init__(self, buckets, classes, dim=24):
        super().__init__()
        self.emb = nn.EmbeddingBag(buckets, dim, mode="mean")
        self.out = nn.Linear(dim, classes)

    def forward(self, ids, offsets):
        return self.out(self.emb(ids, offsets))


def pack(rows):
    offsets = torch.tensor([0] + [len(r) for r in rows[:-1]]).cumsum(0)
    return torch.tensor([i for r in rows for i in r]), offsets


def report(model, languages, feats, gold):
    with torch.no_grad():
        pred = [languages[i] for i in model(*pack(feats)).argmax(-1).tolist()]
    hit, seen = defaultdict(int), defaultdict(int)
    for p, g in zip(pred, gold):
        hit[g] += p == g
        seen[g] += 1
    recall = {g: hit[g] / seen[g] for g in sorted(seen)}
    return sum(hit.values()) / len(gold), recall


def main():
    with open("config.yaml") as f:
        cfg = yaml.safe_load(f)
    torch.manual_seed(cfg["seed"])
    languages = [str(name) for name in cfg["languages"]]
    index = {name: i for i, name in enumerate(languages)}
    sizes, buckets = cfg["features"]["ngram"], cfg["features"]["buckets"]

    feats, labels = [], []
    for lang, text in read_tsv(cfg["train"]["file"]):
        if lang not in index:  # the corpus has more languages than we serve
            continue
        feats.append(ngrams(text, sizes, buckets))
        labels.append(index[lang])
    labels = torch.tensor(labels)
    test = list(read_tsv(cfg["eval"]["file"]))
    test_feats = [ngrams(t, sizes, buckets) for _, t in test]
    gold = [lang for lang, _ in test]
    print(f"{len(languages)} languages, {len(feats)} training sentences, {len(test)} test sentences", flush=True)

    model = NgramClassifier(buckets, len(languages))
    opt = torch.optim.Adam(model.parameters(), lr=cfg["train"]["lr"])
    for epoch in range(cfg["train"]["epochs"]):
        total = 0.0
        for idx in torch.randperm(len(feats)).split(cfg["train"]["batch_size"]):
            loss = F.cross_entropy(model(*pack([feats[i] for i in idx.tolist()])), labels[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        acc, recall = report(model, languages, test_feats, gold)
        print(f"epoch {epoch}  loss {total / len(feats):.4f}  test accuracy {acc:.3f}", flush=True)
    print("recall " + "  ".join(f"{k} {v:.2f}" for k, v in recall.items()))


if __name__ == "__main__":
    main()
