"""The page of evidence: it is that of the committed JSON, and README's lines are the page's."""

from __future__ import annotations

import json

import pytest

import recorded
from evidence import page, pictures, runs
from evidence.sections import SECTIONS


@pytest.fixture(scope="module")
def made():
    return runs.records()


def test_the_page_is_that_of_the_committed_results():
    """After a run the page is made again: python benchmarks/evidence/page.py."""
    assert page.PAGE.read_text() == page.page() + "\n"


def test_readme_has_lines_of_the_page_in_words(made):
    """After a run they are made again: python benchmarks/evidence/page.py --readme."""
    text = page.README.read_text()

    assert text == page.write_readme(text, page.readme(made))
    for line in page.told(made):
        assert f"| {line.claim.what} " in page.PAGE.read_text()
        assert f"| {page.TOLD[line.claim.name]} " in text


def test_readme_has_no_short_run_and_no_promise(made):
    """All stand beside a rival, measured in full, and a rival may win; short runs are left out."""
    short = {name: run | {"quick": True} for name, run in made.items()}

    assert [*page.TOLD] == [each.claim.name for each in page.told(made)]
    assert not [each for each in page.told(made) if each.claim.promise or each.claim.aside]
    assert [] == page.told(short)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_that_of_the_committed_results(name, made):
    """After a run it is drawn again: python benchmarks/evidence/pictures.py."""
    shown, path = pictures.PICTURES[name](made), runs.RESULTS / f"{name}.png"

    assert bool(shown) == path.exists()
    assert not shown or pictures.digest(shown) == pictures.digest_of(path.read_bytes())


def test_every_record_says_what_it_was_measured_with(made):
    """Commit, machine, versions, date and a hash; a quick run says so on the page."""
    text = page.page()

    for name, run in made.items():
        assert {"commit", "machine", "versions", "date", "measured", "measures"} <= set(run), name
        assert f"`{run['command']}`" in text
        assert 64 == len(run["measured"])
        assert not run["quick"] or f"{run['date']}, quick run" in text


def test_every_rival_that_wins_is_named(made):
    """The page has as many such lines as there are claims that ours loses."""
    lost = [each for each in page.every(made) if "rival" in each.verdict]
    lines = [line for line in page.page().splitlines() if line.startswith("|") and "rival" in line]

    assert len(lost) == sum("**the rival wins**" in line for line in lines)


def test_figures_of_other_code_are_marked(monkeypatch):
    """They say at which commit they were measured; without marks nothing depends on the tree."""
    monkeypatch.setattr(recorded, "measured_hash", lambda _: "another")

    assert ", measured at " in page.page(marked=True)
    assert ", measured at " not in page.page()


def test_runs_without_results_are_listed(tmp_path):
    """With no JSON at all: no claim, and each command."""
    text = page.page(tmp_path / "evidence")

    assert "**the rival wins 0**" in text
    for name in runs.RUNS:
        assert f"every.py --only {name}`" in text


def test_figures_of_scaling_appear_as_soon_as_they_are_there(tmp_path):
    """Their tables stand in the section whole, and their claims are made."""
    nodes = {"title": "Time by part", "notes": "", "rows": [], "columns": {}}
    error = {"title": "Squared error of the root above", "notes": "", "rows": [], "columns": {}}
    nodes["columns"] = dict.fromkeys(("T", "method", "nodes", "amortised, s", "over 1 / nodes"), "")
    error["columns"] = dict.fromkeys(("alpha", "T", "method", "32 nodes"), "")
    for method, seconds in (("submerge, default", 0.5), ("SPCA and merge as printed", 1.0)):
        nodes["rows"] += [[t, method, 32, seconds, 1.1] for t in (128_000, 256_000, 512_000)]
        error["rows"].append([1.0, 128_000, method, seconds / 100])
    figure = {"quick": False, "date": "2026-01-02", "commit": "abc", "machine": "m"}
    figure |= {"paper": "Someone: Figure 2", "what": "Time.", "data": "generated", "versions": {}}
    figure |= {"command": "python benchmarks/papers/federated/scaling.py", "measures": []}
    figure |= {"measured": "", "tables": [nodes, error]}
    path = runs.path_of("federated/scaling", tmp_path / "evidence")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(figure))
    text = page.page(tmp_path / "evidence")

    assert text.index("## Scaling") < text.index("#### Time by part") < text.index("## Faults")
    assert "ours is better in 2" in text
    assert "4 are kept" in text
    assert "--only federated/scaling`" not in text
    assert "papers/every.py --only scaling_laws`" in text


def test_every_claim_has_a_section_and_a_run():
    """No claim is left out of the page."""
    for claim in page.CLAIMS:
        assert claim.section in SECTIONS
        assert set(claim.runs) <= {*runs.RUNS, *runs.FIGURES}
        assert claim.peers or claim.asked is not None
