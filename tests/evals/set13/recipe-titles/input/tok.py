import json
import torch


class WordLevel:
    def __init__(self, folder):
        self.vocab = json.load(open(f"{folder}/vocab.json"))
        self.inv = {i: t for t, i in self.vocab.items()}
        c = json.load(open(f"{folder}/tokenizer_config.json"))
        self.max_len = c["model_max_length"]
        for k in ("bos", "eos", "unk", "pad"):
            setattr(self, f"{k}_id", self.vocab[c[f"{k}_token"]])

    def encode(self, text):
        return [self.bos_id] + [self.vocab.get(w, self.unk_id) for w in text.split()][: self.max_len - 2] + [self.eos_id]

    def batch(self, texts):
        enc = [self.encode(t) for t in texts]
        L = max(len(e) for e in enc)
        ids = torch.tensor([e + [self.pad_id] * (L - len(e)) for e in enc])
        labels = ids.masked_fill(ids == self.pad_id, -100)
        return ids, labels

    def decode(self, ids):
        out = []
        for i in ids:
            if i == self.eos_id:
                break
            out.append(self.inv[i])
        return " ".join(out)
