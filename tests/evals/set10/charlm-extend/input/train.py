# continue the lower-case character model on the order log (upper case, digits, signs)
import math
import torch
import torch.nn.functional as F

from model import CharGRU

torch.manual_seed(11)
STEPS, BATCH, SEQ = 450, 32, 48


def setup():
    base = torch.load("base_lower.pt")
    net = CharGRU(len(base["chars"]))
    net.load_state_dict(base["model"])
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.01)
    warm = 30

    def factor(step):
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / (STEPS - warm))) * 0.95 + 0.05

    sched = torch.optim.lr_scheduler.LambdaLR(opt, factor)
    return base["chars"], net, opt, sched


def batches(data, gen):
    while True:
        ix = torch.randint(len(data) - SEQ - 1, (BATCH,), generator=gen)
        chunk = torch.stack([data[i:i + SEQ + 1] for i in ix])
        yield chunk[:, :-1], chunk[:, 1:]


@torch.no_grad()
def val_loss(net, data):
    net.eval()
    n = (len(data) - 1) // 200 * 200
    x, y = data[:n].view(-1, 200), data[1:n + 1].view(-1, 200)
    out = F.cross_entropy(net(x)[0].flatten(0, 1), y.flatten()).item()
    net.train()
    return out


@torch.no_grad()
def sample(net, stoi, chars, start="#", n=110):
    net.eval()
    ids, state, x = [stoi[start]], None, torch.tensor([[stoi[start]]])
    for _ in range(n):
        logits, state = net(x, state)
        x = torch.multinomial((logits[0, -1] / 0.7).softmax(-1), 1)[None]
        ids.append(x.item())
    net.train()
    return "".join(chars[i] for i in ids)


if __name__ == "__main__":
    text = open("orders.txt").read()
    old_chars, net, opt, sched = setup()
    chars = sorted(set(text) | set(old_chars))
    stoi = {c: i for i, c in enumerate(chars)}
    net.grow({i: stoi[c] for i, c in enumerate(old_chars)}, len(chars))
    print(f"base vocabulary {len(old_chars)} -> {len(chars)}; text has {len(text)} characters")

    ids = torch.tensor([stoi[c] for c in text])
    cut = int(0.92 * len(ids))
    train, val = ids[:cut], ids[cut:]
    print(f"step    0  val {val_loss(net, val):.3f}")
    stream = batches(train, torch.Generator().manual_seed(0))
    ema = None
    for step in range(1, STEPS + 1):
        x, y = next(stream)
        logits, _ = net(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        gn = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        ema = loss.item() if ema is None else 0.95 * ema + 0.05 * loss.item()
        if step % 50 == 0:
            print(f"step {step:4d}  train {ema:.3f}  val {val_loss(net, val):.3f}  |g| {gn:.2f}  lr {sched.get_last_lr()[0]:.2e}")
    print("sample:")
    print(sample(net, stoi, chars))
