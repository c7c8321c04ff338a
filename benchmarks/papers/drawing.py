"""draw(): a figure's panels as a picture, from its record alone."""

from pathlib import Path

MOST_MARKED = 40
"""Points of a curve with markers: more would be a band."""

MOST_FINE = 1e4
"""The range of a log axis with labels between decades."""

STYLES = {
    "ours": {"linewidth": 1.8, "marker": "o", "markersize": 3},
    "theirs": {"linewidth": 1.2, "linestyle": "--", "marker": "s", "markersize": 3},
    "dots": {"linestyle": "none", "marker": ".", "markersize": 2},
    "printed": {"linestyle": "none", "marker": "x", "color": "black"},
}


def draw(made: dict, path: Path) -> None:
    """Draw the panels of a record side by side into a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure as Canvas

    panels = made["panels"]
    across = 2 if len(panels) in (4, 8) else min(len(panels), 3) or 1
    down = -(-len(panels) // across) or 1
    canvas = Canvas(figsize=(4.2 * across, 3.2 * down), layout="constrained")
    axes = canvas.subplots(down, across, squeeze=False)
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    for ax, panel in zip(axes.flat, panels, strict=False):
        # A record from before there were such fields lacks them.
        least, names = panel.get("least", 0.0), panel.get("x_names")
        for curve in panel["curves"]:
            _draw_curve(ax, curve, least)
        below = f" (least drawn: {least:g})" if least else ""
        ax.set(title=panel["title"], xlabel=panel["x_label"], ylabel=panel["y_label"] + below)
        ax.yaxis.label.set_size(9)
        ax.title.set_size(9 if len(panel["title"]) > 40 else 12)
        ax.set(
            xscale="log" if panel["log_x"] else "linear",
            yscale="log" if panel["log_y"] else "linear",
        )
        for axis, is_log in ((ax.xaxis, panel["log_x"]), (ax.yaxis, panel["log_y"])):
            if is_log:
                _label_log(axis)
        if names is not None:
            ax.set_xticks(range(1, len(names) + 1), names, fontsize=8)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7)
    canvas.savefig(path, dpi=80, metadata={"Software": None})


def _label_log(axis) -> None:
    """Label 1, 2 and 5 of each decade, in plain numbers: the default's labels overlap.

    Where there are many decades, label only them.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    if low <= 0 or high / low > MOST_FINE:
        return
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_curve(ax, curve: dict, least: float) -> None:
    style = STYLES[curve["whose"]]
    if len(curve["x"]) > MOST_MARKED and curve["whose"] != "dots":
        style = style | {"marker": "none"}
    y, low, high = (
        None
        if curve[name] is None
        else [max(each, least) if least else each for each in curve[name]]
        for name in ("y", "low", "high")
    )
    bars = None
    if low is not None:
        below = [max(0.0, each - end) for each, end in zip(y, low, strict=True)]
        above = [max(0.0, end - each) for each, end in zip(y, high, strict=True)]
        bars = [below, above]
    ax.errorbar(curve["x"], y, yerr=bars, label=curve["label"], capsize=2, **style)
