"""Figures of *Federated PCA with Adaptive Rank Estimation* (arXiv:1907.08059v1), one command each.

Facts of the experiments come from the paper, and from its authors' published scripts
(andylamp/federated_pca at 1576d9c on GitHub) where the text leaves them out.

follow          a method over a stream: error over time, ranks, seconds; the error of |U|
methods         what is compared: ours, the paper's SPCA and SAPCA, the rivals
streams         mote sets, or the generated room in their place; Synth(alpha)
synth           Figures 1 a, b, e and f, 3 and 4: components and errors on Synth(alpha)
motes           Figures 1 c and d, 6 and 7: error over time on the sets of motes
scaling         Figure 2: one to 32 nodes
spectrum        Figure 5: a pathological spectrum, and singular values of SAPCA
time_order      Figure 8: permuted rows
peak_memory     Table 1
moving_rank     lo and hi bounds, and hold-off, where the rank moves
merge_error     two halves merged: error of U and of the singular values
"""
