// A model's directions: how much each explains, and what each channel has in it.

import { bars } from "../charts/bars.js";
import { make } from "../shared/build.js";
import { shown } from "../shared/text.js";
import { figure } from "../shared/words.js";

/** Draw the spectrum: each direction's share of all variation, and what it could be at most. */
export function spectrum(chart, model) {
  const rows = model.directions.map(({ share, scored }, i) => ({
    name: scored ? `${i + 1}` : `${i + 1} (spare)`,
    value: 100 * share,
    // What was discarded may belong to any direction: it is a bound, not an error.
    low: 100 * share,
    high: 100 * Math.min(1, share + model.rest),
    mark: scored ? "" : "spare",
  }));
  rows.push({ name: "the rest", value: 100 * model.rest, mark: "rest" });
  bars(chart, { label: "Share of all variation by direction", unit: "%", rows });
}

/** Draws what each channel has in one direction. */
export class Loadings {
  constructor(form, chart) {
    this.chart = chart;
    this.direction = make("select", { input: () => this.draw() });
    this.bySize = make("input", { type: "checkbox", checked: true, input: () => this.draw() });
    this.search = make("input", { type: "search", placeholder: "channel", input: () => this.draw() });
    form.replaceChildren(
      make("label", {}, "Direction ", this.direction),
      make("label", {}, "Search ", this.search),
      make("label", { class: "check" }, this.bySize, " Largest first"),
    );
  }

  take(model) {
    const chosen = this.direction.selectedIndex;
    this.model = model;
    this.direction.replaceChildren(
      ...model.directions.map(({ share, scored }, i) =>
        make(
          "option",
          { value: i, selected: i === chosen },
          `${i + 1}: ${figure(100 * share)} %${scored ? "" : ", spare"}`,
        ),
      ),
    );
    this.draw();
  }

  draw() {
    const { model } = this;
    const chosen = model.directions[this.direction.selectedIndex];
    if (!chosen) {
      return;
    }
    const text = this.search.value.trim().toLowerCase();
    const rows = model.channels
      .map((name, i) => ({
        name: shown(model.units[i] ? `${name} (${model.units[i]})` : name, 80),
        value: chosen.loadings[i],
      }))
      .filter(({ name }) => name.toLowerCase().includes(text));
    if (this.bySize.checked) {
      rows.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    }
    bars(this.chart, {
      label: `Loadings of the channels in direction ${this.direction.selectedIndex + 1}`,
      rows,
    });
  }
}
