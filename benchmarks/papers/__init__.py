"""Figures of the papers, one command each: ours beside theirs, as JSON and as a picture.

frame           what a figure is, and the command that writes it
results         JSON of the full runs, as committed
ny_kpca         Sterge et al.: error of NY-KPCA over landmarks and components
one_pass_rings  Pourkamali-Anaraki & Becker: the rings
one_pass_segments  the same: image segmentation over landmarks
dis_kpca        Balcan et al.: error against communication
federated       Grammenos et al.: the figures of Federated PCA, a module each
page            the page of all figures, from committed JSON
every           all of them, one after another
"""
