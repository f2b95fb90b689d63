"""Cuisine classifier: masked-LM pretraining of a tiny BERT on recipes, then a classification head on top."""
import random
import tempfile
import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, set_seed

set_seed(2)
CUISINE = {
    "italian": "basil tomato parmesan pasta oregano mozzarella".split(),
    "indian": "cumin turmeric lentil ghee coriander cardamom".split(),
    "japanese": "soy dashi nori mirin wasabi tofu".split(),
    "mexican": "corn chili lime avocado bean cilantro".split(),
}
SHARED = "salt onion oil garlic water pepper rice sugar egg stir heat serve".split()
WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]"] + SHARED + [w for ws in CUISINE.values() for w in ws]
ID = {w: i for i, w in enumerate(WORDS)}


def recipes(n):
    rows, ys = [], []
    for _ in range(n):
        k = random.randrange(len(CUISINE))
        own = list(CUISINE.values())[k]
        body = [ID[random.choice(own if random.random() < 0.25 else SHARED)] for _ in range(14)]
        rows.append([ID["[CLS]"]] + body + [ID["[SEP]"]])
        ys.append(k)
    return torch.tensor(rows), torch.tensor(ys)


def mask_tokens(ids):
    picked = (torch.rand(ids.shape) < 0.2) & (ids > 3)
    return ids.masked_fill(picked, ID["[MASK]"]), ids.masked_fill(~picked, -100)


def optimise(model, batches, lr, tag):
    opt = torch.optim.AdamW(model.parameters(), lr=lr)
    model.train()
    for step, kw in enumerate(batches):
        loss = model(**kw).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"{tag} step {step:3d} loss {loss.item():.4f}", flush=True)


def main():
    ids, y = recipes(1600)
    dev_ids, dev_y = recipes(400)
    cfg = BertConfig(vocab_size=len(WORDS), hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                     intermediate_size=96, max_position_embeddings=20, num_labels=len(CUISINE))
    mlm = BertForMaskedLM(cfg)

    def mlm_batches(n):
        for _ in range(n):
            x, labels = mask_tokens(ids[torch.randint(0, len(ids), (32,))])
            yield {"input_ids": x, "labels": labels}

    optimise(mlm, mlm_batches(100), 2e-3, "mlm")
    with tempfile.TemporaryDirectory() as ckpt:
        mlm.save_pretrained(ckpt)
        clf = BertForSequenceClassification.from_pretrained(ckpt, num_labels=len(CUISINE))

    def clf_batches(epochs):
        for _ in range(epochs):
            for idx in torch.randperm(len(ids)).split(32):
                yield {"input_ids": ids[idx], "labels": y[idx]}

    optimise(clf, clf_batches(3), 1e-3, "clf")
    clf.eval()
    with torch.no_grad():
        acc = (clf(input_ids=dev_ids).logits.argmax(-1) == dev_y).float().mean()
    print(f"dev accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
