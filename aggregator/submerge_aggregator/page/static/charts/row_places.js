// Where the rows of a heat map are: all tall enough for a name, or, of many, the first ones.

export const TALL = 16;
export const LOW = 4;

export const MOST_TALL = 64;
const FIRST_TALL = 24;

/** Return the places of n rows, in CSS pixels from the top of the first one. */
export function rowPlaces(n) {
  const tall = n <= MOST_TALL ? n : FIRST_TALL;
  const edge = tall * TALL;
  return {
    n,
    height: edge + (n - tall) * LOW,
    isTall: (i) => i < tall,
    top: (i) => (i <= tall ? i * TALL : edge + (i - tall) * LOW),
    /** Return which row is at a height; null beyond the last one. */
    at(y) {
      const i = y < edge ? Math.floor(y / TALL) : tall + Math.floor((y - edge) / LOW);
      return i >= 0 && i < n ? i : null;
    },
  };
}
