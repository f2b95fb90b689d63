"""Stateful LSTM on a continuous symbol stream (truncated BPTT)."""
import logging
import torch
import torch.nn as nn

logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%m/%d/%Y %I:%M:%S %p", level=logging.INFO)


class StreamLM(nn.Module):
    def __init__(self, n_sym=16, emb=16, hid=48):
        super().__init__()
        self.emb = nn.Embedding(n_sym, emb)
        self.cell = nn.LSTM(emb, hid, batch_first=True)
        self.dec = nn.Linear(hid, n_sym)

    def forward(self, ids, state=None):
        y, state = self.cell(self.emb(ids), state)
        return self.dec(y), state


class Stream:
    """A second-order pattern with long segments, cut into parallel lanes."""

    def __init__(self, lanes=12, length=4000, n_sym=16):
        g = torch.Generator().manual_seed(8)
        trans = torch.randint(0, n_sym, (n_sym, n_sym), generator=g)
        s = torch.zeros(lanes, length, dtype=torch.long)
        s[:, :2] = torch.randint(0, n_sym, (lanes, 2), generator=g)
        flip = torch.rand(lanes, length, generator=g) < 0.1
        rnd = torch.randint(0, n_sym, (lanes, length), generator=g)
        for t in range(2, length):
            s[:, t] = torch.where(flip[:, t], rnd[:, t], trans[s[:, t - 1], s[:, t - 2]])
        self.s = s

    def chunks(self, bptt):
        for a in range(0, self.s.shape[1] - bptt - 1, bptt):
            yield self.s[:, a:a + bptt], self.s[:, a + 1:a + bptt + 1]


def train(bptt=20, lr=5e-3):
    torch.manual_seed(0)
    stream, model = Stream(), StreamLM()
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    logging.info("lanes %d, chunks of %d", len(stream.s), bptt)
    state = None
    for k, (x, y) in enumerate(stream.chunks(bptt)):
        logits, state = model(x, state)
        nats = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        nats.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        if k % 20 == 0:
            logging.info("chunk %d nats/sym %.4f", k, nats.item())
    logging.info("end of stream")


if __name__ == "__main__":
    train()
