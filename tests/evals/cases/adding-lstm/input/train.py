# Adding problem (Hochreiter & Schmidhuber): sum the two marked numbers of a sequence.
# truncated BPTT over chunks, sequence-first layout for nn.LSTM
import json
import torch
import torch.nn as nn

CONF = {
    "seq_len": 24,
    "chunk": 12,
    "batch": 64,
    "hidden": 64,
    "lr": 4e-3,
    "steps": 900,
    "clip": 1.0,
    "seed": 1,
}


def make_batch(bs, seq_len):
    value = torch.rand(bs, seq_len)
    mark = torch.zeros(bs, seq_len)
    first = torch.randint(seq_len - 8, seq_len - 4, (bs,))
    second = torch.randint(seq_len - 4, seq_len, (bs,))
    rows = torch.arange(bs)
    mark[rows, first] = 1.0
    mark[rows, second] = 1.0
    target = (value * mark).sum(1)
    return torch.stack([value, mark], dim=-1), target


class Adder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.LSTM(2, hidden)
        self.read = nn.Linear(hidden, 1)
        for name, p in self.rnn.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(p)
            elif "bias_ih" in name:
                n = p.numel() // 4
                p.data[n:2 * n] = 1.0

    def forward(self, chunk, state=None):
        out, state = self.rnn(chunk, state)
        return self.read(out[-1]).squeeze(-1), state


def detach(state):
    return tuple(s.detach() for s in state)


def predict(net, batch, conf):
    bs, seq_len, width = batch.shape
    x = batch.reshape(seq_len, bs, width)
    state = None
    for k in range(0, seq_len, conf["chunk"]):
        if state is not None:
            state = detach(state)
        y, state = net(x[k:k + conf["chunk"]], state)
    return y


def main(conf):
    torch.manual_seed(conf["seed"])
    net = Adder(conf["hidden"])
    opt = torch.optim.RMSprop(net.parameters(), lr=conf["lr"] / 2)
    held_out = make_batch(500, conf["seq_len"])
    base = held_out[1].var().item()
    print(json.dumps({"config": conf, "predict_mean_mse": round(base, 4)}))
    running = None
    for step in range(1, conf["steps"] + 1):
        batch, target = make_batch(conf["batch"], conf["seq_len"])
        loss = (predict(net, batch, conf) - target).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), conf["clip"])
        opt.step()
        running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
        if step % 50 == 0:
            with torch.no_grad():
                test = (predict(net, held_out[0], conf) - held_out[1]).pow(2).mean().item()
            print(json.dumps({"step": step, "mse_ema": round(running, 4), "test_mse": round(test, 4), "grad_norm": round(norm.item(), 3)}))


main(CONF)
