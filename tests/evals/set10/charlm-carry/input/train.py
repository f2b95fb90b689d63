# Character LSTM with truncated BPTT. The hidden state goes from chunk to chunk; an average of the weights is
# kept and used for validation.
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LANES, CHUNK, EPOCHS, DECAY = 16, 32, 6, 0.98
torch.manual_seed(15)


class CharLSTM(nn.Module):
    def __init__(self, n, d=40, h=96, p=0.25):
        super().__init__()
        self.emb = nn.Embedding(n, d)
        self.lstm = nn.LSTM(d, h, batch_first=True)
        self.drop = nn.Dropout(p)
        self.fc = nn.Linear(h, n)

    def forward(self, x, state):
        y, state = self.lstm(self.drop(self.emb(x)), state)
        return self.fc(self.drop(y)), state


def lanes(ids, k):
    n = (len(ids) - 1) // k
    return ids[:n * k].view(k, n), ids[1:n * k + 1].view(k, n)


@torch.no_grad()
def update_average(avg, net, decay):
    for a, b in zip(avg.parameters(), net.parameters()):
        a.mul_(decay).add_(b, alpha=1 - decay)


@torch.no_grad()
def validate(net, x, y):
    net.eval()
    logits, _ = net(x, None)
    return F.cross_entropy(logits.flatten(0, 1), y.flatten()).item()


text = open("story.txt").read()
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])
cut = int(len(ids) * 0.9)
x, y = lanes(ids[:cut], LANES)
xv, yv = lanes(ids[cut:], 4)
net = CharLSTM(len(chars))
average = copy.deepcopy(net)
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
print(f"{len(text)} characters, {len(chars)} different, {x.size(1) // CHUNK} chunks per epoch")
t0 = time.time()
for epoch in range(1, EPOCHS + 1):
    net.train()
    state, total, count = None, 0.0, 0
    for i in range(0, x.size(1) - CHUNK + 1, CHUNK):
        logits, state = net(x[:, i:i + CHUNK], state)
        state = tuple(s.detach() for s in state)
        loss = F.cross_entropy(logits.flatten(0, 1), y[:, i:i + CHUNK].flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        update_average(average, net, DECAY)
        total, count = total + loss.item(), count + 1
    va, vr = validate(average, xv, yv), validate(net, xv, yv)
    print(f"epoch {epoch}  train {total / count:.3f}  val (average) {va:.3f}  val (raw) {vr:.3f}  {time.time() - t0:.0f}s", flush=True)
