import random
import time

import torch
import torch.nn as nn

from speech import FEATS, batches, synth
from text import NUM_OUT, decode, edit_distance


class Acoustic(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(FEATS, 64, 3, padding=1), nn.ReLU())
        self.rnn = nn.GRU(64, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, NUM_OUT)

    def forward(self, x):
        h = self.front(x.transpose(1, 2)).transpose(1, 2)
        return self.out(self.rnn(h)[0]).log_softmax(-1)


@torch.no_grad()
def score(model, items):
    model.eval()
    ce = cn = we = wn = 0
    shown = None
    for x, xl, _, _, refs in batches(items, 40, False):
        paths = model(x).argmax(-1)
        for p, l, ref in zip(paths, xl, refs):
            hyp = decode(p[:l].tolist())
            ce += edit_distance(hyp, ref)
            cn += len(ref)
            we += edit_distance(hyp.split(), ref.split())
            wn += len(ref.split())
            shown = shown or (ref, hyp)
    return 100 * ce / cn, 100 * we / wn, shown


def main():
    torch.manual_seed(2)
    rng = random.Random(2)
    train, dev = synth(500, 10), synth(60, 11)
    model = Acoustic()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    crit = nn.CTCLoss(zero_infinity=True)
    for ep in range(10):
        model.train()
        t0, tot, k = time.time(), 0.0, 0
        for x, xl, y, yl, _ in batches(train, 20, True, rng):
            loss = crit(model(x).transpose(0, 1), y, xl, yl)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            tot, k = tot + loss.item(), k + 1
        cer, wer, (ref, hyp) = score(model, dev)
        print(f"| {ep:3d} | ctc {tot / k:7.4f} | CER {cer:6.2f} | WER {wer:6.2f} | {time.time() - t0:4.1f}s |")
        print(f"|     | ref: {ref} | hyp: {hyp}")


if __name__ == "__main__":
    main()
