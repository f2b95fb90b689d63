"""Monthly rent regression on listing attributes, run through the HF Trainer."""
import json

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed

N_DISTRICTS = 24


def listings(n, seed):
    base = np.random.default_rng(99).normal(0, 0.25, N_DISTRICTS)
    rng = np.random.default_rng(seed)
    district = rng.integers(0, N_DISTRICTS, n)
    sqm = rng.gamma(6.0, 11.0, n).clip(18, 180)
    rooms = np.clip(np.round(sqm / 25 + rng.normal(0, 0.6, n)), 1, 7)
    age = rng.uniform(0, 100, n)
    balcony = rng.random(n) < 0.5
    rent = (280 + 9.2 * sqm + 35 * balcony - 1.2 * age) * np.exp(base[district] + rng.normal(0, 0.06, n))
    num = np.stack([(sqm - 66) / 27, (rooms - 2.7) / 1.2, (age - 50) / 29, balcony - 0.5], 1)
    return district, num.astype(np.float32), rent.astype(np.float32)


class Listings(Dataset):
    def __init__(self, n, seed):
        self.district, self.num, self.rent = listings(n, seed)

    def __len__(self):
        return len(self.rent)

    def __getitem__(self, i):
        return {"district": int(self.district[i]), "numeric": self.num[i].tolist(),
                "labels": float(self.rent[i]) / 1000.0}


class RentNet(nn.Module):
    def __init__(self, dim=16, hidden=64):
        super().__init__()
        self.district_emb = nn.Embedding(N_DISTRICTS, dim)
        self.body = nn.Sequential(nn.Linear(dim + 4, hidden), nn.GELU(), nn.Dropout(0.05),
                                  nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 1))

    def forward(self, district, numeric, labels=None):
        h = torch.cat([self.district_emb(district), numeric.float()], -1)
        pred = self.body(h).squeeze(-1)
        out = {"logits": pred}
        if labels is not None:
            out["loss"] = nn.functional.smooth_l1_loss(pred, labels.float(), beta=0.1)
        return {"loss": out["loss"], "logits": pred} if "loss" in out else out


def compute_metrics(eval_pred):
    pred, truth = eval_pred.predictions * 1000.0, eval_pred.label_ids * 1000.0
    err = pred - truth
    return {"mae": float(np.abs(err).mean()), "mape": float((np.abs(err) / truth).mean()),
            "bias": float(err.mean())}


def main():
    set_seed(12)
    with open("args.json") as f:
        extra = json.load(f)
    args = TrainingArguments(output_dir="out", **extra)
    trainer = Trainer(model=RentNet(), args=args, train_dataset=Listings(4000, 1),
                      eval_dataset=Listings(800, 2), compute_metrics=compute_metrics)
    trainer.train()
    test = trainer.evaluate(Listings(800, 3), metric_key_prefix="test")
    print("final model on the test listings:",
          json.dumps({k: round(v, 4) for k, v in test.items() if k in ("test_mae", "test_mape", "test_bias")}))


if __name__ == "__main__":
    main()
