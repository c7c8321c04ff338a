"""One loader for each set; `SETS` has them by the name that the command takes."""

from real_plants.sets import care, cmapss, skab, tep, tsb_ad

SETS = {
    "tep": tep.SET,
    "skab": skab.SET,
    "cmapss": cmapss.SET,
    "tsb-ad": tsb_ad.SET,
    "care": care.SET,
}
