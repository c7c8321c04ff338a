// (A stand-in: `look` has the real one.)
export function series(host, { label }) {
  host.textContent = label;
}
