// Rows in the order of their times.
//
// Rows that come in a burst are dated back, one period apart: the first may be older than the last
// of the burst before. A chart needs times that rise.

/** Return what puts a list with an item for each row into the order of their times. */
export function inTime(times) {
  if (times.every((at, i) => i === 0 || at >= times[i - 1])) {
    return (items) => items;
  }
  const order = times.map((_, i) => i).sort((a, b) => times[a] - times[b]);
  return (items) => order.map((i) => items[i]);
}
