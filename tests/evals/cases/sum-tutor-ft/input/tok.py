import torch


class CharTokenizer:
    def __init__(self, alphabet="0123456789+=?: QA"):
        self.vocab = ["<unk>", "<eos>"] + list(alphabet)
        self.ids = {c: i for i, c in enumerate(self.vocab)}
        self.eos_token_id = 1
        self.pad_token_id = None

    def __len__(self):
        return len(self.vocab)

    def encode(self, s):
        return [self.ids.get(c, 0) for c in s]

    def decode(self, ids):
        return "".join(self.vocab[i] for i in ids)

    def pad(self, rows):
        width = max(map(len, rows))
        out = torch.full((len(rows), width), self.pad_token_id)
        for i, r in enumerate(rows):
            out[i, : len(r)] = torch.tensor(r)
        return out
