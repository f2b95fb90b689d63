"""What the service does at start: base weights + adapter, then a smoke test on the validation notes."""
from peft import PeftModel
from common import accuracy, base_model, extend, notes


def load():
    model = PeftModel.from_pretrained(extend(base_model("base.pt")), "adapter")
    return model.merge_and_unload()


if __name__ == "__main__":
    m = load()
    vids, vy = notes(600, 2)
    print(f"[serve_check] {sum(p.numel() for p in m.parameters())} parameters, val_acc {accuracy(m, vids, vy):.4f}")
