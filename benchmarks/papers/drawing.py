"""draw(): a figure's panels as a picture, from its record alone."""

from pathlib import Path

STYLES = {
    "ours": {"linewidth": 1.8, "marker": "o", "markersize": 3},
    "theirs": {"linewidth": 1.2, "linestyle": "--", "marker": "s", "markersize": 3},
    "printed": {"linestyle": "none", "marker": "x", "color": "black"},
}


def draw(made: dict, path: Path) -> None:
    """Draw the panels of a record side by side into a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure as Canvas

    panels = made["panels"]
    across = 2 if len(panels) == 4 else min(len(panels), 3) or 1
    down = -(-len(panels) // across) or 1
    canvas = Canvas(figsize=(4.2 * across, 3.2 * down), layout="constrained")
    axes = canvas.subplots(down, across, squeeze=False)
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    for ax, panel in zip(axes.flat, panels, strict=False):
        for curve in panel["curves"]:
            _draw_curve(ax, curve)
        ax.set(title=panel["title"], xlabel=panel["x_label"], ylabel=panel["y_label"])
        ax.set(
            xscale="log" if panel["log_x"] else "linear",
            yscale="log" if panel["log_y"] else "linear",
        )
        for axis, is_log in ((ax.xaxis, panel["log_x"]), (ax.yaxis, panel["log_y"])):
            if is_log:
                _label_log(axis)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7)
    canvas.savefig(path, dpi=80, metadata={"Software": None})


def _label_log(axis) -> None:
    """Label 1, 2 and 5 of a few decades, in plain numbers: the default's labels overlap."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_curve(ax, curve: dict) -> None:
    style = STYLES[curve["whose"]]
    bars = None
    if curve["low"] is not None:
        below = [y - low for y, low in zip(curve["y"], curve["low"], strict=True)]
        above = [high - y for y, high in zip(curve["y"], curve["high"], strict=True)]
        bars = [below, above]
    ax.errorbar(curve["x"], curve["y"], yerr=bars, label=curve["label"], capsize=2, **style)
