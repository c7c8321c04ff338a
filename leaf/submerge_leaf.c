/*
 * The leaf as a node: when it joins and reports, and what it makes of answers. docs/protocol.md has
 * the rules; `ClientNode` of the core is the same machine for larger devices.
 *
 * 1. A report is never repeated: a try without an answer is followed by a newer report, with the
 *    next number. One number has one content, and no copy of it takes memory.
 * 2. An incarnation belongs to one incarnation of its parent. Where that ends it begins again from
 *    zero; what the parent holds of it stays counted, what it does not hold is declared as lost.
 */
#include "inside.h"

#define NEVER HUGE_VAL
#define TWIN_S 3600.0         /* contradicted twice in this time, it is silent for as long */
#define AGAIN 10              /* intervals without news after which it reports all the same */
#define REPORTS_BEFORE_JOIN 3 /* reports without an answer before a join is sent again */
#define FADE_STEPS 64         /* steps in a half-life */

enum { ACK = 1, UNAVAILABLE, WRONG_PARENT, STALE, SHRUNK, EQUIVOCATION, SCHEMA = 8 };

/* splitmix64 (Steele, Lea, Flood, 2014): from a seed of true random bits, numbers for names. */
static uint64_t draw(submerge_leaf *leaf) {
    uint64_t x = leaf->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static double chance(submerge_leaf *leaf) {
    return (double)(draw(leaf) >> 11) / 9007199254740992.0;
}

/* Make a first try due; NEVER stops trying. */
static void try_at(submerge_leaf_retry *retry, double at) {
    retry->tries = 0;
    retry->at = at;
}

/* Full jitter below a ceiling that doubles, for ever. */
static void tried(submerge_leaf *leaf, submerge_leaf_retry *retry, double steady) {
    double cap = leaf->config.cap_s, ceiling = leaf->config.patience_s, wait;
    uint32_t i;
    for (i = 0; i < retry->tries && ceiling < cap; i++)
        ceiling *= 2;
    wait = leaf->config.patience_s + (ceiling < cap ? ceiling : cap) * chance(leaf);
    retry->tries++;
    retry->tried_at = steady;
    retry->at = steady + (wait < cap ? wait : cap);
}

static int joining(const submerge_leaf *leaf) {
    return leaf->join.at < NEVER;
}

static void rejoin(submerge_leaf *leaf) {
    if (!joining(leaf)) try_at(&leaf->join, leaf->join.tried_at + leaf->config.patience_s);
}

/* Let an interval pass before the next report. */
static void delay(submerge_leaf *leaf, double steady) {
    leaf->report_at = steady + leaf->config.report_every_s * (0.8 + 0.4 * chance(leaf));
}

static int same(submerge_leaf_incarnation one, submerge_leaf_incarnation other) {
    return one.created_ms == other.created_ms && one.nonce == other.nonce;
}

static uint64_t generated(const submerge_leaf *leaf) {
    return leaf->learnt + leaf->withheld + leaf->lost;
}

static void draw_incarnation(submerge_leaf *leaf, const submerge_leaf_now *now) {
    uint64_t wall_ms = now->wall_s > 0 && now->wall_s < 1e15 ? (uint64_t)(now->wall_s * 1000) : 0;
    uint64_t created = wall_ms > leaf->floor_ms + 1 ? wall_ms : leaf->floor_ms + 1;
    leaf->incarnation.created_ms = created < LATEST ? created : LATEST;
    leaf->incarnation.nonce = draw(leaf) >> 1;
}

/* Start an incarnation, from zero; it has to join before it may report. */
static void begin(submerge_leaf *leaf, uint64_t lost, const submerge_leaf_now *now) {
    draw_incarnation(leaf, now);
    memset(&leaf->sums, 0, sizeof leaf->sums);
    leaf->faded_at = now->steady_s;
    leaf->joined = leaf->forced = leaf->asked_again = 0;
    leaf->seq = leaf->acknowledged = leaf->pending = leaf->pending_rows = 0;
    leaf->learnt = leaf->withheld = leaf->delivered = leaf->built = 0;
    leaf->lost = lost < READINGS ? lost : READINGS;
    leaf->built_at = NEVER;
    leaf->alarm_news = leaf->scorer && leaf->scorer->open;
    leaf->join.tried_at = leaf->wait.tried_at = -NEVER;
    try_at(&leaf->wait, NEVER);
    try_at(&leaf->join, -NEVER);
    delay(leaf, now->steady_s);
}

/* End the incarnation; the next one declares what this one could not deliver. */
static void end(submerge_leaf *leaf, uint64_t floor_ms, const submerge_leaf_now *now) {
    uint64_t rows = generated(leaf);
    if (floor_ms > leaf->floor_ms) leaf->floor_ms = floor_ms < LATEST ? floor_ms : LATEST - 1;
    begin(leaf, rows > leaf->delivered ? rows - leaf->delivered : 0, now);
}

int submerge_leaf_start(submerge_leaf *leaf, const submerge_leaf_config *config,
                        submerge_leaf_scorer *scorer, uint64_t seed, const submerge_leaf_now *now) {
    if (config->schema->dim < 1 || config->schema->dim > SUBMERGE_LEAF_CHANNELS)
        return SUBMERGE_LEAF_UNUSABLE;
    memset(leaf, 0, sizeof *leaf);
    leaf->config = *config;
    if (!(config->report_every_s > 0)) leaf->config.report_every_s = 300;
    if (!(config->patience_s > 0)) leaf->config.patience_s = 10;
    if (!(config->cap_s > 0)) leaf->config.cap_s = 300;
    if (!config->min_rows) leaf->config.min_rows = 1;
    if (!config->min_new_rows) leaf->config.min_new_rows = 1;
    if (!(config->false_alarms_per_s > 0)) leaf->config.false_alarms_per_s = 1 / 604800.0;
    if (!(config->withhold_s > 0)) leaf->config.withhold_s = 86400;
    leaf->scorer = scorer;
    leaf->random = seed;
    leaf->silent_until = leaf->contradicted_at = -NEVER;
    if (scorer) memset(scorer, 0, sizeof *scorer);
    begin(leaf, 0, now);
    return 0;
}

static void fade(submerge_leaf *leaf, double steady, double least_s) {
    double half_life = leaf->config.schema->half_life_s, passed = steady - leaf->faded_at;
    if (!(half_life > 0) || !(passed > least_s)) return;
    /* 2^-1000 of a reading is still a number. */
    passed = passed < 1000 * half_life ? passed / half_life : 1000;
    leaf_sums_fade(&leaf->sums, leaf->config.schema->dim, leaf_exp2(-passed));
    leaf->faded_at = steady;
}

submerge_leaf_fate submerge_leaf_learn(submerge_leaf *leaf, const double *row,
                                       submerge_leaf_score *score, const submerge_leaf_now *now) {
    double scaled[SUBMERGE_LEAF_CHANNELS];
    const submerge_leaf_schema *schema = leaf->config.schema;
    submerge_leaf_score unused;
    submerge_leaf_fate fate = SUBMERGE_LEAF_LEARNT;
    int i;
    score = score ? score : &unused;
    memset(score, 0, sizeof *score);
    for (i = 0; i < schema->dim; i++) {
        scaled[i] = (row[i] - schema->offset[i]) / schema->scale[i];
        if (scaled[i] != scaled[i]) fate = SUBMERGE_LEAF_GAP;
        else if (!(scaled[i] < LARGEST_SCALED && scaled[i] > -LARGEST_SCALED) && !fate)
            fate = SUBMERGE_LEAF_TOO_LARGE;
    }
    if (!fate && leaf->scorer && leaf_score_row(leaf, scaled, row, score, now))
        fate = SUBMERGE_LEAF_ALARMED;
    if (!fate && leaf->paused) fate = SUBMERGE_LEAF_PAUSED;
    leaf->lifetime++;
    if (fate) return leaf->withheld++, fate;
    fade(leaf, now->steady_s, schema->half_life_s / FADE_STEPS);
    leaf_sums_learn(&leaf->sums, schema->dim, schema->center, scaled);
    leaf->learnt++;
    return fate;
}

/* The header of a message, and what answers have beside it. */
typedef struct {
    uint64_t version, seq, reason, newest, floor_ms, boot, top, whole, unknown;
    leaf_reader node, group, schema;
    submerge_leaf_incarnation incarnation, pinned;
    int has_pinned;
} letter;

static submerge_leaf_incarnation read_incarnation(leaf_reader reader, int *bad) {
    submerge_leaf_incarnation found = {0, 0};
    leaf_field field;
    while (leaf_next(&reader, &field)) {
        if (field.number == 1 && field.wire == 0) found.created_ms = field.value;
        if (field.number == 2 && field.wire == 1) found.nonce = field.value;
    }
    *bad |= reader.bad || found.created_ms > LATEST;
    return found;
}

static void read_header(leaf_reader reader, letter *into, int *bad) {
    uint64_t unknown;
    leaf_field field;
    while (leaf_next(&reader, &field)) {
        if (field.wire == 0)
            *(field.number == 1 ? &into->version : field.number == 6 ? &into->seq : &unknown) =
                field.value;
        else if (field.number == 3) into->node = field.content;
        else if (field.number == 4) into->group = field.content;
        else if (field.number == 5) into->incarnation = read_incarnation(field.content, bad);
    }
    *bad |= reader.bad || into->version != 1 || into->seq > MOST;
}

static int take_joined(submerge_leaf *leaf, const letter *from, const submerge_leaf_now *now) {
    /* Only the answer to the pending join: an earlier one may name a dead parent. */
    if (!joining(leaf) || !leaf->join.tries) return SUBMERGE_LEAF_FOREIGN;
    if (from->reason == STALE && leaf->joined)
        return end(leaf, from->floor_ms, now), SUBMERGE_LEAF_REFUSED;
    if (from->reason == STALE) { /* no node knows it by this name yet: it takes another */
        leaf->floor_ms = from->floor_ms < LATEST ? from->floor_ms : LATEST - 1;
        draw_incarnation(leaf, now);
        try_at(&leaf->join, NEVER);
        rejoin(leaf);
        return SUBMERGE_LEAF_REFUSED;
    }
    if (from->reason != ACK || !from->has_pinned || !from->whole) return SUBMERGE_LEAF_REFUSED;
    if (!leaf_is(&from->schema, leaf->config.schema->text))
        return SUBMERGE_LEAF_UNUSABLE; /* the fleet has another schema by now */
    /* To one incarnation for ever, but from a root that is gone to the root in its place. Or the
       parent holds later reports than this incarnation has sent: then another process has. */
    if ((leaf->joined && !same(leaf->pinned, from->pinned) && !(leaf->top && from->top)) ||
        from->seq > leaf->seq)
        return end(leaf, 0, now), SUBMERGE_LEAF_TAKEN;
    leaf->pinned = from->pinned;
    leaf->top = from->top != 0;
    leaf->joined = 1;
    try_at(&leaf->join, NEVER);
    if (from->seq < leaf->acknowledged) { /* the parent is a copy from before */
        leaf->delivered = 0;
        leaf->forced = 1;
    }
    leaf->acknowledged = from->seq < leaf->acknowledged ? from->seq : leaf->acknowledged;
    if (leaf->pending) leaf->wait.at = -NEVER;
    return SUBMERGE_LEAF_TAKEN;
}

static int take_answer(submerge_leaf *leaf, const letter *from, const submerge_leaf_now *now) {
    if (!leaf->joined || !from->has_pinned || !same(from->pinned, leaf->pinned)) {
        if (from->reason == WRONG_PARENT) rejoin(leaf);
        return SUBMERGE_LEAF_FOREIGN;
    }
    if (from->reason == ACK) {
        if (from->newest > leaf->seq) return SUBMERGE_LEAF_FOREIGN;
        if (from->newest > leaf->acknowledged) leaf->acknowledged = from->newest;
        if (leaf->pending && from->newest >= leaf->pending) {
            leaf->pending = 0;
            leaf->delivered = leaf->pending_rows;
            try_at(&leaf->wait, NEVER);
        }
        return SUBMERGE_LEAF_TAKEN;
    }
    if (from->reason == STALE || from->reason == SHRUNK || from->reason == EQUIVOCATION)
        end(leaf, from->floor_ms, now);
    if (from->reason == SHRUNK || from->reason == EQUIVOCATION) {
        /* Once may be chance, twice is a copy of this device. */
        if (now->steady_s - leaf->contradicted_at < TWIN_S)
            leaf->silent_until = now->steady_s + TWIN_S;
        leaf->contradicted_at = now->steady_s;
    }
    if (from->reason == SCHEMA) rejoin(leaf);
    return SUBMERGE_LEAF_REFUSED; /* of other reasons the back-off continues */
}

static int take_hello(submerge_leaf *leaf, const letter *from, const submerge_leaf_now *now) {
    int other = !leaf->joined || !same(from->incarnation, leaf->pinned);
    int first = !leaf->boot;
    if (!leaf_is(&from->node, leaf->config.parent)) return SUBMERGE_LEAF_FOREIGN;
    if (from->boot == leaf->boot && !first && !other) return SUBMERGE_LEAF_TAKEN;
    leaf->boot = from->boot;
    /* A link that opens brings the first hello and the first join. */
    if (!(first && joining(leaf) && leaf->join.tries == 1)) {
        double at = now->steady_s + leaf->config.patience_s * chance(leaf);
        try_at(&leaf->join, leaf->join.at < at ? leaf->join.at : at);
    }
    return SUBMERGE_LEAF_TAKEN;
}

/* What an operator wants: learning paused or not, and verdicts on the alarm. */
static int read_desired(submerge_leaf *leaf, leaf_reader reader, int apply) {
    uint64_t number = 0;
    leaf_reader again = reader;
    leaf_field field;
    int mine = 0, paused = -1;
    while (leaf_next(&reader, &field)) {
        if (field.number == 1 && field.wire == 2) mine = leaf_is(&field.content, leaf->config.node);
        if (field.number == 2 && field.wire == 0) number = field.value;
        if (field.number == 3 && field.wire == 0) paused = field.value != 0;
    }
    if (reader.bad || !apply || !mine || number <= leaf->desired || number > MOST)
        return !reader.bad;
    leaf->desired = number;
    leaf->paused = paused >= 0 ? paused : leaf->paused;
    leaf->alarm_news = 1;
    leaf->report_at = -NEVER;
    while (leaf_next(&again, &field))
        if (field.number == 4 && field.wire == 2) {
            leaf_reader verdict = field.content;
            uint64_t alarm = 0, accept = 0;
            while (leaf_next(&verdict, &field)) {
                alarm = field.number == 1 ? field.value : alarm;
                accept = field.number == 2 ? field.value : accept;
            }
            if (leaf->scorer && alarm && leaf->scorer->number == alarm)
                leaf->scorer->verdict = accept ? 1 : 2;
        }
    return 1;
}

/* Where each kind of message has its fields; 0 where it has none. */
static const struct {
    int reason, pinned, top, newest, floor, schema, whole, desired;
} places[] = {
    {2, 4, 5, 0, 6, 7, 9, 0},  /* joined */
    {2, 4, 5, 6, 9, 0, 0, 10}, /* answer */
    {0, 0, 2, 0, 0, 0, 0, 0},  /* hello */
    {0, 0, 0, 0, 0, 3, 0, 0},  /* model */
};

int submerge_leaf_receive(submerge_leaf *leaf, submerge_leaf_kind kind, const uint8_t *data,
                          size_t size, const submerge_leaf_now *now) {
    leaf_reader reader = {data, data + size, 0}, body;
    letter from = {0};
    leaf_field field;
    int which = (int)kind - SUBMERGE_LEAF_JOINED, bad = 0, taken;
    if (which < 0 || kind > SUBMERGE_LEAF_MODEL) return SUBMERGE_LEAF_UNREADABLE;
    if (kind >= SUBMERGE_LEAF_HELLO) {
        /* Both come within a message of their own: hello is field 1 of it, a model field 2. */
        if (!leaf_next(&reader, &field) || field.number != which - 1 || field.wire != 2 ||
            reader.at != reader.end)
            return SUBMERGE_LEAF_UNREADABLE;
        reader = field.content;
    }
    body = reader;
    while (leaf_next(&reader, &field)) {
        const int number = field.number;
        if (field.wire == 0)
            *(number == places[which].reason   ? &from.reason
              : number == places[which].top    ? &from.top
              : number == places[which].newest ? &from.newest
              : number == places[which].floor  ? &from.floor_ms
              : number == places[which].whole  ? &from.whole
                                               : &from.unknown) = field.value;
        else if (number == 1 && field.wire == 2) read_header(field.content, &from, &bad);
        else if (number == 3 && field.wire == 1)
            from.boot = field.value; /* of a hello */
        else if (number == places[which].schema) from.schema = field.content;
        else if (number == places[which].desired) bad |= !read_desired(leaf, field.content, 0);
        else if (number == places[which].pinned) {
            from.pinned = read_incarnation(field.content, &bad);
            from.has_pinned = 1;
        }
    }
    if (bad || reader.bad || from.version != 1 || from.newest > MOST || from.floor_ms > MOST)
        return SUBMERGE_LEAF_UNREADABLE;
    if (kind == SUBMERGE_LEAF_HELLO) return take_hello(leaf, &from, now);
    if (!leaf_is(&from.group, leaf->config.group)) return SUBMERGE_LEAF_UNREADABLE;
    if (kind == SUBMERGE_LEAF_MODEL) {
        if (leaf_is(&from.schema, leaf->config.schema->text))
            return leaf->scorer ? leaf_take_model(leaf, body) : SUBMERGE_LEAF_OLD;
        rejoin(leaf); /* the fleet may have another schema by now */
        return SUBMERGE_LEAF_UNUSABLE;
    }
    if (!leaf_is(&from.node, leaf->config.node) || !same(from.incarnation, leaf->incarnation))
        return SUBMERGE_LEAF_FOREIGN;
    if (kind == SUBMERGE_LEAF_JOINED) return take_joined(leaf, &from, now);
    taken = take_answer(leaf, &from, now);
    while (taken == SUBMERGE_LEAF_TAKEN && leaf_next(&body, &field))
        if (field.number == 10 && field.wire == 2) read_desired(leaf, field.content, 1);
    return taken;
}

static void put_incarnation(leaf_writer *writer, int number, submerge_leaf_incarnation value) {
    size_t opened = leaf_open(writer, number);
    leaf_put_number(writer, 1, value.created_ms);
    leaf_put_fixed(writer, 2, value.nonce);
    leaf_close(writer, opened);
}

static void put_header(const submerge_leaf *leaf, leaf_writer *writer, uint64_t seq) {
    size_t opened = leaf_open(writer, 1);
    leaf_put_number(writer, 1, 1);
    leaf_put_bytes(writer, 2, "\1", 1);
    leaf_put_text(writer, 3, leaf->config.node);
    leaf_put_text(writer, 4, leaf->config.group);
    put_incarnation(writer, 5, leaf->incarnation);
    leaf_put_number(writer, 6, seq);
    leaf_put_text(writer, 7, "submerge leaf 0.1");
    leaf_close(writer, opened);
}

/* Write n numbers as one field: `values`, with `add` where it is not NULL. */
static void put_doubles(leaf_writer *writer, int field, int n, const double *values,
                        const double *add) {
    int i;
    leaf_tag(writer, field, (size_t)(8 * n));
    for (i = 0; i < n; i++)
        leaf_put_eight(writer, leaf_bits(add ? values[i] + add[i] : values[i]));
}

static void put_sums(const submerge_leaf *leaf, leaf_writer *writer) {
    const submerge_leaf_sums *sums = &leaf->sums;
    const int dim = leaf->config.schema->dim;
    double energies[SUBMERGE_LEAF_CHANNELS], energy = 0, bound;
    size_t opened, numbers = (size_t)(dim * (dim + 1) / 2);
    uint8_t *work;
    int i;
    for (i = 0; i < dim; i++)
        energy += energies[i] = sums->scatter[leaf_place(dim, i, i)];
    opened = leaf_open(writer, 6);
    leaf_put_number(writer, 1, (uint64_t)dim);
    leaf_tag(writer, 2, 4 * numbers);
    /* The triangle is made where it will stand; the room behind it is free until then. */
    work = leaf_take(writer, 8 * numbers);
    if (!work) return;
    bound = leaf_triangle(sums, dim, energy, work);
    writer->size -= 4 * numbers;
    put_doubles(writer, 6, dim, sums->mean, sums->origin);
    leaf_put_double(writer, 7, sums->weight);
    leaf_put_double(writer, 8, energy);
    leaf_put_double(writer, 9, bound);
    put_doubles(writer, 11, dim, energies, NULL);
    leaf_put_number(writer, 12, 1);
    leaf_close(writer, opened);
}

static void put_report(submerge_leaf *leaf, leaf_writer *writer, const submerge_leaf_now *now) {
    size_t opened;
    put_header(leaf, writer, leaf->seq);
    put_incarnation(writer, 3, leaf->pinned);
    leaf_put_bytes(writer, 5, leaf->config.schema->fingerprint, 32);
    if (leaf->sums.weight > 1e-180) /* a summary that has faded to nothing is left out */
        put_sums(leaf, writer);
    opened = leaf_open(writer, 8);
    leaf_put_number(writer, 1, leaf->learnt < READINGS ? leaf->learnt : READINGS);
    leaf_put_number(writer, 2, leaf->withheld < READINGS ? leaf->withheld : READINGS);
    leaf_put_number(writer, 3, leaf->lost);
    leaf_close(writer, opened);
    leaf_put_double(writer, 9, now->wall_s);
    leaf_put_number(writer, 10, now->synced != 0);
    leaf_put_number(writer, 11, leaf->scorer ? leaf->scorer->version : 0);
    leaf_put_number(writer, 12, leaf->lifetime < MOST ? leaf->lifetime : MOST);
    if (leaf->scorer) leaf_put_alarms(leaf, writer);
    leaf_put_text(writer, 20, "leaf: exact moments");
}

static int has_news(const submerge_leaf *leaf) {
    uint32_t least = leaf->built ? leaf->config.min_new_rows : leaf->config.min_rows;
    return leaf->alarm_news || generated(leaf) - leaf->built >= least;
}

double submerge_leaf_wakes_at(const submerge_leaf *leaf) {
    double at = joining(leaf)    ? leaf->join.at
                : leaf->pending  ? leaf->wait.at
                : leaf->forced   ? -NEVER
                : has_news(leaf) ? leaf->report_at
                                 : leaf->built_at + AGAIN * leaf->config.report_every_s;
    return at > leaf->silent_until ? at : leaf->silent_until;
}

size_t submerge_leaf_send(submerge_leaf *leaf, uint8_t *out, size_t room, submerge_leaf_kind *kind,
                          const submerge_leaf_now *now) {
    leaf_writer writer = {out, 0, room, 0};
    double steady = now->steady_s;
    if (submerge_leaf_wakes_at(leaf) > steady) return 0;
    /* A join goes first where reports get no answer: it is small, and on a shared broker nobody
       answers a report for a store that is gone. */
    if (!joining(leaf) && leaf->pending && !leaf->asked_again && leaf->wait.tries &&
        leaf->wait.tries % REPORTS_BEFORE_JOIN == 0) {
        leaf->asked_again = 1;
        try_at(&leaf->join, -NEVER);
    }
    if (joining(leaf)) {
        put_header(leaf, &writer, leaf->seq);
        leaf_put_text(&writer, 4, leaf->config.schema->text);
        leaf_put_number(&writer, 5, leaf->joined ? 0 : leaf->learnt);
        *kind = SUBMERGE_LEAF_JOIN;
        tried(leaf, &leaf->join, steady);
        return writer.full ? 0 : writer.size;
    }
    fade(leaf, steady, 0);
    leaf->seq++;
    put_report(leaf, &writer, now);
    *kind = SUBMERGE_LEAF_REPORT;
    if (!leaf->pending) try_at(&leaf->wait, NEVER);
    leaf->pending = leaf->seq;
    leaf->pending_rows = leaf->built = generated(leaf);
    leaf->forced = leaf->alarm_news = leaf->asked_again = 0;
    leaf->built_at = steady;
    delay(leaf, steady);
    tried(leaf, &leaf->wait, steady);
    return writer.full ? 0 : writer.size;
}

void submerge_leaf_linked(submerge_leaf *leaf) {
    if (leaf->wait.at < NEVER) try_at(&leaf->wait, -NEVER);
    if (joining(leaf)) try_at(&leaf->join, -NEVER);
    else rejoin(leaf);
}

void submerge_leaf_flush(submerge_leaf *leaf) {
    leaf->forced = 1;
    if (leaf->pending) try_at(&leaf->wait, -NEVER);
    if (joining(leaf) && !leaf->join.tries) try_at(&leaf->join, -NEVER);
}
