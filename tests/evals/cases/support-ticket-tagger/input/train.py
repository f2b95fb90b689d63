import collections
import random
import torch
import torch.nn as nn

random.seed(7)
torch.manual_seed(7)

TOPICS = {
    "billing": "invoice refund charge card payment receipt price plan".split(),
    "login": "password reset locked account email code signin".split(),
    "bug": "crash error freeze screen update version log".split(),
}
COMMON = "the my please help i have since yesterday again not when is on a for".split()


def make_ticket():
    topic = random.choice(list(TOPICS))
    words = [random.choice(COMMON if random.random() < 0.6 else TOPICS[topic]) for _ in range(random.randint(5, 14))]
    return words, list(TOPICS).index(topic)


tickets = [make_ticket() for _ in range(1200)]
train, dev = tickets[:1000], tickets[1000:]

counts = collections.Counter(w for words, _ in train for w in words)
PAD, UNK = 0, 1
vocab = {w: i + 2 for i, (w, _) in enumerate(counts.most_common())}
print(f"[data] {len(train)} train tickets, {len(dev)} dev tickets, {len(vocab)} distinct words")


def encode(batch):
    ids = [[vocab.get(w, UNK) for w in words] for words, _ in batch]
    width = max(map(len, ids))
    return (torch.tensor([r + [PAD] * (width - len(r)) for r in ids]),
            torch.tensor([y for _, y in batch]))


class Tagger(nn.Module):
    def __init__(self, n_words, n_topics, dim=32):
        super().__init__()
        self.emb = nn.Embedding(n_words, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, 48, batch_first=True)
        self.out = nn.Linear(48, n_topics)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        mask = (ids != PAD).unsqueeze(-1)
        return self.out((h * mask).sum(1) / mask.sum(1))


model = Tagger(n_words=len(vocab), n_topics=len(TOPICS))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
step = 0
for epoch in range(3):
    random.shuffle(train)
    for i in range(0, len(train), 4):
        ids, y = encode(train[i:i + 4])
        loss = nn.functional.cross_entropy(model(ids), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 2 == 0:
            print(f"[train] step={step} loss={loss.item():.3f} width={ids.shape[1]}")
        step += 1
    model.eval()
    with torch.no_grad():
        ids, y = encode(dev)
        print(f"[dev] epoch={epoch} acc={(model(ids).argmax(-1) == y).float().mean():.3f}")
    model.train()
