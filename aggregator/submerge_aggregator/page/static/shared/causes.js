// Causes and marks of alarms in words, as in `submerge.protocol.alarm_status` (a test compares).

export const CAUSES = {
  spe: "channels disagree more than usual (squared prediction error)",
  t2: "channels agree, but lie further out than usual (Hotelling's T2)",
  linear: "channels disagree more than usual, in the readings themselves",
  distance: "readings lie further from normal than usual",
  ewma: "readings lie further from normal than usual",
  smoothed: "readings stay a little further from normal, row after row",
  channel: "one channel differs from what the others predict",
  stuck: "a channel keeps its value while the others move",
  silent: "a channel says nothing for longer than ever before",
};

export const MARKS = {
  settled: "settled at a new level",
  provisional: "provisional",
};

/** Return the marks of an alarm, each with its words. */
export function marks(alarm) {
  return Object.entries(MARKS).filter(([mark]) => alarm[mark]);
}

/** Return whether an alarm is listed, and sent nowhere. */
export function isQuiet(alarm) {
  return alarm.provisional;
}
