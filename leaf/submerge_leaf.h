/*
 * A leaf of submerge: a node that learns on a microcontroller. docs/leaf.md says what it can.
 *
 * 1. A leaf is one struct. It takes no memory, reads no clock, and opens no connection: the host
 *    does. Calls for one leaf must not overlap.
 * 2. The host publishes what `submerge_leaf_send` writes, and hands over what comes. A message may
 *    be lost, late or doubled: a report holds all that the leaf has seen, and replaces the one
 *    before.
 * 3. What the leaf learns is in RAM alone. A restart is a new incarnation: what had not been
 *    reported is lost, what the parent holds stays counted.
 */
#ifndef SUBMERGE_LEAF_H
#define SUBMERGE_LEAF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most channels of a leaf, 1 to 32. RAM grows with its square. */
#ifndef SUBMERGE_LEAF_CHANNELS
#define SUBMERGE_LEAF_CHANNELS 32
#endif

#define SUBMERGE_LEAF_PAIRS (SUBMERGE_LEAF_CHANNELS * (SUBMERGE_LEAF_CHANNELS + 1) / 2)

/* Room for any report: its triangle is computed in it. A join takes the schema's text, and 512. */
#define SUBMERGE_LEAF_ROOM (8 * SUBMERGE_LEAF_PAIRS + 1280)

/* The time. `steady_s` never goes back; `wall_s` is Unix time, 0 where it is not known, and counts
   only if it is synchronized. */
typedef struct {
    double steady_s, wall_s;
    int synced;
} submerge_leaf_now;

/* What is subtracted from rows: a mean of all nodes, of each, or nothing. */
enum { SUBMERGE_LEAF_FLEET, SUBMERGE_LEAF_OWN, SUBMERGE_LEAF_NONE };

/* What the fleet calls a row. `schema_header.py` writes one. */
typedef struct {
    int dim, center;             /* channels; SUBMERGE_LEAF_FLEET, OWN or NONE */
    double half_life_s;          /* 0: readings never fade */
    const char *text;            /* canonical */
    const uint8_t *fingerprint;  /* 32 bytes, SHA-256 of the text */
    const char *const *channels; /* names, at most 100 bytes of each */
    const double *offset, *scale;
} submerge_leaf_schema;

/* What it points to stays where it is as long as the leaf lives. Numbers that are 0 stand for the
   default in brackets. */
typedef struct {
    const char *node, *group, *parent; /* names: 1 to 64 of A-Z a-z 0-9 . _ - */
    const submerge_leaf_schema *schema;
    double report_every_s;           /* [300] */
    double patience_s, cap_s;        /* for an answer [10]; longest wait between two tries [300] */
    uint32_t min_rows, min_new_rows; /* before the first report, and each later one [1] */
    double false_alarms_per_s;       /* at most [one a week] */
    double withhold_s;               /* how long an alarm keeps rows from being learnt [a day] */
} submerge_leaf_config;

typedef struct {
    uint64_t created_ms, nonce;
} submerge_leaf_incarnation;

/* Sums of rows, scaled, about a first one: weight, mean, and the scatter about the mean as an upper
   triangle, row by row. */
typedef struct {
    double weight;
    double origin[SUBMERGE_LEAF_CHANNELS], mean[SUBMERGE_LEAF_CHANNELS];
    double scatter[SUBMERGE_LEAF_PAIRS];
} submerge_leaf_sums;

/* A thing that is tried until it is answered. */
typedef struct {
    double at, tried_at; /* the next try, and the last; infinite and minus infinite for none */
    uint32_t tries;
} submerge_leaf_retry;

/* What scores rows by the fleet's model. A leaf without it only learns. */
typedef struct {
    uint64_t version;
    int ready, provisional;      /* there is a model; few blocks are behind the limit */
    double limit, calm, average; /* of the moving average; limit 0: none is known */
    uint32_t quiet, blocks;      /* rows since the average was high; maxima, as far as they count */
    int open, marked, verdict;   /* the alarm: provisional; accepted 1, rejected 2 */
    double since_s;              /* when it began, on the steady clock */
    double began_s, peaked_s, ended_s, worst;
    uint64_t number, raised_by, withheld;
    uint8_t top[3]; /* channels to blame, at its worst */
    double share[3], value[3], expected[3];
    double mean[SUBMERGE_LEAF_CHANNELS];
    double precision[SUBMERGE_LEAF_CHANNELS]; /* diagonal of the inverse covariance */
    double factor[SUBMERGE_LEAF_PAIRS];       /* R, upper, R'R the covariance */
} submerge_leaf_scorer;

typedef struct {
    submerge_leaf_config config; /* with its defaults */
    submerge_leaf_scorer *scorer;
    submerge_leaf_sums sums;
    double faded_at;
    uint64_t random;
    submerge_leaf_incarnation incarnation, pinned;
    int joined, top; /* pinned to a parent; which is a root */
    uint64_t seq, acknowledged, pending, floor_ms;
    uint64_t learnt, withheld, lost, lifetime;
    uint64_t pending_rows, delivered, built;
    submerge_leaf_retry join, wait;
    int asked_again, forced, alarm_news, paused;
    uint64_t boot, desired;
    double built_at, report_at, silent_until, contradicted_at;
} submerge_leaf;

/* Checked by the compiler: an array of a negative size is an error. */
typedef char submerge_leaf_learns_in_8_kB[sizeof(submerge_leaf) <= 8192 ? 1 : -1];

/* Messages. With BASE for submerge/v1/{fleet}/{parent}, all at QoS 1, their topics are

       BASE/up/{node}/join/{group}     BASE/up/{node}/report/{group}, retained
       BASE/down/{node}/joined         BASE/down/{node}/answer
       BASE/hello                      BASE/model/{group}                              */
typedef enum {
    SUBMERGE_LEAF_JOIN, SUBMERGE_LEAF_REPORT, SUBMERGE_LEAF_JOINED,
    SUBMERGE_LEAF_ANSWER, SUBMERGE_LEAF_HELLO, SUBMERGE_LEAF_MODEL
} submerge_leaf_kind;

/* What became of a row: learnt, or withheld. A gap is a reading that is NaN. */
typedef enum {
    SUBMERGE_LEAF_LEARNT, SUBMERGE_LEAF_GAP, SUBMERGE_LEAF_TOO_LARGE,
    SUBMERGE_LEAF_ALARMED, SUBMERGE_LEAF_PAUSED
} submerge_leaf_fate;

/* What the scorer says of a row: `scored` 0 while there is no model, or no mean of its own. */
typedef struct {
    int scored, alarm;
    double distance; /* squared, Mahalanobis */
    double average;  /* its moving average, which is compared with the limit */
} submerge_leaf_score;

/* What became of a message: 0 it was read; else why it was ignored. */
enum {
    SUBMERGE_LEAF_TAKEN,
    SUBMERGE_LEAF_UNREADABLE, /* no message of version 1, or of another group */
    SUBMERGE_LEAF_FOREIGN,    /* for another node or incarnation, or of another parent */
    SUBMERGE_LEAF_REFUSED,    /* the parent refuses the leaf: look at its log */
    SUBMERGE_LEAF_OLD,        /* a model that is not newer, or of another schema */
    SUBMERGE_LEAF_UNUSABLE    /* another schema, or a model that a leaf cannot score by */
};

/* Begin, with nothing learnt. `seed`: 64 bits from the host's source of true random numbers, new at
   each start: the incarnation is named by them. `scorer` may be NULL. Returns 0, or
   SUBMERGE_LEAF_UNUSABLE for a schema of more channels than there is room for. */
int submerge_leaf_start(submerge_leaf *leaf, const submerge_leaf_config *config,
                        submerge_leaf_scorer *scorer, uint64_t seed, const submerge_leaf_now *now);

/* Score a row of readings in their units, and learn it. `score` may be NULL. */
submerge_leaf_fate submerge_leaf_learn(submerge_leaf *leaf, const double *row,
                                       submerge_leaf_score *score, const submerge_leaf_now *now);

/* Take in a message that came. */
int submerge_leaf_receive(submerge_leaf *leaf, submerge_leaf_kind kind, const uint8_t *data,
                          size_t size, const submerge_leaf_now *now);

/* Write the message that is due; returns its bytes, 0 for none. What does not fit into `room` bytes
   is not sent, and tried again later. */
size_t submerge_leaf_send(submerge_leaf *leaf, uint8_t *out, size_t room, submerge_leaf_kind *kind,
                          const submerge_leaf_now *now);

/* When `submerge_leaf_send` may have a message, on the steady clock. */
double submerge_leaf_wakes_at(const submerge_leaf *leaf);

/* The connection has opened (again). */
void submerge_leaf_linked(submerge_leaf *leaf);

/* Report what there is, at once: before the device sleeps or ends. */
void submerge_leaf_flush(submerge_leaf *leaf);

#ifdef __cplusplus
}
#endif

#endif
