import json
import torch

PAD = 0


def read_export(folder):
    index = json.load(open(f"{folder}/item_index.json"))
    users, seqs = [], []
    for line in open(f"{folder}/baskets.txt"):
        u, s = line.rstrip("\n").split("\t")
        users.append(u)
        seqs.append([int(i) for i in s.split()])
    return index, users, seqs


def left_pad(seqs, max_len):
    x = torch.full((len(seqs), max_len), PAD, dtype=torch.long)
    for k, s in enumerate(seqs):
        s = s[-max_len:]
        x[k, max_len - len(s):] = torch.tensor(s)
    return x


def splits(seqs, max_len):
    """leave-last-out: everything but the final item trains, the final item tests"""
    train = left_pad([s[:-1] for s in seqs], max_len + 1)
    ctx = left_pad([s[:-1] for s in seqs], max_len)
    target = torch.tensor([s[-1] for s in seqs])
    return train, ctx, target
