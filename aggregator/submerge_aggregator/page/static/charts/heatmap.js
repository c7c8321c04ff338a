// (A stand-in: `look` has the real one.)
export function heatmap(host, { label }) {
  host.textContent = label;
}
