import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, n_src, n_tgt, dim=48):
        super().__init__()
        self.src_emb = nn.Embedding(n_src, dim, padding_idx=0)
        self.tgt_emb = nn.Embedding(n_tgt, dim, padding_idx=0)
        self.enc = nn.GRU(dim, dim, batch_first=True)
        self.dec = nn.GRU(dim, dim, batch_first=True)
        self.mix = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, n_tgt)

    def forward(self, src, tgt_in):
        mem, h = self.enc(self.src_emb(src))
        q, _ = self.dec(self.tgt_emb(tgt_in), h)
        att = (q @ mem.transpose(1, 2)).masked_fill((src == 0)[:, None], -1e9).softmax(-1)
        return self.out(torch.tanh(self.mix(torch.cat([q, att @ mem], -1))))
