/* Protobuf, as much as messages of version 1 need. Fields that are read point into the bytes. */
#include "inside.h"

/* Read a number of 7 bits a byte, the lowest first. */
uint64_t leaf_varint(leaf_reader *reader) {
    uint64_t value = 0;
    int shift;
    for (shift = 0; shift < 70 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    reader->bad = 1;
    return 0;
}

static uint64_t little(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    while (bytes--)
        value = value << 8 | at[bytes];
    return value;
}

/* Read the next field; 0 at the end, or if the bytes are bad. */
int leaf_next(leaf_reader *reader, leaf_field *field) {
    uint64_t tag, length;
    if (reader->bad || reader->at == reader->end) return 0;
    tag = leaf_varint(reader);
    memset(field, 0, sizeof *field);
    field->wire = (int)(tag & 7);
    if (reader->bad || tag >> 3 == 0 || tag >> 32) return reader->bad = 1, 0;
    field->number = (int)(tag >> 3);
    if (field->wire == 0) {
        field->value = leaf_varint(reader);
        return !reader->bad;
    }
    length = field->wire == 1 ? 8 : field->wire == 5 ? 4 : leaf_varint(reader);
    /* Groups are refused, as everywhere. */
    if (reader->bad || (field->wire != 1 && field->wire != 2 && field->wire != 5) ||
        length > (uint64_t)(reader->end - reader->at))
        return reader->bad = 1, 0;
    field->content.at = reader->at;
    field->content.end = reader->at += length;
    if (field->wire != 2) field->value = little(field->content.at, (int)length);
    return 1;
}

double leaf_double_at(const leaf_reader *content, size_t index) {
    uint64_t bits = little(content->at + 8 * index, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double leaf_double(const leaf_field *field) {
    return field->wire == 1 ? leaf_double_at(&field->content, 0) : 0;
}

float leaf_float_at(const leaf_reader *content, size_t index) {
    uint32_t bits = (uint32_t)little(content->at + 4 * index, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

size_t leaf_length(const leaf_reader *content) {
    return (size_t)(content->end - content->at);
}

int leaf_is(const leaf_reader *content, const char *text) {
    size_t length = strlen(text);
    return leaf_length(content) == length && memcmp(content->at, text, length) == 0;
}

/* Take room for bytes; NULL once something has not fitted. */
uint8_t *leaf_take(leaf_writer *writer, size_t size) {
    uint8_t *at = writer->out + writer->size;
    if (writer->full || size > writer->room - writer->size) return writer->full = 1, (uint8_t *)0;
    writer->size += size;
    return at;
}

static void put_varint(leaf_writer *writer, uint64_t value) {
    do {
        uint8_t *at = leaf_take(writer, 1);
        if (!at) return;
        *at = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
}

static void put_tag(leaf_writer *writer, int field, int wire) {
    put_varint(writer, (uint64_t)field << 3 | (uint64_t)wire);
}

/* Numbers that are 0 are left out, as protobuf does. */
void leaf_put_number(leaf_writer *writer, int field, uint64_t value) {
    if (!value) return;
    put_tag(writer, field, 0);
    put_varint(writer, value);
}

void leaf_put_eight(leaf_writer *writer, uint64_t value) {
    uint8_t *at = leaf_take(writer, 8);
    int i;
    for (i = 0; at && i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

void leaf_put_fixed(leaf_writer *writer, int field, uint64_t value) {
    if (!value) return;
    put_tag(writer, field, 1);
    leaf_put_eight(writer, value);
}

uint64_t leaf_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void leaf_put_double(leaf_writer *writer, int field, double value) {
    leaf_put_fixed(writer, field, leaf_bits(value));
}

/* Begin bytes of a known length; what follows is written into the room that `leaf_take` gives. */
void leaf_tag(leaf_writer *writer, int field, size_t size) {
    put_tag(writer, field, 2);
    put_varint(writer, size);
}

void leaf_put_bytes(leaf_writer *writer, int field, const void *bytes, size_t size) {
    uint8_t *at;
    leaf_tag(writer, field, size);
    at = leaf_take(writer, size);
    if (at) memcpy(at, bytes, size);
}

void leaf_put_text(leaf_writer *writer, int field, const char *text) {
    if (*text) leaf_put_bytes(writer, field, text, strlen(text));
}

/* Begin a message within; its length is written when it is closed. */
size_t leaf_open(leaf_writer *writer, int field) {
    put_tag(writer, field, 2);
    return writer->size;
}

void leaf_close(leaf_writer *writer, size_t opened) {
    size_t length = writer->size - opened, digits = 1, rest;
    uint8_t *end;
    for (rest = length; rest > 0x7f; rest >>= 7)
        digits++;
    end = leaf_take(writer, digits);
    if (!end) return;
    memmove(writer->out + opened + digits, writer->out + opened, length);
    writer->size = opened;
    put_varint(writer, length);
    writer->size = opened + digits + length;
}
