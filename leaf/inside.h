/* What the leaf's files share, and nobody else uses. */
#ifndef SUBMERGE_LEAF_INSIDE_H
#define SUBMERGE_LEAF_INSIDE_H

#include "submerge_leaf.h"

#include <math.h>
#include <string.h>

#define LARGEST_SCALED 1e12          /* a larger number is no reading */
#define LATEST (UINT64_C(1) << 61)   /* latest creation time that is believed, ms */
#define MOST (UINT64_C(1) << 62)     /* largest of most numbers in a message */
#define READINGS (UINT64_C(1) << 53) /* most readings in a message */

/* wire.c: protobuf, read in place and written in one pass */
typedef struct {
    const uint8_t *at, *end;
    int bad; /* the bytes are no message: nothing more is read */
} leaf_reader;

typedef struct {
    int number, wire;
    uint64_t value;      /* of a varint, or of fixed numbers */
    leaf_reader content; /* of bytes, text and messages */
} leaf_field;

typedef struct {
    uint8_t *out;
    size_t size, room;
    int full;
} leaf_writer;

int leaf_next(leaf_reader *reader, leaf_field *field);
double leaf_double(const leaf_field *field);
double leaf_double_at(const leaf_reader *content, size_t index);
float leaf_float_at(const leaf_reader *content, size_t index);
size_t leaf_length(const leaf_reader *content);
int leaf_is(const leaf_reader *content, const char *text);
uint64_t leaf_varint(leaf_reader *reader);

void leaf_put_number(leaf_writer *writer, int field, uint64_t value);
void leaf_put_fixed(leaf_writer *writer, int field, uint64_t value);
void leaf_put_eight(leaf_writer *writer, uint64_t value);
uint64_t leaf_bits(double value);
void leaf_put_double(leaf_writer *writer, int field, double value);
void leaf_put_bytes(leaf_writer *writer, int field, const void *bytes, size_t size);
void leaf_put_text(leaf_writer *writer, int field, const char *text);
size_t leaf_open(leaf_writer *writer, int field);
void leaf_close(leaf_writer *writer, size_t opened);
void leaf_tag(leaf_writer *writer, int field, size_t size);
uint8_t *leaf_take(leaf_writer *writer, size_t size);

/* sums.c */
size_t leaf_place(int dim, int row, int column);
void leaf_sums_learn(submerge_leaf_sums *sums, int dim, int center, const double *row);
void leaf_sums_fade(submerge_leaf_sums *sums, int dim, double factor);
double leaf_triangle(const submerge_leaf_sums *sums, int dim, double energy, uint8_t *work);
double leaf_exp2(double x);

/* scorer.c */
int leaf_take_model(submerge_leaf *leaf, leaf_reader model);
int leaf_score_row(submerge_leaf *leaf, const double *scaled, const double *row,
                   submerge_leaf_score *score, const submerge_leaf_now *now);
void leaf_put_alarms(const submerge_leaf *leaf, leaf_writer *writer);

#endif
