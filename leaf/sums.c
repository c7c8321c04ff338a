/*
 * Exact moments, row by row, and the triangle of a report.
 *
 * `tests/support/oracle.py` does the same operations in the same order, and gets the same bits:
 * compile without -ffast-math, and with -ffp-contract=off.
 */
#include "inside.h"

#ifdef __FAST_MATH__
#error "compile this file without -ffast-math: sums are exact, and NaN is recognised"
#endif

/* Where (row, column), row <= column, is in a packed triangle. */
size_t leaf_place(int dim, int row, int column) {
    return (size_t)(row * (2 * dim - row - 1) / 2 + column);
}

/* Learn a scaled row (Welford, Technometrics 4, 1962; Pebay 2008, equation 1.6). */
void leaf_sums_learn(submerge_leaf_sums *sums, int dim, int center, const double *row) {
    double off[SUBMERGE_LEAF_CHANNELS], before = sums->weight, share;
    double *cell = sums->scatter;
    int i, j;
    /* About the first row, so that an offset common to all costs no digits. */
    if (before == 0 && center != SUBMERGE_LEAF_NONE)
        memcpy(sums->origin, row, (size_t)dim * sizeof *row);
    sums->weight = before + 1;
    share = center == SUBMERGE_LEAF_NONE ? 1 : before / sums->weight;
    for (i = 0; i < dim; i++) {
        off[i] = (row[i] - sums->origin[i]) - sums->mean[i];
        if (center != SUBMERGE_LEAF_NONE) sums->mean[i] += off[i] / sums->weight;
    }
    for (i = 0; i < dim; i++) {
        double part = off[i] * share;
        for (j = i; j < dim; j++)
            *cell++ += part * off[j];
    }
}

/* Count all rows so far `factor` times. */
void leaf_sums_fade(submerge_leaf_sums *sums, int dim, double factor) {
    size_t i, pairs = (size_t)(dim * (dim + 1) / 2);
    sums->weight *= factor;
    for (i = 0; i < pairs; i++)
        sums->scatter[i] *= factor;
}

/*
 * Write the packed triangle R of float32 numbers with energy R'R = scatter to the beginning of
 * `work`, which has room for a triangle of doubles; return by how much an eigenvalue may be off.
 *
 * Cholesky, row by row: what is left of the scatter stays in double behind what is done, and each
 * row that is done needs half of its room. A row whose pivot is rounding is left out.
 */
double leaf_triangle(const submerge_leaf_sums *sums, int dim, double energy, uint8_t *work) {
    const double rounding = 2.220446049250313e-16 * dim;
    double roundings = 0, left_out = 0;
    uint8_t *out = work;
    size_t at = 0;
    int i, j, k;
    if (!(energy > 1e-290)) {
        memset(work, 0, (size_t)(2 * dim * (dim + 1)));
        return energy > 0 ? energy : 0;
    }
    for (i = 0; i < dim * (dim + 1) / 2; i++) {
        double unit = sums->scatter[i] / energy;
        memcpy(work + 8 * i, &unit, 8);
    }
    for (i = 0; i < dim; i++) {
        double row[SUBMERGE_LEAF_CHANNELS], least = 4 * rounding * (sums->scatter[at] / energy);
        size_t rest = at + (size_t)(dim - i);
        memcpy(row + i, work + 8 * at, 8 * (size_t)(dim - i));
        if (!(row[i] > least)) {
            for (j = i; j < dim; j++) {
                left_out += (j > i ? 2 : 1) * row[j] * row[j];
                row[j] = 0;
            }
        } else {
            row[i] = sqrt(row[i]);
            for (j = i + 1; j < dim; j++)
                row[j] /= row[i];
            for (j = i + 1; j < dim; j++)
                for (k = j; k < dim; k++, rest++) {
                    double value;
                    memcpy(&value, work + 8 * rest, 8);
                    value -= row[j] * row[k];
                    memcpy(work + 8 * rest, &value, 8);
                }
        }
        for (j = i; j < dim; j++, out += 4) {
            float rounded = (float)row[j];
            uint32_t bits;
            roundings += (row[j] - rounded) * (row[j] - rounded);
            memcpy(&bits, &rounded, 4);
            for (k = 0; k < 4; k++)
                out[k] = (uint8_t)(bits >> 8 * k);
        }
        at += (size_t)(dim - i);
    }
    /* |R'R - Q'Q| <= |R - Q| (|R| + |Q|), in Frobenius norms; those of R and Q are 1. */
    return energy * (2.001 * sqrt(roundings) + sqrt(left_out) + 4 * rounding);
}

/* 2 to the x, |x| <= 1000, to some roundings: of half-lives and of edges of sketches. */
double leaf_exp2(double x) {
    double power = 1, sum = 1, term = 1, part;
    int whole = (int)x, i;
    part = (x - whole) * 0.6931471805599453;
    for (i = 1; i < 20; i++) {
        term = term * part / i;
        sum += term;
    }
    for (i = whole < 0 ? -whole : whole; i > 0; i--)
        power *= 2;
    return whole < 0 ? sum / power : sum * power;
}
