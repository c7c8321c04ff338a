"""Kind `landmarks`: rows that the fleet chooses for a Nystrom map, in rounds.

    settings.LandmarkSettings    what a person sets, checked
    known.Known                  what has gone down, and the scores of rows that follow from it
    job.LandmarksJob             the rounds: uniform rows first, then rows that the first ones miss

Keys, limits and checks of points are those of kernel PCA (`kpca.chosen`).
"""
