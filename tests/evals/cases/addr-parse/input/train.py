import random
import time

import torch
from torch.nn.utils.rnn import pad_sequence

from addresses import corpus
from seq2seq import Seq2Seq
from vocab import CharVocab


def to_batch(rows, vs, vt):
    src = pad_sequence([torch.tensor(vs.encode(a)) for a, _ in rows], batch_first=True)
    tgt = pad_sequence([torch.tensor(vt.encode(b)) for _, b in rows], batch_first=True)
    return src, tgt[:, :-1], tgt[:, 1:]


def main(max_steps=250, bs=32):
    random.seed(22)
    torch.manual_seed(0)
    rows = corpus(4000, seed=4)
    vs = CharVocab([a for a, _ in rows])
    vt = CharVocab([b for _, b in rows])
    net = Seq2Seq(vs.size, len(vt.itos))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    t = time.time()
    for step in range(1, max_steps + 1):
        src, tin, tout = to_batch(random.sample(rows, bs), vs, vt)
        logits = net(src, tin)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tout.flatten(), ignore_index=0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step={step} loss={loss.item():.3f} tok/s={int(bs * 20 * 10 / (time.time() - t))}", flush=True)
            t = time.time()
    print("finished, last loss %.3f" % loss.item())


if __name__ == "__main__":
    main()
