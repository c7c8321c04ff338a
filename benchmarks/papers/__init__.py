"""Figures of the papers, one command each: ours beside theirs, as JSON and as a picture.

frame           what a figure is, and the command that writes it
results         JSON of the full runs, as committed
ny_kpca         Sterge et al.: error of NY-KPCA over components
one_pass        Pourkamali-Anaraki & Becker: rings, image segmentation
dis_kpca        Balcan et al.: error and time against communication, and `dis_kpca_large`
input_sparsity  Musco & Woodruff: the fast product for sparse rows
federated       Grammenos et al.: the figures of Federated PCA, a module each
page            the page of all figures, from committed JSON
every           all of them, one after another
"""
