"""The page of evidence, from the JSON that is committed: the same JSON gives the same bytes.

    python benchmarks/evidence/page.py >benchmarks/evidence.md
    python benchmarks/evidence/page.py --readme

The second writes what a user asks first into README. With `--marked` figures whose measured files
have changed since say at which commit they were measured: that depends on the working tree, and is
not committed.
"""

import sys
from pathlib import Path
from typing import Any

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click

from evidence import claims_engine, claims_fleet, claims_scaling
from evidence.claim import Shown, shown
from evidence.runs import FIGURES, RESULTS, RUNS, records
from evidence.sections import HEAD, SECTIONS
from recorded import ROOT, changed
from report import Table

CLAIMS = (*claims_engine.CLAIMS, *claims_fleet.CLAIMS, *claims_scaling.CLAIMS)
Made = dict[str, dict[str, Any]]

PAGE = ROOT / "benchmarks" / "evidence.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- evidence -->\n", "<!-- end of evidence -->"
TOLD = {
    "AUC, engines, beside PyOD": (
        "engines with a fault: how often a faulty row scores above a normal one"
        " (AUC: 1 is always, 0.5 is chance)"
    ),
    "AUC, digits, beside PyOD": "images of digits, where normal rows are many kinds: the same",
    "found, engines": "engines: share of faulty rows found, at the same share of false alarms",
    "bytes, d = 400, beside scatter": (
        "400 sensors: bytes of a report; the other is half of the covariance matrix"
    ),
    "time, loop, beside PyOD": "a cooling loop: µs to learn and score a row",
}
"""The claims of README in words, by name: what a user asks first. The page has the rest."""

CAPTION = "Times better than the best peer, or than what is promised, of every claim"
CAPTION_BRIEF = "Every claim as a dot, section by section: right of 1 ours is better, left the peer"
PICTURED = {
    "accuracy": "Error over the optimum and memory of every method, stream by stream",
    "speed": "Time of a row against the number of columns, beside peers of bounded memory",
}
WHOLE = {"faults": ("survived", "kills")}
"""Runs whose tables a section shows whole."""

VERDICTS = ("ours", "even", "**the rival wins**", "kept", "**not kept**")


def page(folder: Path = RESULTS, *, marked: bool = False) -> str:
    """Return the page; with marks, it depends on the files that runs measure."""
    made = records(folder)
    parts = [HEAD, _summary(every(made)), f"![{CAPTION_BRIEF}](evidence/results/sections.png)"]
    for section in SECTIONS:
        parts += _section(section, made, folder, marked=marked)
    parts += ["## One by one", f"![{CAPTION}](evidence/results/overview.png)"]
    return "\n\n".join([*parts, *_runs(made, marked=marked), *_not_measured(made)])


def every(made: Made) -> list[Shown]:
    """Return all claims whose runs were done, with their figures.

    A quick run may lack a table or a row, and with it a claim; a full one may not.
    """
    found = []
    for claim in CLAIMS:
        if not all(run in made for run in claim.runs):
            continue
        try:
            found.append(shown(claim, made))
        except LookupError:
            if not any(made[run]["quick"] for run in claim.runs):
                raise
    return found


def told(made: Made) -> list[Shown]:
    """Return the claims of README, in its order; short runs are left out."""
    found = {each.claim.name: each for each in every(made)}
    return [
        found[name]
        for name in TOLD
        if name in found and not any(made[run]["quick"] for run in found[name].claim.runs)
    ]


def readme(made: Made) -> str:
    """Return what stands between README's two marks."""
    rows: list[tuple[object, ...]] = [
        (TOLD[each.claim.name], *_figures(each)[1:]) for each in told(made)
    ]
    columns = {"what": "", "submerge": "", "the best other": "", "its figure": ""}
    table = Table("", columns, rows).markdown.partition("\n\n")[2]
    picture = f"![{CAPTION_BRIEF}](benchmarks/evidence/results/sections.png)"
    return f"{table}\n\n{_summary(every(made))}\n\n{picture}\n"


def _summary(claims: list[Shown]) -> str:
    """Say how many claims there are, and who wins."""
    ours, even, theirs, kept, broken = (
        sum(each.verdict == verdict for each in claims) for verdict in VERDICTS
    )
    return (
        f"Of {ours + even + theirs} figures beside a peer, ours is better in {ours} and as good in"
        f" {even}; **the rival wins {theirs}**. Of {kept + broken} figures that are promised or"
        f" asked for, {kept} are kept."
    )


def _section(section: str, made: Made, folder: Path, *, marked: bool) -> list[str]:
    title, about = SECTIONS[section]
    rows: list[tuple[object, ...]] = []
    for found in (each for each in every(made) if each.claim.section == section):
        run = made[found.claim.ours.run]
        script = f"`{run['command'].split()[1].removeprefix('benchmarks/')}`"
        rows.append(
            (
                *_figures(found),
                _times(found.ratio),
                found.verdict,
                script,
                _when(run, marked=marked),
            )
        )
    columns = (
        "what",
        "ours",
        "best peer",
        "its figure",
        "times better",
        "verdict",
        "command",
        "date",
    )
    parts = [f"## {title}", about]
    if rows:
        parts.append(Table("", dict.fromkeys(columns, ""), rows).markdown.partition("\n\n")[2])
    if section in PICTURED and (folder / f"{section}.png").exists():
        parts.append(f"![{PICTURED[section]}](evidence/results/{section}.png)")
    for name in (each for each in WHOLE.get(section, ()) if each in made):
        parts += [Table.of_record(each).markdown for each in made[name]["tables"]]
    if section == "scaling":
        parts += _scaling(made, marked=marked)
    return parts


def _scaling(made: Made, *, marked: bool) -> list[str]:
    """Return what was measured of scaling: a picture and the tables of each figure."""
    parts: list[str] = []
    for name in (each for each in FIGURES if each in made):
        figure = made[name]
        parts += [f"### {figure['paper']}", f"{figure['what']} Data: {figure['data']}."]
        if marked and changed(figure):
            parts.append(f"Measured at {figure['commit']}: what it measures has changed since.")
        parts.append(f"![{figure['what']}](papers/results/{name}.png)")
        parts += [f"#{Table.of_record(each).markdown}" for each in figure["tables"]]
    return parts


def _figures(found: Shown) -> tuple[str, str, str, str]:
    spec = found.claim.spec
    theirs = "-" if found.theirs is None else format(found.theirs, spec)
    return found.claim.what, format(found.ours, spec), found.peer, theirs


def _times(ratio: float | None) -> str:
    """Return a ratio: near 1 with more digits."""
    if ratio is None:
        return "-"
    return (
        f"{ratio:.4f}"
        if abs(ratio - 1) < 0.01
        else f"{ratio:,.2f}"
        if ratio < 100
        else f"{ratio:,.0f}"
    )


def _when(run: dict[str, Any], *, marked: bool) -> str:
    quick = ", quick run" if run["quick"] else ""
    moved = f", measured at {run['commit']}" if marked and changed(run) else ""
    return f"{run['date']}{quick}{moved}"


def _runs(made: Made, *, marked: bool) -> list[str]:
    rows: list[tuple[object, ...]] = []
    for run in made.values():
        versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        when = _when(run, marked=marked)
        rows.append((f"`{run['command']}`", when, run["commit"], run["machine"], versions))
    columns = dict.fromkeys(("command", "date", "commit", "machine", "versions"), "")
    return ["## Runs", Table("", columns, rows).markdown.partition("\n\n")[2]]


def _not_measured(made: Made) -> list[str]:
    """List the commands whose results are not here."""
    runs = [f"evidence/every.py --only {name}" for name in RUNS if name not in made]
    runs += [f"papers/every.py --only {name}" for name in FIGURES if name not in made]
    lines = [f"* `python benchmarks/{run}`" for run in runs]
    found = {each.claim.name for each in every(made)}
    lines += [
        f"* {claim.what}: not in the short run of `{claim.ours.run}`"
        for claim in CLAIMS
        if claim.name not in found and all(run in made for run in claim.runs)
    ]
    if not lines:
        return []
    return ["## Not measured on this code", "\n".join(lines)]


def write_readme(text: str, block: str) -> str:
    """Return README with another block between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise click.ClickException(f"README has no {BEGIN.strip()} with {END} after it")
    return f"{before}{BEGIN}{block}{END}{after}"


@click.command(help=__doc__)
@click.option("--marked", is_flag=True, help="Say which figures are of other code.")
@click.option("--readme", "into_readme", is_flag=True, help="Write README's lines instead.")
def main(marked: bool, into_readme: bool) -> None:
    """Print the page, or write README's lines."""
    if into_readme:
        README.write_text(write_readme(README.read_text(), readme(records())))
    else:
        click.echo(page(marked=marked))


if __name__ == "__main__":
    main()
