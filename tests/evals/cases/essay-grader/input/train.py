import time

import torch
import yaml
from transformers import RobertaConfig, RobertaForSequenceClassification, set_seed

from corpus import BOS, EOS, PAD, WordTokenizer, essays, pad_batch


def encode(cfg):
    tok = WordTokenizer(cfg["encoder"]["vocab"])
    limit = cfg["data"]["max_tokens"]
    rows = essays(cfg["data"]["n_essays"], seed=8)
    encoded = [(tok(r["words"], max_length=limit), r["grade"]) for r in rows]
    longest = max(len(ids) for ids, _ in encoded)
    print(f"{len(encoded)} essays, longest {longest} tokens (limit {limit}), vocab {tok.vocab}")
    assert longest <= limit
    assert max(max(ids) for ids, _ in encoded) < tok.vocab
    return encoded


def build_encoder(cfg):
    e = cfg["encoder"]
    conf = RobertaConfig(
        vocab_size=e["vocab"],
        hidden_size=e["hidden"],
        num_hidden_layers=e["layers"],
        num_attention_heads=e["heads"],
        intermediate_size=4 * e["hidden"],
        max_position_embeddings=cfg["data"]["max_tokens"],
        type_vocab_size=1,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        num_labels=1,
        problem_type="regression",
    )
    return RobertaForSequenceClassification(conf)


def batches(encoded, size, gen):
    order = torch.randperm(len(encoded), generator=gen).tolist()
    for i in range(0, len(order), size):
        part = [encoded[j] for j in order[i:i + size]]
        ids, mask = pad_batch([p[0] for p in part])
        yield torch.tensor(ids), torch.tensor(mask), torch.tensor([p[1] for p in part])


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    set_seed(21)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoded = encode(cfg)
    grader = build_encoder(cfg).to(device)
    optim = torch.optim.AdamW(grader.parameters(), lr=cfg["train"]["lr"])
    gen = torch.Generator().manual_seed(21)
    step = 0
    for epoch in range(cfg["train"]["epochs"]):
        t0 = time.time()
        for ids, mask, grade in batches(encoded, cfg["train"]["batch"], gen):
            ids, mask, grade = ids.to(device), mask.to(device), grade.to(device)
            out = grader(input_ids=ids, attention_mask=mask, labels=grade)
            out.loss.backward()
            torch.nn.utils.clip_grad_norm_(grader.parameters(), 1.0)
            optim.step()
            optim.zero_grad()
            if step % 4 == 0:
                print(f"epoch {epoch} step {step:3d} mse {out.loss.item():.4f} width {ids.shape[1]}", flush=True)
            step += 1
        print(f"epoch {epoch} took {time.time() - t0:.1f}s", flush=True)
    print("finished")


if __name__ == "__main__":
    main()
