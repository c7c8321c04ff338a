"""Claims of a fleet: bytes, faults survived, false alarms, detection, what one kit can move."""

from evidence.claim import Claim, Pick

PLANTS = {"loop": "a cooling loop", "engines": "engines", "room": "a room"}
WIDTHS = (24, 48, 200, 400)
RULES = ("z-score per channel", "Mahalanobis (Ledoit-Wolf)", "IsolationForest", "PyOD's PCA",
         "k-means consensus")  # fmt: skip
"""Of detection.py, beside "the same, smoothed", which is the one above it there."""

ROWS = ("loop", "engines", "light", "segment", "digits")


def _sent(dim: int, sent: str, what: str) -> Claim:
    def of(sent: str) -> Pick:
        return Pick("bytes_sent", "Bytes", "bytes", {"channels": dim, "sent": sent}, sent)

    return Claim(
        "bytes",
        f"bytes, d = {dim}, beside {sent}",
        f"d = {dim}: bytes of a report, and of {what}",
        ",.0f",
        "less",
        of("submerge: report"),
        (of(sent),),
        aside=sent.startswith("rows"),
    )


def _survived(column: str, what: str) -> Claim:
    return _none("survived", "Simulated fleets", column, what, f"{what}, of all simulated fleets")


def _killed(column: str, what: str) -> Claim:
    said = f"real processes, kill -9 at the worst moments: {what}"
    return _none("kills", "Kills", column, what, said)


def _none(run: str, table: str, column: str, name: str, what: str) -> Claim:
    """Return the claim that a column has nothing but zeros."""
    pick = Pick(run, table, column, {}, "submerge", one="sum")
    return Claim("faults", name, what, ".0f", "less", pick, asked=0.0)


def _promised(plant: str, what: str) -> Claim:
    # The last row is of all seeds, where there are several.
    table = f"{plant}: false alarms"
    return Claim(
        "alarms",
        f"false alarms, {plant}",
        f"{what}: false alarms a node and week, and what was promised",
        ".2f",
        "less",
        Pick("alarms", table, "realised", {}, "submerge", one="last"),
        asked=Pick("alarms", table, "promised", {}, "promised", one="last"),
    )


def _found(plant: str, column: str, what: str) -> Claim:
    return Claim(
        "detection",
        f"found, {plant}{', ' + column if column != 'all' else ''}",
        f"{PLANTS[plant]}: share of faulty rows found, {what}",
        ".3f",
        "more",
        Pick("detection", plant, column, {"": "ours: combined, smoothed"}, "ours"),
        (
            Pick("detection", plant, column, {"": RULES}, "{}"),
            Pick("detection", plant, column, {"": "the same, smoothed"}, "Ledoit-Wolf, smoothed"),
        ),
    )


def _face(table: str, library: str, rows: str, column: str, spec: str) -> Claim:
    detector = "StreamDetector" if library == "river" else "SubspaceOD"
    ours, where = f"submerge {detector}", {"rows": rows}
    return Claim(
        "detection",
        f"{'AUC' if column == 'AUC' else 'time'}, {rows}, beside {library}",
        f"{rows}, beside {library}'s detectors: {column.replace('us', 'µs')}",
        spec,
        "more" if column == "AUC" else "less",
        Pick("faces", table, column, {**where, "detector": ours}, ours),
        (Pick("faces", table, column, where, "{detector}", but=("submerge",)),),
    )


def _moved(table: str, where: dict[str, object], what: str, *, robust: bool) -> Claim:
    def of(way: str, named: str) -> Pick:
        return Pick("influence", table, f"{way}: degrees", where, named, one="most")

    group = "a robust group" if robust else "a plain group"
    return Claim(
        "kit",
        f"one kit, {what}, {group}",
        f"{what}: degrees that it turns {group}'s model",
        ".2f",
        "less",
        of("robust" if robust else "plain", group),
        (of("plain, no bounds", "plain, without bounds"),),
        aside=True,
    )


LIAR = "One liar of 40, all ages alike"
MEDIAN = "One node of the median age, all ages alike"

CLAIMS = (
    *(_sent(dim, "scatter", "the covariance's upper half") for dim in WIDTHS),
    *(_sent(dim, "directions alone", "16 directions alone") for dim in WIDTHS),
    *(_sent(dim, "rows of an hour", "an hour's rows") for dim in WIDTHS),
    *(_sent(dim, "rows of a day", "a day's rows") for dim in WIDTHS),
    _survived("rules broken", "rules broken"),
    _survived("not accounted for", "readings not accounted for"),
    _killed("acknowledged, missing", "readings acknowledged, and missing"),
    _killed("counted twice", "readings counted twice"),
    _killed("other violations", "other violations"),
    *(_promised(plant, what) for plant, what in PLANTS.items()),
    *(_found(plant, "all", "mean of all kinds of fault") for plant in PLANTS),
    *(_found(plant, "reversed", "reversed sensors") for plant in PLANTS),
    *(_face("Row by row", "river", rows, "AUC", ".3f") for rows in ROWS),
    *(_face("Learnt, then scored", "PyOD", rows, "AUC", ".3f") for rows in ROWS),
    *(_face("Row by row", "river", rows, "us a row", ".0f") for rows in ("loop", "digits")),
    *(_face("Learnt, then scored", "PyOD", rows, "us a row", ".0f") for rows in ("loop", "digits")),
    *(
        _moved(table, where, what, robust=robust)
        for table, where, what in (
            (LIAR, {}, "the worst of all attacks"),
            (MEDIAN, {"energy": 30}, "30 times its energy"),
        )
        for robust in (False, True)
    ),
)
