/* simulate: plays seeds until one breaks an invariant.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"

#define PROCESSES 2
#define FAILURES_MOST 5 /* per process; then it stops */
#define AGAIN_EVERY 50  /* so often a seed is played twice and must do the same */

struct settings {
    uint64_t first;
    uint64_t seeds;
    int steps;
    bool verbose;
};

static const char usage[] =
    "usage: simulate [--seeds N] [--first SEED] [--steps N] [--verbose]\n"
    "\n"
    "Plays N seeds (default 500) of N steps (default 300) from SEED (default 1). A seed that "
    "breaks an\n"
    "invariant is told with the command that plays it again; --verbose shows its last actions.\n";

static uint64_t number(const char *text)
{
    char *end = NULL;
    uint64_t value = text ? strtoull(text, &end, 10) : 0;
    if (!text || *text == '\0' || *end != '\0') {
        fprintf(stderr, "simulate: a number is missing\n\n%s", usage);
        exit(2);
    }
    return value;
}

static struct settings read_settings(char **argv)
{
    struct settings s = { .first = 1, .seeds = 500, .steps = 300 };
    for (char **arg = argv + 1; *arg; arg++) {
        if (strcmp(*arg, "--verbose") == 0) {
            s.verbose = true;
        } else if (strcmp(*arg, "--seeds") == 0) {
            s.seeds = number(*++arg);
        } else if (strcmp(*arg, "--first") == 0) {
            s.first = number(*++arg);
        } else if (strcmp(*arg, "--steps") == 0) {
            s.steps = (int)number(*++arg);
        } else {
            fprintf(stderr, "simulate: unknown argument %s\n\n%s", *arg, usage);
            exit(2);
        }
    }
    return s;
}

static uint64_t play(struct world *world, uint64_t seed, int steps)
{
    world_begin(world, seed);
    world_play(world, steps);
    return world->trace.hash;
}

static bool play_seed(struct world *world, const struct settings *s, uint64_t seed)
{
    uint64_t hash = play(world, seed, s->steps);
    if (!world->broken && seed % AGAIN_EVERY == 0 && play(world, seed, s->steps) != hash)
        breach(world, "the seed played differently the second time");
    if (world->broken)
        report_breach(world, s->steps);
    else if (s->verbose)
        printf("seed %" PRIu64 ": %d runs, %d operations, trace %016" PRIx64 "\n", seed,
               world->run_count, world->job_count, hash);
    return !world->broken;
}

/* Nothing here has threads, nor asks how much memory SQLite takes. */
static void lighten_sqlite(void)
{
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 1200, 1000);
}

/* Every PROCESSES-th seed, beginning with `offset`. Returns the number that failed. */
static int play_share(const struct settings *s, uint64_t offset, uint64_t *playing)
{
    int failures = 0;
    struct world *world = calloc(1, sizeof *world);
    if (!world)
        return 1;
    world->verbose = s->verbose;
    lighten_sqlite();
    world_open(world);
    for (uint64_t i = offset; i < s->seeds && failures < FAILURES_MOST; i += PROCESSES)
        failures += !play_seed(world, s, *playing = s->first + i);
    world_close(world);
    free(world);
    return failures;
}

/* The number of failures that a process told, or 1 for one that died. */
static int wait_for(const struct settings *s, pid_t child, const uint64_t *seed)
{
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr,
            "seed %" PRIu64 ": the process died of signal %d\n"
            "to see it again: simulate --first %" PRIu64 " --seeds 1 --steps %d --verbose\n",
            *seed, WTERMSIG(status), *seed, s->steps);
    return 1;
}

int main(int argc, char **argv)
{
    (void)argc;
    struct settings s = read_settings(argv);
    pid_t children[PROCESSES];
    int failures = 0;
    uint64_t *playing = mmap(NULL, sizeof *playing * PROCESSES, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (playing == MAP_FAILED)
        return 2;
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            exit(play_share(&s, (uint64_t)i, &playing[i]));
    }
    for (int i = 0; i < PROCESSES; i++)
        failures += wait_for(&s, children[i], &playing[i]);
    printf("1..1\n%s %d - %" PRIu64 " seeds of %d steps from %" PRIu64 "\n",
           failures ? "not ok" : "ok", 1, s.seeds, s.steps, s.first);
    return failures > 0;
}
