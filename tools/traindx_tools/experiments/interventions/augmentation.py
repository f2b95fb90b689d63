"""Chance in the data set: random transforms."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import INTEGER, Intervention, Setting

_LIVE = "traindx_tools.experiments.live.on_torch.augmentation"

INTERVENTIONS = (
    Intervention(
        "no-augmentation", "random transforms are left out",
        changes="Before the first iteration of a DataLoader, transforms that its data set keeps (`transform`, "
                "`transforms`, `augment`, ..., also those inside a composition and of wrapped data sets) are applied "
                "six times to the first samples. Those that give different results and return what they get in kind "
                "and shape are left out from then on.",
        keeps="Transforms without chance, the order of samples. Random numbers drawn for the look are put back; what "
              "the transforms no longer draw makes later draws others.",
        shows="Where the training now learns, augmentation was too strong, hit the labels' meaning, or was applied "
              "where it should not be.",
        cannot_tell="Which of the transforms. One that changes the shape (a random crop) cannot be left out, and "
                    "chance in `__getitem__` itself is not a transform: both are said, and `augmentation-fixed` does "
                    "more. The first samples are read once more, in the main process.",
        horizon=50, live={"torch": f"{_LIVE}:NoAugmentation"}),
    Intervention(
        "augmentation-fixed", "each sample is made with the same random numbers whenever it is read",
        changes="While a DataLoader reads the sample of an index, the random numbers of Python, NumPy and torch come "
                "from a seed of that index.",
        keeps="Every transform with its shapes; the training's own random numbers go on as if none had been drawn.",
        shows="Where the training set is now learned and was not before, augmentation is stronger than the model can "
              "follow; where a difference between epochs goes, it was chance in the data.",
        cannot_tell="Which transform. A generator that the data set keeps for itself is not seeded.",
        horizon=50, options=(Setting("seed", "added to each index", INTEGER, 0, least=0, most=2**31 - 1),),
        live={"torch": f"{_LIVE}:AugmentationFixed"}),
)
