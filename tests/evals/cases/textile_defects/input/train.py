import logging
import warnings

import lightning as L
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

from fabric import dataset
from lit_model import DefectClassifier

warnings.filterwarnings("ignore", ".*num_workers.*")
warnings.filterwarnings("ignore", ".*LeafSpec.*")
warnings.filterwarnings("ignore", ".*log_every_n_steps.*")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)

if __name__ == "__main__":
    L.seed_everything(21)
    train = DataLoader(TensorDataset(*dataset(400, 1)), batch_size=32, shuffle=True)
    valid = DataLoader(TensorDataset(*dataset(120, 2)), batch_size=60)
    model = DefectClassifier()
    trainer = L.Trainer(max_epochs=14, accelerator="cpu", logger=CSVLogger("logs", name="defects", version=0),
                        enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False)
    trainer.fit(model, train, valid)
    with open("logs/defects/version_0/metrics.csv") as f:
        print(f.read().rstrip())
    print("fit finished; last validation during fit:",
          {k: round(float(v), 4) for k, v in trainer.callback_metrics.items() if k.startswith("val")})
    again = trainer.validate(model, valid, verbose=False)[0]
    print("trainer.validate on the same loader:", {k: round(v, 4) for k, v in again.items()})
