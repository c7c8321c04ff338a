@about@
#ifndef SUBMERGE_DECLARED
#define SUBMERGE_DECLARED

@constants@

/* Status of a row: it has scores; a reading is NaN; one is infinite, or too large to be one. */
#define SUBMERGE_SCORED 0
#define SUBMERGE_GAPS 1
#define SUBMERGE_TOO_LARGE 2

/* What the next row needs. {0} is the state before the first row. */
typedef struct {
    submerge_real recent[SUBMERGE_WINDOWS + 1][SUBMERGE_OF]; /* last scores, oldest first */
    submerge_real average;                                   /* of distances (EWMA) */
    int open;                                                /* whether an alarm is open */
    int quiet; /* rows of it since a statistic was high */
} submerge_state;

/* What is known of a row. Without scores, only `status` and `alarm` mean anything. */
typedef struct {
    int status;
    int alarm;               /* whether an alarm is open at this row */
    unsigned int over;       /* bit i: statistic i is above its limit, which raises an alarm */
    int blame;               /* the channel to blame; -1 for none */
    submerge_real share;     /* its share in what is anomalous about the row */
    submerge_real deviation; /* its reading less what the other channels predict, in its unit */
    submerge_real scores[SUBMERGE_SCORES];
    submerge_real passed[SUBMERGE_SCORES]; /* the highest share of normal rows that it is above */
    submerge_real statistics[SUBMERGE_STATISTICS + 1]; /* what is compared with alarm limits */
} submerge_result;

#ifdef __cplusplus
extern "C" {
#endif

/* Score a row of SUBMERGE_CHANNELS readings, in their units; return its status. A row without
   scores leaves the state as it was. */
int submerge_score(const submerge_real *row, submerge_state *state, submerge_result *result);

/* Return 0 if the golden rows have their results, else the number of the first that has not. */
int submerge_selftest(void);

/* The names of the channels, in UTF-8, in the order of a row. */
extern const char *const submerge_channels[SUBMERGE_CHANNELS];

/* The limits of the statistics. */
extern const submerge_real submerge_limits[SUBMERGE_STATISTICS + 1];

#ifdef __cplusplus
}
#endif

#endif

#ifndef SUBMERGE_DECLARATIONS

#ifdef __FAST_MATH__
#error "compile this file without -ffast-math: it has to recognise NaN"
#endif

#include <float.h>

@data@

/* z = gains * (x . matrix); x becomes x - matrix . z. The matrix is (channels, k). */
static void submerge_take(const submerge_real *matrix, const submerge_real *gains, int k,
                          submerge_real *x, submerge_real *z)
{
    int i, j;
    for (i = 0; i < k; i++) {
        submerge_real sum = 0;
        for (j = 0; j < SUBMERGE_CHANNELS; j++)
            sum += x[j] * matrix[j * k + i];
        z[i] = gains ? gains[i] * sum : sum;
    }
    for (j = 0; j < SUBMERGE_CHANNELS; j++) {
        submerge_real sum = 0;
        for (i = 0; i < k; i++)
            sum += matrix[j * k + i] * z[i];
        x[j] -= sum;
    }
}

static submerge_real submerge_squares(const submerge_real *x, const submerge_real *weights, int n)
{
    submerge_real sum = 0;
    int i;
    for (i = 0; i < n; i++)
        sum += weights ? x[i] * x[i] * weights[i] : x[i] * x[i];
    return sum;
}

/* Scale and center a row; return its status. */
static int submerge_center(const submerge_real *row, submerge_real *centered)
{
    int j, gaps = 0, infinite = 0, large = 0;
    for (j = 0; j < SUBMERGE_CHANNELS; j++) {
#if SUBMERGE_FLOAT
        /* The center is a sum of two numbers: one would lose the digits of a small deviation. */
        submerge_real s = ((row[j] - submerge_offset[j]) - submerge_mean[j]) / submerge_scale[j];
#else
        submerge_real s = (row[j] - submerge_offset[j]) / submerge_scale[j];
#endif
        if (s != s)
            gaps = 1;
        else if (s > SUBMERGE_MAX || s < -SUBMERGE_MAX)
            infinite = 1;
        else if (!(s < SUBMERGE_LARGEST && s > -SUBMERGE_LARGEST))
            large = 1;
#if SUBMERGE_FLOAT
        centered[j] = s;
#else
        centered[j] = s - submerge_mean[j];
#endif
    }
    if (infinite)
        return SUBMERGE_TOO_LARGE;
    if (gaps)
        return SUBMERGE_GAPS;
    return large ? SUBMERGE_TOO_LARGE : SUBMERGE_SCORED;
}

/* Find the channel to blame, of what the others do not explain; return the sum of all blame. */
static submerge_real submerge_accuse(const submerge_real *off, submerge_result *result)
{
    submerge_real most = 0, total = 0;
    int j;
    result->blame = -1;
    for (j = 0; j < SUBMERGE_CHANNELS; j++) {
        submerge_real blame = submerge_blame_weights[j] * off[j] * off[j];
        total += blame;
        if (blame > most) {
            most = blame;
            result->blame = j;
        }
    }
    if (result->blame >= 0) {
        j = result->blame;
        result->share = most / total;
        result->deviation = submerge_error_weights[j] * off[j] * submerge_scale[j];
    }
    return total;
}

#if SUBMERGE_REFINED
/* What the factors leave of a channel that they explain by the channel itself is a small difference
   of large floats. For these channels the difference of the matrices was taken beforehand. */
static void submerge_refine(const submerge_real *centered, submerge_real *off)
{
    int i, j;
    for (i = 0; i < SUBMERGE_REFINED; i++) {
        submerge_real sum = 0;
        for (j = 0; j < SUBMERGE_CHANNELS; j++)
            sum += submerge_refined_rows[i][j] * submerge_inverse_roots[j] * centered[j];
        off[submerge_refined[i]] = sum;
    }
}
#endif

/* Score a centered row, which is changed; return its status. */
static int submerge_measure(submerge_real *centered, submerge_result *result)
{
    submerge_real off[SUBMERGE_CHANNELS], z[SUBMERGE_WIDEST], total;
    int i, j;
    for (j = 0; j < SUBMERGE_CHANNELS; j++)
        off[j] = submerge_inverse_roots[j] * centered[j];
    submerge_take(submerge_loadings, submerge_gains, SUBMERGE_FACTORS, off, z);
#if SUBMERGE_REFINED
    submerge_refine(centered, off);
#endif
#ifdef SUBMERGE_DISTANCE
    result->scores[SUBMERGE_DISTANCE] = (submerge_squares(off, 0, SUBMERGE_CHANNELS) +
                                         submerge_squares(z, 0, SUBMERGE_FACTORS)) /
                                        SUBMERGE_EXCESS;
#endif
#ifdef SUBMERGE_CHANNEL
    for (j = 0; j < SUBMERGE_CHANNELS; j++) {
        submerge_real each = submerge_channel_weights[j] * off[j] * off[j];
        if (!(each <= result->scores[SUBMERGE_CHANNEL]))
            result->scores[SUBMERGE_CHANNEL] = each;
    }
#endif
    total = submerge_accuse(off, result);
#ifdef SUBMERGE_DIRECTIONS
    submerge_take(submerge_basis, 0, SUBMERGE_DIRECTIONS, centered, z);
#endif
#ifdef SUBMERGE_SPE
    if (!SUBMERGE_COMPLETE)
        result->scores[SUBMERGE_SPE] =
            submerge_squares(centered, 0, SUBMERGE_CHANNELS) / SUBMERGE_EXCESS;
#endif
#ifdef SUBMERGE_T2
    result->scores[SUBMERGE_T2] =
        submerge_squares(z, submerge_t2_weights, SUBMERGE_DIRECTIONS) / SUBMERGE_EXCESS;
#endif
    if (!(total <= SUBMERGE_MAX))
        return SUBMERGE_TOO_LARGE;
    for (i = 0; i < SUBMERGE_SCORES; i++) {
        if (!(result->scores[i] <= SUBMERGE_MAX))
            return SUBMERGE_TOO_LARGE;
        for (j = 0; j < SUBMERGE_STEPS; j++)
            if (result->scores[i] > submerge_step_values[i][j])
                result->passed[i] = submerge_step_shares[i][j];
    }
    return SUBMERGE_SCORED;
}

/* Take a score into the last ones; return the SUBMERGE_AFTER-th largest of them (k of m). */
static submerge_real submerge_ranked(submerge_real *recent, submerge_real newest)
{
    submerge_real top[SUBMERGE_AFTER] = {0};
    int i, j;
    for (i = 0; i < SUBMERGE_OF; i++) {
        submerge_real each = i + 1 < SUBMERGE_OF ? recent[i + 1] : newest;
        recent[i] = each;
        for (j = 0; j < SUBMERGE_AFTER; j++)
            if (each > top[j]) {
                submerge_real lower = top[j];
                top[j] = each;
                each = lower;
            }
    }
    return top[SUBMERGE_AFTER - 1];
}

#ifdef SUBMERGE_AVERAGED
/* Take a distance into the moving average; return it. */
static submerge_real submerge_average(submerge_state *state, submerge_real newest)
{
    submerge_real before = state->average < SUBMERGE_HELD ? state->average : SUBMERGE_HELD;
    state->average = SUBMERGE_WEIGHT * newest + SUBMERGE_KEPT * before;
    return state->average;
}
#endif

/* Compare the statistics with their limits; begin or end an alarm. */
static void submerge_compare(submerge_state *state, submerge_result *result)
{
    int i, high = 0;
    for (i = 0; i < SUBMERGE_WINDOWS; i++)
        result->statistics[i] =
            submerge_ranked(state->recent[i], result->scores[submerge_window_scores[i]]);
#ifdef SUBMERGE_AVERAGED
    result->statistics[SUBMERGE_AVERAGED] =
        submerge_average(state, result->scores[SUBMERGE_DISTANCE]);
#endif
    for (i = 0; i < SUBMERGE_STATISTICS; i++) {
        if (result->statistics[i] > submerge_limits[i])
            result->over |= 1u << i;
        if (result->statistics[i] > submerge_calm[i])
            high = 1;
    }
    if (high)
        state->quiet = 0;
    else if (state->quiet < SUBMERGE_ENDS_AFTER)
        state->quiet++;
    state->open = result->over || (state->open && state->quiet < SUBMERGE_ENDS_AFTER);
    if (!state->open)
        state->quiet = 0;
    result->alarm = state->open;
}

int submerge_score(const submerge_real *row, submerge_state *state, submerge_result *result)
{
    static const submerge_result nothing = {0};
    submerge_real centered[SUBMERGE_CHANNELS];
    *result = nothing;
    result->status = submerge_center(row, centered);
    if (result->status == SUBMERGE_SCORED)
        result->status = submerge_measure(centered, result);
    if (result->status == SUBMERGE_SCORED) {
        submerge_compare(state, result);
    } else {
        int status = result->status;
        *result = nothing;
        result->status = status;
        result->blame = -1;
        result->alarm = state->open != 0;
    }
    return result->status;
}

#ifndef SUBMERGE_NO_SELFTEST

#include <math.h> /* for NAN and INFINITY alone */

@golden@

/* Return whether numbers are as expected, or differ by less than a floor: that is rounding. */
static int submerge_near(const submerge_real *found, const submerge_real *expected, int n,
                         submerge_real floor)
{
    int i;
    for (i = 0; i < n; i++) {
        submerge_real off = found[i] - expected[i], size = expected[i];
        if (off < 0)
            off = -off;
        if (size < 0)
            size = -size;
        if (!(off <= SUBMERGE_NEAR * size + floor))
            return 0;
    }
    return 1;
}

int submerge_selftest(void)
{
    submerge_state state = {{{0}}, 0, 0, 0};
    submerge_result found;
    int i, j;
    for (i = 0; i < SUBMERGE_GOLDEN; i++) {
        const submerge_result *expected = &submerge_golden_results[i];
        submerge_score(submerge_golden_rows[i], &state, &found);
        if (found.status != expected->status || found.alarm != expected->alarm ||
            found.over != expected->over || found.blame != expected->blame ||
            !submerge_near(&found.share, &expected->share, 1, 0) ||
            !submerge_near(&found.deviation, &expected->deviation, 1, 0) ||
            !submerge_near(found.scores, expected->scores, SUBMERGE_SCORES, SUBMERGE_FLOOR) ||
            !submerge_near(found.statistics, expected->statistics, SUBMERGE_STATISTICS,
                           SUBMERGE_FLOOR))
            return i + 1;
        for (j = 0; j < SUBMERGE_SCORES; j++)
            if (expected->scores[j] > SUBMERGE_FLOOR &&
                !submerge_near(&found.passed[j], &expected->passed[j], 1, 0))
                return i + 1;
    }
    return 0;
}

#endif
#endif
