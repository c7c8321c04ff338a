// Text of others, as it is shown. (A stand-in: `look` has the real one.)

/** Return it without what moves a cursor, cut. */
export function shown(text, most = 200) {
  const clean = String(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd");
  return clean.length > most ? `${clean.slice(0, most)}…` : clean;
}
