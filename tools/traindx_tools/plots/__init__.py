"""Pictures of runs: what a person sees at a glance, drawn from the same values that the rules judge."""

from traindx_tools.plots.heatmap import gradient_heatmap
from traindx_tools.plots.picture import draw_pictures, plot_run
from traindx_tools.plots.visualize import visualize_loss_curve

__all__ = ["draw_pictures", "gradient_heatmap", "plot_run", "visualize_loss_curve"]
