"""KpcaSettings: what a person sets of kernel PCA by a fleet, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from submerge.errors import UsageError
from submerge.features import FeatureMap, Kernel, Polynomial, RandomFourier, Sketched, TensorSketch
from submerge.features.kernels import NAMES, kernel_called
from submerge.features.sketch import Sketch
from submerge.jobs.job import Settings
from submerge.jobs.kind import KEEP, JobSetting, check_known, flag_of, number_of, whole_of
from submerge.jobs.kinds.kmeans import MOST_CLUSTERS
from submerge.jobs.points import seed_of

Sample = Literal["residual", "leverage", "uniform"]
Merge = Literal["ranks", "sketch", "exact"]

MOST_COMPONENTS, MOST_POINTS, MOST_SKETCH = 512, 4096, 1 << 15
FIRST_SHARE = 4
"""One point in so many is taken first; the others by what the first ones miss."""

OF_KERNELS = (
    JobSetting("kernel", "text", f"One of {', '.join(NAMES)}.", "gaussian"),
    JobSetting("gamma", "number", "The kernel's scale.", "from the spread of all rows"),
    JobSetting("degree", "whole", "Of a polynomial kernel.", "2"),
    JobSetting("coef0", "number", "Of a polynomial kernel.", "0"),
    JobSetting("nu", "number", "Of a Matern kernel, 1.5 or 2.5.", "1.5"),
)

LISTED: tuple[JobSetting, ...] = (
    JobSetting("components", "whole", f"Directions, k, 1 to {MOST_COMPONENTS}."),
    JobSetting("points", "whole", "Rows that the fleet chooses.", "20 k"),
    *OF_KERNELS,
    JobSetting("center", "flag", "Whether the mean of the features is subtracted.", "true"),
    JobSetting(
        "sample", "text", f"How points are chosen: {', '.join(get_args(Sample))}.", "residual"
    ),
    JobSetting("features", "whole", "Of the map that leverage is taken from.", "2048"),
    JobSetting("sketch", "whole", "To how many these are sketched, t.", "5 k"),
    JobSetting("sketched_by", "text", f"How: {', '.join(get_args(Sketch))}.", "countsketch"),
    JobSetting(
        "merge", "text", f"How directions are merged: {', '.join(get_args(Merge))}.", "ranks"
    ),
    JobSetting("columns", "whole", "Of a participant's rows in merge = sketch.", "40 k"),
    JobSetting("readings", "flag", "Whether the rows' own directions are found, too.", "true"),
    JobSetting("node_share", "number", "Most points of one participant, as a share.", "0.25"),
    JobSetting("clusters", "whole", "Of k-means of the rows' scores on the directions.", "none"),
    KEEP,
)


class KpcaSettings(NamedTuple):
    """Settings of the kind, as `LISTED` says."""

    seed: int
    components: int
    points: int
    kernel: Kernel
    center: bool
    sample: Sample
    features: int
    sketch: int
    sketched_by: Sketch
    merge: Merge
    columns: int
    node_share: float
    readings: bool
    clusters: int  # 0: no k-means

    @classmethod
    def of(cls, settings: Settings) -> KpcaSettings:
        """Check a job's settings; raises UsageError with one line that says which does not fit."""
        check_known(settings, (each.name for each in LISTED))
        if "components" not in settings:
            raise UsageError("kpca needs the setting components, got none: add components=8")
        k = whole_of(settings, "components", 0, least=1, most=MOST_COMPONENTS)
        points = whole_of(settings, "points", min(20 * k, MOST_POINTS), least=k, most=MOST_POINTS)
        features = whole_of(settings, "features", 2048, least=2, most=1 << 16)
        sketch = min(5 * k, features)
        found = cls(
            seed_of(settings),
            k,
            points,
            kernel_setting(settings),
            flag_of(settings, "center", default=True),
            one_of(settings, "sample", get_args(Sample)),
            features,
            whole_of(settings, "sketch", sketch, least=min(k, features), most=min(features, 2048)),
            one_of(settings, "sketched_by", get_args(Sketch)),
            one_of(settings, "merge", get_args(Merge)),
            whole_of(settings, "columns", 40 * k, least=k, most=MOST_SKETCH),
            number_of(settings, "node_share", 0.25, most=1.0),
            flag_of(settings, "readings", default=True),
            whole_of(settings, "clusters", 0, least=0, most=MOST_CLUSTERS),
        )
        if flag_of(settings, "keep") and not found.clusters:
            raise UsageError("keep is of clusters, and the job has none: add clusters=8")
        if found.sample == "leverage":
            found.map_of(found.kernel)  # whether there is such a map
        return found

    @property
    def stages(self) -> tuple[int, ...]:
        """How many points each choice takes: uniform ones all at once."""
        if self.sample == "uniform":
            return (self.points,)
        first = math.ceil(self.points / FIRST_SHARE)
        return (first, self.points - first) if self.points > first else (first,)

    def map_of(self, kernel: Kernel) -> FeatureMap:
        """Return the map that leverage is taken from: few features of the kernel."""
        kind = TensorSketch if isinstance(kernel, Polynomial) else RandomFourier
        made = kind(kernel, self.features, seed=self.seed)
        return Sketched(made, self.sketch, self.sketched_by, self.seed)


def kernel_setting(settings: Settings, names: Sequence[str] = NAMES) -> Kernel:
    """Return the kernel that is set, the first of the names by default; its gamma may be open."""
    name = one_of(settings, "kernel", names)
    of_kernel = {"polynomial": ("degree", "coef0"), "matern": ("nu",)}.get(name, ())
    for each in ("degree", "coef0", "nu"):
        if each in settings and each not in of_kernel:
            raise UsageError(f"{each} is not a setting of the {name} kernel: leave it out")
    own: dict[str, Any] = {each: settings[each] for each in of_kernel if each in settings}
    gamma: Any = settings.get("gamma")
    return kernel_called(name, gamma, **own)


def one_of(settings: Settings, name: str, words: Sequence[str]) -> Any:
    """Return a word of the settings, by default the first that is allowed."""
    value = settings.get(name, words[0])
    if value not in words:
        raise UsageError(f"{name} must be one of {', '.join(words)}, got {str(value)[:40]!r}")
    return value
