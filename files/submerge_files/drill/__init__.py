"""`submerge drill`: what a fleet's alarms would find, and what they would miss."""
