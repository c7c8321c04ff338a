/* A leaf behind a pipe, for tests with sanitizers and on other processors. On stdin come frames: a
   letter, the length of what follows in 4 bytes, and that. `t` is the time, `r` rows, `f` a flush,
   and a digit a message of that kind. It answers with a byte, what became of it, a frame for each
   message that is due, and `.` with the ticks that the frame took. */
#include "submerge_leaf.h"

#include <stdio.h>
#include <string.h>

#include "schema.h"

#if defined(__arm__) && !defined(__linux__)
/* A bare Cortex-M: the table that it starts by, and SysTick, which counts down. */
extern void _start(void);
extern const uintptr_t vectors[2];
const uintptr_t vectors[2] __attribute__((section(".vectors"), used)) = {0x203f0000,
                                                                         (uintptr_t)_start};
static volatile uint32_t *const tick = (volatile uint32_t *)0xe000e010;
#define OPEN freopen("frames", "r", stdin), freopen("said", "w", stdout), tick[1] = ~0u, *tick = 5
#define TICKS tick[2]
#else
#define OPEN (void)0
#define TICKS 0u
#endif

static submerge_leaf leaf;
static submerge_leaf_scorer scorer;
static uint8_t in[1 << 16], out[SUBMERGE_LEAF_ROOM + 4096];

static void put(char letter, const void *data, uint32_t size) {
    putchar(letter);
    fwrite(&size, 4, 1, stdout);
    fwrite(data, 1, size, stdout);
}

int main(void) {
    submerge_leaf_config config = {"leaf", "g", "root", &schema, 0, 0, 0, 0, 0, 0, 0};
    submerge_leaf_now now = {0, 0, 1};
    submerge_leaf_kind kind;
    uint32_t size, ticks, i, width = 8u * (uint32_t)schema.dim;
    size_t length;
    int letter, fate;
    submerge_leaf_start(&leaf, &config, &scorer, 1, &now);
    OPEN;
    while ((letter = getchar()) != EOF) {
        if (fread(&size, 4, 1, stdin) != 1 || size > sizeof in || fread(in, 1, size, stdin) != size)
            return 1;
        fate = 0;
        ticks = TICKS;
        if (letter == 't' && size == 16) memcpy(&now, in, 16);
        for (i = 0; letter == 'r' && i + width <= size; i += width) {
            double row[SUBMERGE_LEAF_CHANNELS];
            memcpy(row, in + i, width);
            fate = submerge_leaf_learn(&leaf, row, NULL, &now);
        }
        if (letter == 'f') submerge_leaf_flush(&leaf);
        if (letter >= '0' && letter <= '9') { /* at the end of its memory, where sanitizers look */
            uint8_t *end = in + sizeof in - size;
            memmove(end, in, size);
            kind = (submerge_leaf_kind)(letter - '0');
            fate = submerge_leaf_receive(&leaf, kind, end, size, &now);
        }
        ticks = (ticks - TICKS) & 0xffffff;
        putchar(fate);
        while ((length = submerge_leaf_send(&leaf, out, sizeof out, &kind, &now)) != 0)
            put((char)('0' + kind), out, (uint32_t)length);
        put('.', &ticks, 4);
        fflush(stdout);
    }
    return 0;
}
