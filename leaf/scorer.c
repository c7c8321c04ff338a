/*
 * Scores of rows by the fleet's model, and one alarm. The model says how channels vary together:
 * covariance L L' + Psi, of loadings and noise (docs/wire.md, "Factors"). There is no prior of the
 * leaf's own, and limits are counted, never extrapolated.
 */
#include "inside.h"

#define WEIGHT 0.1   /* of the newest distance in the moving average */
#define HELD 2.0     /* largest average that is remembered, over its limit */
#define QUIET 32     /* rows without a high average after which an alarm ends */
#define OWN_ROWS 10  /* rows before a mean of its own is used */
#define LEAST 40     /* maxima of blocks before there is a limit */
#define COUNTED 10.0 /* maxima above a limit that keeps its promise; with fewer it is provisional */

/* Whether content is n numbers of `bytes` each, none above `most` in size. */
static int are_numbers(const leaf_reader *content, size_t n, size_t bytes, double least,
                       double most) {
    size_t i;
    if (leaf_length(content) != n * bytes) return 0;
    for (i = 0; i < n; i++) {
        double value = bytes == 8 ? leaf_double_at(content, i) : leaf_float_at(content, i);
        if (!(value >= least && value <= most)) return 0;
    }
    return 1;
}

/* The upper edge of a bucket. */
static double edge(int level, double index) {
    double octaves = index * leaf_exp2(level) / 8;
    return leaf_exp2(octaves > 900 ? 900 : octaves < -900 ? -900 : octaves);
}

/* Read a fine sketch (docs/wire.md): how many maxima it has, 0 if it is none, and the value that a
   share of them does not exceed. */
static double read_sketch(leaf_reader sketch, double share, double *value) {
    leaf_reader again;
    int level, size, i;
    double n = 0, upto = 0, rank, index = 0;
    if (leaf_length(&sketch) < 2) return 0;
    level = sketch.at[0] - 2;
    size = sketch.at[1];
    sketch.at += 2;
    again = sketch;
    for (i = 0; i < size; i++) {
        leaf_varint(&sketch);
        n += (double)leaf_varint(&sketch);
    }
    if (sketch.bad || level > 10 || size > 160 || sketch.at != sketch.end || n > (double)READINGS)
        return 0;
    rank = share * n > n - 1 ? n : share * n;
    for (i = 0; i < size && upto < rank; i++) {
        uint64_t step = leaf_varint(&again);
        double count = (double)leaf_varint(&again), first = (double)(step >> 1);
        if (i == 0) index = step & 1 ? -first - 1 : first;
        else index += (double)step;
        upto += count;
        *value = edge(level, upto > rank ? index - (upto - rank) / count : index);
    }
    return n;
}

/* Draw the limit from the group's block maxima: what a share of the blocks exceeds. */
static void take_maxima(submerge_leaf *leaf, leaf_reader maxima, double widened) {
    submerge_leaf_scorer *scorer = leaf->scorer;
    leaf_reader sketch = {0};
    leaf_field field;
    double block_s = 3600, median = 0, limit = 0, n, share, careful;
    while (leaf_next(&maxima, &field)) {
        if (field.number == 8 && field.wire == 1 && leaf_double(&field) > 0)
            block_s = leaf_double(&field);
        if (field.number == 10 && field.wire == 2) sketch = field.content;
    }
    if (maxima.bad || !sketch.at) return;
    n = read_sketch(sketch, 0.5, &median);
    scorer->blocks = n < LEAST ? (uint32_t)n : LEAST;
    if (n < LEAST) return;
    share = leaf->config.false_alarms_per_s * block_s;
    share = share > 0.5 ? 0.5 : share < 0.5 / n ? 0.5 / n : share;
    careful = share / (1 + 0.3 / sqrt(n * share));
    read_sketch(sketch, 1 - careful, &limit);
    if (!(limit > 0)) return;
    scorer->provisional = n * careful < COUNTED;
    scorer->calm = (1 + (median < limit ? median / limit : 1)) / 2;
    scorer->limit = limit * (widened > 1 ? widened < 1.5 ? widened : 1.5 : 1);
}

/* y = R'^-1 c, and its square. */
static double solve(const double *factor, int dim, const double *c, double *y) {
    double sum = 0;
    int i, k;
    for (i = 0; i < dim; i++) {
        double rest = c[i];
        for (k = 0; k < i; k++)
            rest -= factor[leaf_place(dim, k, i)] * y[k];
        y[i] = rest / factor[leaf_place(dim, i, i)];
        sum += y[i] * y[i];
    }
    return sum;
}

/* Make R of the covariance that stands in its place, and the diagonal of the inverse. */
static int factorise(submerge_leaf_scorer *scorer, int dim) {
    double *R = scorer->factor, unit[SUBMERGE_LEAF_CHANNELS], y[SUBMERGE_LEAF_CHANNELS];
    int i, j, k;
    for (i = 0; i < dim; i++) {
        double *row = R + leaf_place(dim, i, i), root = sqrt(row[0]);
        if (!(row[0] > 0 && root < HUGE_VAL)) return 0;
        row[0] = root;
        for (j = i + 1; j < dim; j++)
            row[j - i] /= root;
        for (j = i + 1; j < dim; j++)
            for (k = j; k < dim; k++)
                R[leaf_place(dim, j, k)] -= row[j - i] * row[k - i];
    }
    for (i = 0; i < dim; i++) {
        memset(unit, 0, sizeof unit);
        unit[i] = 1;
        scorer->precision[i] = solve(R, dim, unit, y);
    }
    return 1;
}

int leaf_take_model(submerge_leaf *leaf, leaf_reader model) {
    submerge_leaf_scorer *scorer = leaf->scorer;
    const int dim = leaf->config.schema->dim;
    const size_t d = (size_t)dim;
    leaf_reader mean = {0}, noise = {0}, loadings = {0}, columns = {0}, sigma = {0};
    leaf_reader subspace = {0}, maxima = {0}, factors = {0};
    leaf_field field;
    uint64_t version = 0, width = 0;
    double weight = 0, widened = 1;
    int i, j;
    size_t l, k;
    while (leaf_next(&model, &field)) {
        if (field.wire == 0) version = field.number == 2 ? field.value : version;
        else if (field.wire == 1) widened = field.number == 18 ? leaf_double(&field) : widened;
        else if (field.number == 4) subspace = field.content;
        else if (field.number == 14) maxima = field.content;
        else if (field.number == 15 && !factors.at) factors = field.content;
    }
    if (version <= scorer->version || version >> 63) return SUBMERGE_LEAF_OLD;
    if (subspace.at && leaf_length(&subspace)) {
        while (leaf_next(&subspace, &field)) {
            width = field.number == 1 && field.wire == 0 ? field.value : width;
            weight = field.number == 7 ? leaf_double(&field) : weight;
            columns = field.number == 2 ? field.content : columns;
            sigma = field.number == 5 ? field.content : sigma;
            mean = field.number == 6 ? field.content : mean;
        }
        while (leaf_next(&factors, &field)) {
            noise = field.number == 1 ? field.content : noise;
            loadings = field.number == 2 ? field.content : loadings;
        }
        k = leaf_length(loadings.at ? &loadings : &columns) / (4 * d);
        if (subspace.bad || factors.bad || width != d || k > d ||
            !are_numbers(&mean, d, 8, -1.8e19, 1.8e19) ||
            !are_numbers(&noise, d, 4, 1e-38, 3.1e38) ||
            !are_numbers(loadings.at ? &loadings : &columns, d * k, 4, -3.1e38, 3.1e38) ||
            (!loadings.at && !(weight > 0 && are_numbers(&sigma, k, 8, 0, 1e30))))
            return SUBMERGE_LEAF_UNUSABLE;
        memset(scorer->factor, 0, sizeof scorer->factor);
        for (l = 0; l < k; l++) {
            double unit = loadings.at ? 1 : leaf_double_at(&sigma, l) / sqrt(weight);
            const leaf_reader *from = loadings.at ? &loadings : &columns;
            for (i = 0; i < dim; i++)
                for (j = i; j < dim; j++)
                    scorer->factor[leaf_place(dim, i, j)] +=
                        unit * leaf_float_at(from, l * d + (size_t)i) *
                        (unit * leaf_float_at(from, l * d + (size_t)j));
        }
        for (i = 0; i < dim; i++) {
            scorer->factor[leaf_place(dim, i, i)] += leaf_float_at(&noise, (size_t)i);
            scorer->mean[i] = leaf_double_at(&mean, (size_t)i);
        }
        scorer->ready = factorise(scorer, dim);
    }
    scorer->version = version;
    take_maxima(leaf, maxima, widened);
    return scorer->ready || !subspace.at ? SUBMERGE_LEAF_TAKEN : SUBMERGE_LEAF_UNUSABLE;
}

/* Note the three channels with the largest share in what the others do not predict. */
static void accuse(submerge_leaf *leaf, const double *y, const double *row) {
    submerge_leaf_scorer *scorer = leaf->scorer;
    const int dim = leaf->config.schema->dim;
    double x[SUBMERGE_LEAF_CHANNELS], total = 0;
    int i, k, n;
    for (i = dim - 1; i >= 0; i--) {
        double rest = y[i];
        for (k = i + 1; k < dim; k++)
            rest -= scorer->factor[leaf_place(dim, i, k)] * x[k];
        x[i] = rest / scorer->factor[leaf_place(dim, i, i)];
        total += x[i] * x[i] / scorer->precision[i];
    }
    for (n = 0; n < 3 && n < dim; n++) {
        double most = -1;
        for (i = 0; i < dim; i++) {
            double blame = x[i] * x[i] / scorer->precision[i];
            for (k = 0; k < n; k++)
                blame = scorer->top[k] == i ? -1 : blame;
            if (blame > most) {
                most = blame;
                scorer->top[n] = (uint8_t)i;
            }
        }
        i = scorer->top[n];
        scorer->share[n] = total > 0 && total < HUGE_VAL ? most / total : 0;
        scorer->value[n] = row[i];
        scorer->expected[n] = row[i] - x[i] / scorer->precision[i] * leaf->config.schema->scale[i];
    }
}

/* Unix time that can be shown as a date: a clock may be wrong. */
static double shown(const submerge_leaf_now *now) {
    return now->wall_s > 0 && now->wall_s < 253402300799.0 ? now->wall_s : 0;
}

/* Score a row; return whether an alarm keeps it from being learnt. */
int leaf_score_row(submerge_leaf *leaf, const double *scaled, const double *row,
                   submerge_leaf_score *score, const submerge_leaf_now *now) {
    submerge_leaf_scorer *scorer = leaf->scorer;
    const submerge_leaf_schema *schema = leaf->config.schema;
    const int dim = schema->dim, own = schema->center == SUBMERGE_LEAF_OWN;
    double c[SUBMERGE_LEAF_CHANNELS] = {0}, y[SUBMERGE_LEAF_CHANNELS];
    double over, most = HELD * scorer->limit;
    int i, changed = 0;
    if (!scorer->ready || (own && leaf->learnt < OWN_ROWS)) return 0;
    for (i = 0; i < dim; i++)
        c[i] = own ? (scaled[i] - leaf->sums.origin[i]) - leaf->sums.mean[i]
                   : scaled[i] - scorer->mean[i];
    score->distance = solve(scorer->factor, dim, c, y);
    if (own) /* about a mean of n rows, rows vary 1 + 1/n times as much */
        score->distance /= 1 + 1 / (leaf->sums.weight > 1 ? leaf->sums.weight : 1);
    score->distance = score->distance < 1e300 ? score->distance : 1e300;
    most = most > 0 && scorer->average > most ? most : scorer->average;
    scorer->average = WEIGHT * score->distance + (1 - WEIGHT) * most;
    score->scored = 1;
    score->average = scorer->average;
    if (!(scorer->limit > 0)) return 0;
    over = scorer->average / scorer->limit;
    over = over < 1e9 ? over : 1e9;
    scorer->quiet = over > scorer->calm ? 0 : scorer->quiet + (scorer->quiet < QUIET);
    if (!scorer->open && over > 1) {
        uint64_t ms = (uint64_t)(shown(now) * 1000);
        scorer->number = ms > scorer->number ? ms : scorer->number + 1;
        scorer->began_s = shown(now);
        scorer->since_s = now->steady_s;
        scorer->raised_by = scorer->version;
        scorer->marked = scorer->provisional;
        scorer->ended_s = scorer->worst = 0;
        scorer->withheld = 0;
        scorer->verdict = 0;
        scorer->open = changed = 1;
    }
    if (scorer->open && over > scorer->worst) {
        accuse(leaf, y, row);
        scorer->worst = over;
        scorer->peaked_s = shown(now);
    }
    if (scorer->open && scorer->quiet >= QUIET) {
        scorer->ended_s = shown(now) > scorer->began_s ? shown(now) : scorer->began_s + 1;
        scorer->open = 0;
        changed = 1;
    }
    if (changed) leaf->alarm_news = 1, leaf->report_at = now->steady_s;
    score->alarm = scorer->open;
    if (!scorer->open || scorer->verdict == 1 ||
        now->steady_s - scorer->since_s > leaf->config.withhold_s)
        return 0;
    scorer->withheld++;
    return 1;
}

static void put_alarm(const submerge_leaf *leaf, leaf_writer *writer) {
    const submerge_leaf_scorer *scorer = leaf->scorer;
    const int named = leaf->config.schema->dim < 3 ? leaf->config.schema->dim : 3;
    size_t opened = leaf_open(writer, 2), each;
    int i;
    leaf_put_text(writer, 1, leaf->config.node);
    leaf_put_number(writer, 2, scorer->number);
    leaf_put_double(writer, 3, scorer->began_s);
    leaf_put_double(writer, 4, scorer->peaked_s);
    leaf_put_double(writer, 5, scorer->ended_s);
    leaf_put_double(writer, 6, scorer->worst);
    leaf_put_number(writer, 7, 8); /* the moving average of distances */
    for (i = 0; i < named; i++) {
        each = leaf_open(writer, 8);
        leaf_put_text(writer, 1, leaf->config.schema->channels[scorer->top[i]]);
        leaf_put_double(writer, 2, scorer->share[i]);
        leaf_close(writer, each);
        each = leaf_open(writer, 13);
        leaf_put_double(writer, 2, scorer->value[i]);
        leaf_put_double(writer, 3, scorer->expected[i]);
        leaf_close(writer, each);
    }
    leaf_put_number(writer, 9, scorer->raised_by);
    leaf_put_number(writer, 10, scorer->withheld);
    leaf_put_number(writer, 11, (uint64_t)scorer->verdict);
    leaf_put_number(writer, 15, (uint64_t)scorer->marked);
    leaf_close(writer, opened);
}

void leaf_put_alarms(const submerge_leaf *leaf, leaf_writer *writer) {
    const submerge_leaf_scorer *scorer = leaf->scorer;
    const int own = leaf->config.schema->center == SUBMERGE_LEAF_OWN;
    size_t opened = leaf_open(writer, 17), each = leaf_open(writer, 1);
    int armed = scorer->ready && scorer->limit > 0 && (!own || leaf->learnt >= OWN_ROWS);
    /* Learning, armed, alarm, paused. */
    leaf_put_number(writer, !armed ? 1 : scorer->open ? 3 : leaf->paused ? 4 : 2, 1);
    leaf_close(writer, each);
    if (scorer->number) put_alarm(leaf, writer);
    leaf_put_number(writer, 3, (uint64_t)scorer->open);
    leaf_put_double(writer, 8, armed ? 0 : -1);
    leaf_put_number(writer, 9, leaf->desired);
    if (!armed) { /* waiting for a model, for a mean of its own, or for scores of the fleet */
        each = leaf_open(writer, 16);
        leaf_put_number(writer, 1, !scorer->ready ? 1 : scorer->limit > 0 ? 2 : 4);
        leaf_put_number(writer, 2, scorer->limit > 0 ? leaf->learnt : scorer->blocks);
        leaf_put_number(writer, 3, !scorer->ready ? 0 : scorer->limit > 0 ? OWN_ROWS : LEAST);
        leaf_close(writer, each);
    }
    leaf_close(writer, opened);
}
