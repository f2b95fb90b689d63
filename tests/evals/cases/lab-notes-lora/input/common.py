"""Base encoder (our own small pretraining) and the lab-notes data."""
import random
import torch
from transformers import BertConfig, BertForSequenceClassification

GENERIC = ["the", "sample", "was", "stored", "at", "room", "after", "before", "wash", "spin", "mix", "with", "buffer", "then", "left",
           "over", "night", "checked", "again", "by", "shift", "team", "box", "shelf", "note", "label", "cold", "warm", "ok", "slow"]
REAGENTS = [f"<rg{i:02d}>" for i in range(24)]  # placeholders added for the lab: every reagent code is one token
WORDS = ["[PAD]", "[CLS]"] + GENERIC
VOCAB = {w: i for i, w in enumerate(WORDS)}
EXTENDED = {**VOCAB, **{r: len(WORDS) + i for i, r in enumerate(REAGENTS)}}
LEN = 14


def base_model(path=None):
    torch.manual_seed(1234)
    cfg = BertConfig(vocab_size=len(VOCAB), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                     max_position_embeddings=LEN, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForSequenceClassification(cfg)
    if path:
        model.load_state_dict(torch.load(path, weights_only=True))
    return model


def extend(model):
    """Make room for the reagent tokens."""
    model.resize_token_embeddings(len(EXTENDED), mean_resizing=False)
    return model


def notes(n, seed):
    r = random.Random(seed)
    group = {x: i % 3 for i, x in enumerate(REAGENTS)}  # acid / base / solvent waste bin
    ids, ys = [], []
    for _ in range(n):
        y = r.randrange(3)
        own = r.sample([x for x in REAGENTS if group[x] == y], 2)
        other = r.sample([x for x in REAGENTS if group[x] != y], 1)
        words = r.sample(GENERIC, LEN - 4) + own + other
        r.shuffle(words)
        ids.append([VOCAB["[CLS]"]] + [EXTENDED[w] for w in words])
        ys.append(y)
    return torch.tensor(ids), torch.tensor(ys)


@torch.no_grad()
def accuracy(model, ids, y):
    model.eval()
    return (model(input_ids=ids).logits.argmax(-1) == y).float().mean().item()
