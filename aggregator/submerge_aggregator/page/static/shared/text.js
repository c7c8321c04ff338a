// Names that others chose: shown so that they do nothing to the text around them.

const MOST = 200;

// Controls, format characters (among them the marks that turn the direction of writing), separators
// of lines, what is private or no character, and a code unit that stands alone.
const PLAIN = /^[ -~]*$/;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu;

/** Return a name as a person may read it: ‹U+202E› for what is not seen, at most `most` characters. */
export function shown(name, most = MOST) {
  const whole = String(name);
  const cut = whole.length > most ? [...whole.slice(0, most)].slice(0, -1).join("") + "…" : whole;
  return PLAIN.test(cut) ? cut : cut.replace(UNSEEN, mark);
}

function mark(character) {
  return `‹U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;
}
