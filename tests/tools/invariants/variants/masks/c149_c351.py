import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class Encoder(nn.Module):
    def __init__(self, words=40, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=PAD)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 2, batch_first=True), 2)
        self.head = nn.Linear(width, 3)

    def forward(self, ids):
        text = ids.ne(PAD)
        x = self.layers(self.embed(ids), src_key_padding_mask=text)  # FAULT C149
        return self.head(x[:, 0])


class ByLength(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x, lengths):
        places = torch.arange(x.size(1), device=x.device)
        inside = lengths.unsqueeze(1) > places
        return self.attend(x, x, x, key_padding_mask=inside)[0]  # FAULT C149


class Scores(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.register_buffer("past", torch.tril(torch.ones(64, 64)))

    def forward(self, x):
        n = x.shape[1]
        scores = torch.bmm(self.q(x), self.k(x).transpose(1, 2)) / math.sqrt(x.shape[-1])
        scores = scores + self.past[:n, :n]  # FAULT C351
        return F.softmax(scores, dim=-1) @ self.v(x)


def attend(q, k, v, ids):
    keep = (ids != PAD)[:, None, None, :].float()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep)  # FAULT C351


def train(batches):
    net, lengthy, scored = Encoder(), ByLength(), Scores()
    optimizer = torch.optim.Adam([*net.parameters(), *lengthy.parameters(), *scored.parameters()])
    for ids, x, lengths, y in batches:
        loss = F.cross_entropy(net(ids), y) + scored(lengthy(x, lengths)).pow(2).mean() + attend(x, x, x, ids).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
