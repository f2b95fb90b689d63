import random

QUEUES = ["billing", "hardware", "returns", "shipping", "software", "vip"]
TOPIC = {q: [f"{q[:3]}{i}" for i in range(12)] for q in QUEUES}
COMMON = [f"w{i}" for i in range(60)]


def make_ticket(rnd, queue):
    words = rnd.choices(TOPIC[queue], k=rnd.randint(3, 6)) + rnd.choices(COMMON, k=rnd.randint(6, 12))
    rnd.shuffle(words)
    return " ".join(words)


def load_split(name):
    """train = all of last year, validation = tickets of the current month."""
    rnd = random.Random({"train": 1, "validation": 2}[name])
    size = {"train": 1200, "validation": 240}[name]
    pool = QUEUES if name == "train" else [q for q in QUEUES if q != "billing"]
    rows = [rnd.choice(pool) for _ in range(size)]
    return [{"text": make_ticket(rnd, q), "queue": q} for q in rows]


class Vocab:
    def __init__(self, texts):
        words = sorted({w for t in texts for w in t.split()})
        self.ids = {w: i + 2 for i, w in enumerate(words)}

    def __len__(self):
        return len(self.ids) + 2

    def encode(self, text, max_len):
        ids = [self.ids.get(w, 1) for w in text.split()][:max_len]
        mask = [1] * len(ids) + [0] * (max_len - len(ids))
        return ids + [0] * (max_len - len(ids)), mask


def prepare(rows, vocab, max_len=20):
    names = sorted({r["queue"] for r in rows})
    label2id = {q: i for i, q in enumerate(names)}
    features = []
    for r in rows:
        ids, mask = vocab.encode(r["text"], max_len)
        features.append({"input_ids": ids, "attention_mask": mask, "labels": label2id[r["queue"]]})
    return features, names
