/* Runs a fuzz target over seeded mutations, without libFuzzer: [iterations] [seed].
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "util/random.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_SIZE = 512, MAX_MUTATIONS = 6 };

struct input {
    uint8_t bytes[MAX_SIZE];
    size_t size;
};

static size_t count_seeds(void)
{
    size_t count = 0;
    while (fuzz_seeds[count])
        count++;
    return count;
}

static void pick_seed(struct hf__random *random, struct input *out)
{
    const char *text = fuzz_seeds[hf__random_below(random, count_seeds())];
    out->size = strnlen(text, MAX_SIZE);
    memcpy(out->bytes, text, out->size);
}

/* Any place in the input, its end included. */
static size_t pick_place(struct hf__random *random, const struct input *input)
{
    return (size_t)hf__random_below(random, input->size + 1);
}

static void replace(struct input *input, size_t at, size_t old_size, const uint8_t *bytes,
                    size_t size)
{
    size_t tail = input->size - at - old_size;
    if (input->size - old_size + size > MAX_SIZE)
        return;
    memmove(input->bytes + at + size, input->bytes + at + old_size, tail);
    memmove(input->bytes + at, bytes, size);
    input->size = at + size + tail;
}

static void splice_from_another_seed(struct hf__random *random, struct input *input)
{
    struct input other;
    pick_seed(random, &other);
    size_t start = pick_place(random, &other);
    size_t size = (size_t)hf__random_below(random, other.size - start + 1);
    replace(input, pick_place(random, input), 0, other.bytes + start, size);
}

static void repeat_a_piece(struct hf__random *random, struct input *input)
{
    struct input copy = *input;
    size_t start = pick_place(random, &copy);
    size_t size = (size_t)hf__random_below(random, copy.size - start + 1);
    for (uint64_t times = hf__random_below(random, 8); times > 0; times--)
        replace(input, start, 0, copy.bytes + start, size);
}

static void remove_a_piece(struct hf__random *random, struct input *input)
{
    size_t start = pick_place(random, input);
    size_t size = (size_t)hf__random_below(random, input->size - start + 1);
    replace(input, start, size, input->bytes, 0);
}

static void mutate(struct hf__random *random, struct input *input)
{
    uint8_t any = (uint8_t)hf__random_below(random, 256);
    size_t at = pick_place(random, input);
    switch (hf__random_below(random, 6)) {
    case 0: splice_from_another_seed(random, input); break;
    case 1: repeat_a_piece(random, input); break;
    case 2: remove_a_piece(random, input); break;
    case 3: replace(input, at, 0, &any, 1); break;
    case 4: replace(input, at, at < input->size, &any, 1); break;
    default:
        if (at < input->size)
            input->bytes[at] ^= (uint8_t)(1u << (any & 7));
    }
}

/* From memory of exactly its size, so that a sanitizer sees every read beyond it. */
static void run_target(const struct input *input)
{
    uint8_t *exact = malloc(input->size ? input->size : 1);
    FUZZ_EXPECT(exact);
    memcpy(exact, input->bytes, input->size);
    LLVMFuzzerTestOneInput(exact, input->size);
    free(exact);
}

int main(int argc, char **argv)
{
    uint64_t iterations = argc > 1 ? strtoull(argv[1], NULL, 10) : 50000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    struct hf__random random;
    hf__random_seed(&random, seed);
    printf("%" PRIu64 " iterations from seed %" PRIu64 "\n", iterations, seed);
    fflush(stdout);
    for (uint64_t i = 0; i < iterations; i++) {
        struct input input;
        pick_seed(&random, &input);
        for (uint64_t n = hf__random_below(&random, MAX_MUTATIONS + 1); n > 0; n--)
            mutate(&random, &input);
        run_target(&input);
    }
    return 0;
}
