import random

import torch
import torch.nn as nn

SUBJ = ["the cat", "a sailor", "our teacher", "the old king", "my friend", "a robot"]
VERB = ["sees", "likes", "finds", "paints", "sells", "hides"]
OBJ = ["a boat", "the moon", "two apples", "an old map", "the river", "a green hat"]


def prose(n, seed):
    r = random.Random(seed)
    return " ".join(f"{r.choice(SUBJ)} {r.choice(VERB)} {r.choice(OBJ)}." for _ in range(n)).encode()


class ByteLM(nn.Module):
    def __init__(self, d=96):
        super().__init__()
        self.emb = nn.Embedding(128, d)
        self.rnn = nn.LSTM(d, d, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(d, 128, bias=False)
        self.out.weight = self.emb.weight
        nn.init.normal_(self.emb.weight, std=0.05)

    def forward(self, x, state):
        e = self.drop(self.emb(x))
        with torch.autocast("cpu", enabled=False):
            h, state = self.rnn(e.float(), state)
        return self.out(self.drop(h)), state
