// Levels of scores over limits, a byte each: as `submerge.protocol.score_trail` writes them.

const NOTHING = 0;
export const UNLIMITED = 1;
export const LEAST = 2;
export const ONE = 128;
export const STEPS = 16;

// Between which levels colours change: from a thirtieth of the limit to it, and to eight times it.
const [FAINT, FULL] = [ONE - 5 * STEPS, ONE + 3 * STEPS];

// What is far from its limit is to stay quiet: colours grow late.
const LATE = 2;

/** Return the levels that a text of base64 has. */
export function levelsOf(text) {
  return Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0));
}

/** Return the value over its limit that a level tells; null where it tells none. */
export function shareOf(level) {
  return level < LEAST ? null : 2 ** ((level - ONE) / STEPS);
}

/** Return a level in words. */
export function levelWords(level) {
  const share = shareOf(level);
  if (share === null) {
    return level === NOTHING ? "no readings" : "readings, no limit yet";
  }
  return level === LEAST ? "far below its limit" : `${times(share)} its limit`;
}

// A share of a limit: 0.042×, 1.3×, 24×.
function times(share) {
  const digits = share >= 10 ? 0 : Math.max(0, 1 - Math.floor(Math.log10(share)));
  return `${share.toFixed(Math.min(digits, 3))}×`;
}

/** Return the colours of all levels, as 32 bits of a picture each.
 *
 * Up to the limit a cool hue grows away from the background; over it a warm one begins at once, so
 * that the limit is seen without a scale, and by those who tell few hues apart.
 */
export function palette(colour) {
  const cool = [colour("heat-low"), colour("heat-near")].map(parts);
  const warm = [colour("heat-over"), colour("heat-far")].map(parts);
  const found = new Uint32Array(256);
  found[NOTHING] = 0;
  found[UNLIMITED] = bits(parts(colour("heat-none")));
  for (let level = LEAST; level < 256; level++) {
    const below = level <= ONE;
    const along = below ? (level - FAINT) / (ONE - FAINT) : (level - ONE) / (FULL - ONE);
    const held = Math.min(Math.max(along, 0), 1);
    found[level] = bits(between(below ? cool : warm, below ? held ** LATE : held));
  }
  return found;
}

/** Return a level's colour as a text. */
export function colourOf(colours, level) {
  const value = colours[level];
  return `rgb(${value & 255} ${(value >> 8) & 255} ${(value >> 16) & 255})`;
}

/** Take the highest level of each bin of columns, of some rows: a row of bins each. */
export function binned(rows, columns, bins) {
  const found = new Uint8Array(rows.length * bins);
  rows.forEach(({ levels }, i) => {
    const least = Math.min(levels.length, columns);
    if (bins === columns) {
      found.set(levels.subarray(0, least), i * bins);
      return;
    }
    for (let j = 0; j < least; j++) {
      const at = i * bins + Math.floor((j * bins) / columns);
      if (levels[j] > found[at]) {
        found[at] = levels[j];
      }
    }
  });
  return found;
}

function parts(hex) {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function between([from, to], along) {
  return from.map((each, i) => Math.round(each + (to[i] - each) * along));
}

// A picture's bytes are red, green, blue, opaque: on every machine that has a browser this order.
function bits([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
