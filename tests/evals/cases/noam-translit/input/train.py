import math
import random

import torch
import torch.nn as nn

"""Transliteration toy: upper-case latin strings to their 'cipher' spelling, encoder-decoder transformer."""

D_MODEL, N_HEADS, FF, WARMUP = 64, 4, 128, 100
TOTAL_STEPS, BATCH, BASE_LR = 280, 48, 5e-4
PAD, BOS, EOS, OFFSET = 0, 1, 2, 3
LETTERS = 14


def make_pair(rnd):
    src = [rnd.randrange(LETTERS) for _ in range(rnd.randint(4, 8))]
    tgt = []
    for a in src:
        tgt.append((a * 5 + 3) % LETTERS)
        if a % 7 == 0:
            tgt.append(a)
    return [a + OFFSET for a in src], [BOS] + [a + OFFSET for a in tgt] + [EOS]


def batchify(pairs):
    def pad(rows):
        n = max(map(len, rows))
        return torch.tensor([r + [PAD] * (n - len(r)) for r in rows])

    s, t = zip(*pairs)
    return pad(s), pad(t)


class Seq2Seq(nn.Module):
    def __init__(self, vocab=LETTERS + OFFSET):
        super().__init__()
        self.emb = nn.Embedding(vocab, D_MODEL, padding_idx=PAD)
        self.register_buffer("pe", self.sinusoid(32))
        self.core = nn.Transformer(D_MODEL, N_HEADS, 1, 1, FF, dropout=0.0, batch_first=True, norm_first=True)
        self.generator = nn.Linear(D_MODEL, vocab)

    @staticmethod
    def sinusoid(n):
        pos, dim = torch.arange(n)[:, None], torch.arange(0, D_MODEL, 2)
        ang = pos * torch.exp(-math.log(10000.0) * dim / D_MODEL)
        return torch.stack([ang.sin(), ang.cos()], -1).flatten(1)

    def embed(self, ids):
        return self.emb(ids) * math.sqrt(D_MODEL) * 0.2 + self.pe[: ids.size(1)]

    def forward(self, src, tgt_in):
        causal = nn.Transformer.generate_square_subsequent_mask(tgt_in.size(1)).isinf()
        out = self.core(self.embed(src), self.embed(tgt_in), tgt_mask=causal, src_key_padding_mask=src == PAD,
                        tgt_key_padding_mask=tgt_in == PAD, memory_key_padding_mask=src == PAD)
        return self.generator(out)


def rate(step, model_size=D_MODEL, factor=1.0, warmup=WARMUP):
    step = max(step, 1)
    return factor * model_size ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)


def main():
    torch.manual_seed(10)
    rnd = random.Random(10)
    net = Seq2Seq()
    adam = torch.optim.Adam(net.parameters(), lr=BASE_LR, betas=(0.9, 0.98), eps=1e-9)
    warm = torch.optim.lr_scheduler.LambdaLR(adam, lr_lambda=rate)
    smooth = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    for step in range(1, TOTAL_STEPS + 1):
        src, tgt = batchify([make_pair(rnd) for _ in range(BATCH)])
        scores = net(src, tgt[:, :-1])
        cost = smooth(scores.flatten(0, 1), tgt[:, 1:].flatten())
        adam.zero_grad(set_to_none=True)
        cost.backward()
        adam.step()
        warm.step()
        if step % 25 == 0:
            gold, guess = tgt[:, 1:], scores.argmax(-1)
            acc = (guess == gold)[gold != PAD].float().mean().item()
            print(f"Step: {step:5d} | Loss: {cost.item():6.3f} | Token acc: {acc:5.3f} | Learning Rate: {adam.param_groups[0]['lr']:6.1e}")


if __name__ == "__main__":
    main()
