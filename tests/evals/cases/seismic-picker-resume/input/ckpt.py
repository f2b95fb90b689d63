import os
import torch


def save(path, model, opt, sched, epoch):
    tmp = path + ".tmp"
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(), "epoch": epoch,
                "rng": torch.get_rng_state()}, tmp)
    os.replace(tmp, path)


def restore(path, model, opt, sched):
    """Put a checkpoint back into live objects and return the next epoch."""
    blob = torch.load(path, map_location="cpu", weights_only=True, mmap=False)
    missing, unexpected = model.load_state_dict(blob["model"], strict=True, assign=True)
    assert not missing and not unexpected
    opt.load_state_dict(blob["opt"])
    sched.load_state_dict(blob["sched"])
    torch.set_rng_state(blob["rng"])
    return blob["epoch"]
