// (A stand-in: `look` has the real one.)
export function bars(host, { label }) {
  host.textContent = label;
}
