"""Figures of *Federated PCA with Adaptive Rank Estimation* (arXiv:1907.08059v1), one command each.

Facts of the experiments come from the authors' published scripts, andylamp/federated_pca at
1576d9c on GitHub. The paper's text is not at hand: where a figure's letter is not sure, it is named
by what it shows and by its script.

follow          a method over a stream: error over time, ranks, seconds; the error of |U|
methods         what is compared: ours, the paper's SPCA and SAPCA, the rivals
streams         mote sets, or the generated room in their place; Synth(alpha)
motes_errors    Figure 1 a to d: error over time on the mote sets
motes_subspace  Figure 1 f: error of |U| on the mote sets
synth           Figure 1 e: errors over alpha
components      SAPCA beside SPIRIT on Synth: number of components and errors over time
moving_rank     lo and hi bounds, and hold-off, where the rank moves
spectrum        singular values of SAPCA beside the true ones
time_order      Figure 8: permuted rows
merge_error     two halves merged: error of U and of the singular values
"""
