import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from common import accuracy, base_model, extend, notes


def main():
    model = extend(base_model("base.pt"))
    conf = LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, target_modules=["query", "key", "value", "dense"],
                      exclude_modules=".*pooler.*", modules_to_save=["classifier", "pooler"])
    model = get_peft_model(model, conf)
    # the reagent tokens are new, they have to be learned
    emb = model.get_input_embeddings()
    emb.weight.requires_grad_(True)
    model.print_trainable_parameters()

    torch.manual_seed(0)
    ids, y = notes(3000, 1)
    vids, vy = notes(600, 2)
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3, weight_decay=0.0)
    for epoch in range(6):
        model.train()
        tot = 0.0
        for b in torch.randperm(len(ids)).split(50):
            loss = F.cross_entropy(model(input_ids=ids[b]).logits, y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(b) / len(ids)
        print(f"[train_adapter] epoch {epoch} loss {tot:.4f} val_acc {accuracy(model, vids, vy):.4f}")
    model.save_pretrained("adapter")
    print("[train_adapter] saved adapter/")


if __name__ == "__main__":
    main()
