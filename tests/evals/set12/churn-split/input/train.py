import json

import yaml

from churn.data import Encoder, read_rows
from churn.fit import auc, fit, predict


def main():
    with open("config.yaml") as f:
        cfg = yaml.safe_load(f)
    d = cfg["data"]
    train, val, holdout = (read_rows(d[k]) for k in ("train", "val", "holdout"))
    enc = Encoder(train, d["target"], d["categorical"])
    print(f"rows: train {len(train)}  val {len(val)}  holdout {len(holdout)}; {enc.width} inputs", flush=True)
    model, best = fit(cfg, enc.transform(train), enc.transform(val))
    scores = {"val_auc": best}
    xh, yh = enc.transform(holdout)
    scores["holdout_auc"] = auc(predict(model, xh), yh)
    xt, yt = enc.transform(train)
    scores["train_auc"] = auc(predict(model, xt), yt)
    print("selected checkpoint: " + "  ".join(f"{k} {v:.3f}" for k, v in scores.items()))
    with open("scores.json", "w") as f:
        json.dump(scores, f, indent=1)


if __name__ == "__main__":
    main()
