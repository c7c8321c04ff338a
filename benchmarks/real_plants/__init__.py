"""Plants of others, where the user has their files: Tennessee Eastman, SKAB, C-MAPSS, TSB-AD, CARE.

Nothing is downloaded. Each loader says which files it wants below `SUBMERGE_DATA`, and makes
`Case`s of them. `python benchmarks/real_plants/run.py tep` fits, scores and detects at defaults,
beside the detectors of `detectors.py`.

    case       rows that were learnt, rows to judge, and which of these are faulty
    sets       one loader for each set
    judged     what each detector finds
"""
