# ruff: noqa: RUF001 - these characters are what is tested
"""The modules that draw, run where they are made for: in a browser, without its screen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from submerge.protocol.score_trail import share_of
from support.paged import Paged

ZONE = "Europe/Berlin"

pytestmark = pytest.mark.slow

LAWS = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def page(tmp_path_factory, chromium):
    """A page of a root that has no nodes: modules are asked for from it."""
    with Paged(tmp_path_factory.mktemp("root")) as paged:
        # A view without a script of its own: nothing else draws into it.
        page = chromium.new_page(timezone_id=ZONE, viewport={"width": 1000, "height": 800})
        page.goto(f"{paged.origin}/login")
        yield page
        page.close()


def run(page: Any, module: str, code: str, *args: Any) -> Any:
    """Return what code makes of a module's exports `m`, and of arguments `a`."""
    return page.evaluate(
        f"async (a) => {{ const m = await import('/static/{module}'); return await ({code}); }}",
        list(args),
    )


HEATMAP = """(async () => {
  const [names, columns] = a;
  const host = document.createElement("div");
  document.getElementById("main").replaceChildren(host);
  const rows = names.map((name, i) => ({
    name, levels: new Uint8Array(columns).fill(60 + (i % 9)), href: `/node?node=${i}`, note: "",
  }));
  if (rows.length) rows[0].levels[columns - 1] = 144;
  m.heatmap(host, { label: "Scores", first_s: 1.8e9, step_s: 60, rows });
  for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
})()"""


def drawn(page: Any, names: list[str], columns: int = 60) -> None:
    """Have a heat map drawn."""
    run(page, "charts/heatmap.js", HEATMAP, names, columns)


# -- scales


@LAWS
@given(low=st.floats(-1e9, 1e9), width=st.floats(1e-6, 1e9), wanted=st.integers(2, 12))
def test_ticks_are_inside_and_not_too_many(page, low, width, wanted):
    """Round values lie within the range, rise evenly, and are about as many as were asked for."""
    high = low + width
    ticks = run(page, "charts/scales.js", "m.ticks(...a)", low, high, wanted)

    slack = 1e-6 * max(abs(low), abs(high), width)
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert len(ticks) <= 2 * wanted + 2
    assert ticks == sorted(ticks)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (-3, 4, [-2, 0, 2, 4]), (7, 7, [7])],
)
def test_ticks_are_round(page, low, high, expected):
    assert expected == run(page, "charts/scales.js", "m.ticks(...a)", low, high, 5)


def test_hours_stay_round_where_clocks_change(page):
    """On the night in which clocks go forward an axis still names full hours of the wall clock."""
    midnight = 1774738800  # 2026-03-29 00:00 in Berlin; there is no 2:30 on that day
    marks = run(page, "charts/scales.js", "m.timeTicks(...a)", midnight, midnight + 86400, 8)

    assert "29 Mar" == marks[0]["text"]
    assert {"06:00", "09:00", "12:00", "21:00"} <= {mark["text"] for mark in marks}
    assert "30 Mar" == marks[-1]["text"]


@LAWS
@given(first=st.integers(0, 2**31), length=st.integers(30, 90 * 86400))
def test_an_axis_of_time_ends(page, first, length):
    """Whatever the range: ticks lie in it, rise, and are few."""
    marks = run(page, "charts/scales.js", "m.timeTicks(...a)", first, first + length, 6)
    times = [mark["at"] for mark in marks]

    assert times == sorted(set(times))
    assert all(first <= at <= first + length for at in times)
    assert len(times) <= 16


# -- levels


def test_levels_mean_what_nodes_mean(page):
    """The script reads a byte as `score_trail` does."""
    found = run(page, "charts/levels.js", "[...Array(256).keys()].map(m.shareOf)")

    assert found == pytest.approx([share_of(level) for level in range(256)])


@LAWS
@given(levels=st.lists(st.integers(0, 255), min_size=1, max_size=80), bins=st.integers(1, 80))
def test_no_level_gets_lost_between_dots(page, levels, bins):
    """Where many steps share a dot of the screen, it has the highest of them."""
    bins = min(bins, len(levels))
    code = "[...m.binned([{levels: Uint8Array.from(a[0])}], a[0].length, a[1])]"
    found = run(page, "charts/levels.js", code, levels, bins)

    expected = [0] * bins
    for i, level in enumerate(levels):
        at = i * bins // len(levels)
        expected[at] = max(expected[at], level)
    assert expected == found


# -- names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pump-3 °C", "pump-3 °C"),
        ("a\u202egnp.exe", "a‹U+202E›gnp.exe"),
        ("\x1b[31m", "‹U+001B›[31m"),
        ("a\u200bb\u2028c\n", "a‹U+200B›b‹U+2028›c‹U+000A›"),
        ("<b>x</b>", "<b>x</b>"),
        ("مضخة", "مضخة"),
    ],
)
def test_a_name_is_shown_without_what_is_not_seen(page, name, expected):
    assert expected == run(page, "shared/elements.js", "m.shown(a[0])", name)


def test_a_long_name_is_cut(page):
    """And not within a character of two units."""
    assert 201 >= len(run(page, "shared/elements.js", "m.shown(a[0])", "x" * 64_000))
    assert run(page, "shared/elements.js", "m.shown(a[0])", "🙂" * 500).endswith("🙂…")


# -- figures


def test_a_heat_map_is_read_by_keys(page):
    """The cursor comes in at the newest value of the worst row; Enter goes to its node."""
    drawn(page, ["worst", "other"])
    page.focus(".heatmap canvas")
    page.keyboard.press("ArrowLeft")
    assert "2.0× its limit" in page.inner_text(".readout")
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".readout").startswith("other")
    assert "/node?node=1" == page.get_attribute(".readout a", "href")


def test_a_heat_map_has_a_label_and_a_table_only_when_asked_for(page):
    """A hidden table of a thousand nodes would cost what it is to save; the open one is bounded."""
    drawn(page, [f"node-{i}" for i in range(1000)])
    assert "1000 rows, 1 of them over" in page.get_attribute("canvas", "aria-label")
    assert 0 == page.locator(".twin table").count()

    page.click(".twin summary")
    page.wait_for_selector(".twin tbody tr")
    assert 300 == page.locator(".twin tbody tr").count()
    assert "300 of 1000" in page.inner_text(".twin")


def test_a_heat_map_of_many_rows_scrolls_in_its_box(page):
    """Its canvas is no taller than the box, so that no row is too much for a browser."""
    drawn(page, [f"node-{i}" for i in range(20_000)], columns=10)
    box, whole, canvas = page.evaluate(
        "(() => { const b = document.querySelector('.plot');"
        " return [b.clientHeight, b.scrollHeight, b.querySelector('canvas').height]; })()"
    )
    assert box < 800 < whole
    assert box == canvas


def test_a_hostile_name_is_text(page):
    """Markup in a name is shown, not read."""
    drawn(page, ["<img src=x onerror=alert(1)>", "\u202egnp"])
    page.click(".twin summary")
    page.wait_for_selector(".twin tbody tr")

    assert 0 == page.locator("#main img").count()
    assert "<img src=x" in page.inner_text(".twin tbody th >> nth=0")


def test_series_and_bars_say_what_they_draw(page):
    """Gaps are told as such, limits stand in the table, and a mark beside its value."""
    code = """(async () => {
      const host = document.createElement("div");
      document.getElementById("main").replaceChildren(host);
      m.series(host, { label: "flow", unit: "l/min", times: [1.8e9, 1.8e9 + 60],
        lines: [{ name: "value", values: [20.5, null] }],
        limits: [{ name: "99 %", value: 24 }],
        bands: [{ name: "expected", low: [19, 19], high: [22, 22] }] });
      const other = document.createElement("div");
      host.after(other);
      const { bars } = await import("/static/charts/bars.js");
      const rows = [{ name: "1", value: 0.5, mark: "spare" }];
      bars(other, { label: "Spectrum", unit: "", rows });
      for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
    })()"""
    run(page, "charts/series.js", code)
    page.click(".series .twin summary")
    page.wait_for_selector(".series .twin tbody tr")

    series = page.inner_text(".series .twin tbody")
    assert [] == [each for each in ("limit: 99 %", "–", "19 to 22", "20.5") if each not in series]
    assert "0.5 spare" in page.inner_text(".bars tbody")


def test_drawing_again_adds_no_second_figure(page):
    """New data goes into the figure that is there, and its open table stays open."""
    drawn(page, ["a", "b"])
    page.click(".twin summary")
    page.wait_for_selector(".twin tbody tr")
    code = """(async () => {
      const host = document.querySelector("#main > div");
      const rows = [{ name: "c", levels: Uint8Array.of(1, 2), href: "/", note: "" }];
      m.heatmap(host, { label: "Scores", first_s: 1.8e9, step_s: 60, rows });
    })()"""
    run(page, "charts/heatmap.js", code)

    assert 1 == page.locator("figure").count()
    assert ["c"] == page.locator(".twin tbody th").all_inner_texts()
