/* One world per process, one life per seed: the store is opened once and emptied between seeds.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ids.h"
#include "kernel/chores.h"
#include "kernel/migrate.h"
#include "sim.h"
#include "store/sqlite.h"

#define BEGINNING INT64_C(1700000000000000) /* us since the epoch */
#define ROUNDS_MOST 3000                    /* in the calm end */

static const char *const workflows[SIM_WORKFLOWS] = { "sim.a", "sim.b", "sim.c", "sim.d",
                                                      "sim.function" };

const char *workflow_name(int index)
{
    return workflows[index];
}

/* ---- Chance and memory ---- */

int below(struct world *world, int limit)
{
    return (int)hf__random_below(&world->random, (uint64_t)limit);
}

bool chance(struct world *world, int percent)
{
    return below(world, 100) < percent;
}

static void out_of_memory(void)
{
    fprintf(stderr, "simulate: memory ran out\n");
    exit(2);
}

void *world_alloc(struct world *world, size_t size)
{
    void *memory = hf__arena_calloc(&world->arena, 1, size);
    if (!memory)
        out_of_memory();
    return memory;
}

char *world_printf(struct world *world, const char *fmt, ...)
{
    char text[8192];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    char *copy = hf__arena_strdup(&world->arena, text);
    if (!copy)
        out_of_memory();
    return copy;
}

struct known *known_of(struct world *world, hf_id id)
{
    struct known *known = hf__idmap_get(&world->by_id, id);
    if (known)
        return known;
    known = world_alloc(world, sizeof *known);
    known->id = id;
    known->name = world_printf(world, "r%d", world->run_count++);
    known->next = world->runs;
    world->runs = known;
    if (!hf__idmap_put(&world->by_id, id, known))
        out_of_memory();
    return known;
}

/* ---- The store ---- */

static void must(hf_code code, const hf_error *err)
{
    if (code == HF_OK)
        return;
    fprintf(stderr, "simulate: the store cannot be used: %s\n", err->message);
    exit(2);
}

static void run_sql(struct world *world, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(world->handle, sql, NULL, NULL, &message) == SQLITE_OK)
        return;
    fprintf(stderr, "simulate: %s\n", message);
    exit(2);
}

int64_t ask_number(struct world *world, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number = 0;
    if (sqlite3_prepare_v2(world->handle, sql, -1, &stmt, NULL) != SQLITE_OK) {
        fprintf(stderr, "simulate: %s\n", sqlite3_errmsg(world->handle));
        exit(2);
    }
    if (sqlite3_step(stmt) == SQLITE_ROW)
        number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

static int64_t read_clock(void *arg)
{
    const struct world *world = arg;
    return world->now;
}

static int32_t create_workflow(struct world *world, const char *name)
{
    hf_error err = { 0 };
    struct hf__table in, out;
    hf__table_init(&in, &world->arena, 2);
    hf__table_init(&out, &world->arena, 1);
    struct hf__cell *c = hf__table_add(&in);
    c[0] = hf__number(SIM_TENANT);
    c[1] = hf__text(name);
    must(hf__sqlite_driver.send(world->conn, HF__STMT_CREATE_WORKFLOW, &in, &out, &err), &err);
    must(hf__sqlite_driver.sync(world->conn, &err), &err);
    return (int32_t)hf__as_number(hf__table_row(&out, 0)[0]);
}

void world_open(struct world *world)
{
    hf_error err = { 0 };
    struct hf__clock clock = { .now = read_clock, .arg = world };
    const struct hf__driver *driver = &hf__sqlite_driver;
    world->now = BEGINNING;
    must(driver->open(&world->db, "sqlite::memory:", &clock, &err), &err);
    must(driver->connect(&world->conn, world->db, &err), &err);
    world->handle = world->db->memory_session.handle;
    must(hf__migrate(driver, world->conn, driver->migrations[driver->migration_count - 1].version,
                     &err),
         &err);
    for (int i = 0; i < SIM_WORKFLOWS; i++)
        world->lanes[i] = create_workflow(world, workflows[i]);
    world->lanes[SIM_WORKFLOWS] = create_workflow(world, HF__CHORE_CANCEL_CHILDREN);
    /* The checks ask by it, nobody else: where a statement compares the name, it would be planned anew for each name. */
    run_sql(world, "CREATE INDEX event_debounced ON event (data) WHERE name || '' = 'debounced'");
    faults_install(world);
    check_open(world);
}

void world_close(struct world *world)
{
    plays_end(world);
    check_close(world);
    for (int i = 0; i < SIM_MAX_NODES; i++)
        hf__flusher_free(&world->nodes[i].flusher);
    hf__sqlite_driver.disconnect(world->conn);
    hf__sqlite_driver.close(world->db);
    hf__idmap_free(&world->by_id);
    hf__arena_free(&world->arena);
}

void workflow_pause(struct world *world, int index, bool paused)
{
    char sql[100];
    world->paused[index] = paused;
    snprintf(sql, sizeof sql, "UPDATE workflow SET paused = %d WHERE lane = %d", paused,
             (int)world->lanes[index]);
    run_sql(world, sql);
}

/* ---- A seed ---- */

static void empty_store(struct world *world)
{
    run_sql(world,
            "BEGIN;"
            "UPDATE run SET status = 6, key = NULL; DELETE FROM run; DELETE FROM event;"
            "DELETE FROM signal; DELETE FROM task; DELETE FROM outbox;"
            "DELETE FROM dead_letter; DELETE FROM run_tag; UPDATE sqlite_sequence SET seq = 0;"
            "COMMIT");
}

static void draw_policies(struct world *world)
{
    char sql[400];
    for (int i = 0; i < SIM_WORKFLOWS; i++) {
        workflow_pause(world, i, false);
        int attempts =
            i == SIM_FUNCTION ? SIM_FUNCTION_ATTEMPTS + below(world, 8) : 1 + below(world, 4);
        int base = 1000 * (1 + below(world, 2000));
        int cap = 1000000 * (1 + below(world, 60));
        int lease = 1000000 * (1 + below(world, 30));
        const char *timeout = chance(world, 15) ? "40000000" : "NULL";
        snprintf(sql, sizeof sql,
                 "UPDATE workflow SET max_attempts = %d, retry_base = %d, retry_cap = %d, "
                 "lease = %d, timeout = %s WHERE lane = %d",
                 attempts, base, cap, lease, timeout, (int)world->lanes[i]);
        run_sql(world, sql);
    }
    world->max_running = chance(world, 50) ? 1 + below(world, 4) : 0;
    snprintf(sql, sizeof sql, "UPDATE workflow SET max_running = nullif(%d, 0) WHERE lane = %d",
             world->max_running, (int)world->lanes[0]);
    run_sql(world, sql);
}

/* Children's ids are made by the function layer, also from the seed. */
static void draw_ids(struct world *world, uint64_t seed)
{
    world->clock = (struct hf__clock){ .now = read_clock, .arg = world };
    hf__new_ids_follow(&world->clock, ~seed);
}

void world_begin(struct world *world, uint64_t seed)
{
    plays_end(world);
    hf__arena_reset(&world->arena);
    hf__idmap_free(&world->by_id);
    hf__idmap_init(&world->by_id);
    hf__random_seed(&world->random, seed);
    draw_ids(world, seed);
    faults_disarm(world);
    world->seed = seed;
    world->now = world->latest = BEGINNING;
    world->step = world->run_count = world->triggered = world->job_count = 0;
    world->calm = world->broken = false;
    world->runs = NULL;
    world->heads_of = -1;
    world->trace.count = 0;
    world->trace.hash = UINT64_C(14695981039346656037);
    empty_store(world);
    draw_policies(world);
    world->worker_count = 2 + below(world, 4);
    world->node_count = world->worker_count + 2;
    for (int i = 0; i < world->node_count; i++) {
        world->nodes[i].generation = 0;
        node_begin(world, &world->nodes[i], i, i < world->worker_count);
    }
}

/* ---- Time ---- */

static void advance(struct world *world)
{
    int dice = below(world, 1000);
    int64_t by;
    if (dice < 600)
        by = below(world, 50000);
    else if (dice < 880)
        by = below(world, 2000000);
    else if (dice < 960)
        by = HF_MILLISECONDS(below(world, 20000));
    else if (dice < 975)
        by = HF_MILLISECONDS(below(world, 120000));
    else if (dice < 978)
        by = HF_HOURS(1 + below(world, 5));
    else
        by = dice < 990 ? -HF_MILLISECONDS(below(world, 10000)) : 0;
    world->now += by;
    if (world->now > world->latest)
        world->latest = world->now;
}

/* To the next time at which something is due, or to now: time has passed since the workers looked. */
static bool skip_to_next(struct world *world)
{
    int64_t next = next_due(world);
    if (next > world->now)
        world->now = next;
    if (next > world->latest)
        world->latest = next;
    return next != 0;
}

/* ---- Playing ---- */

static void wild_step(struct world *world)
{
    struct node *node = &world->nodes[below(world, world->node_count)];
    advance(world);
    if (node->asleep > 0)
        node->asleep--;
    else if (node->worker)
        worker_act(world, node);
    else
        client_act(world, node);
}

/* The runs that have not ended, for a person to read. */
static const char *unfinished(struct world *world)
{
    sqlite3_stmt *stmt = NULL;
    const char *list = "";
    sqlite3_prepare_v2(
        world->handle,
        "SELECT id, status, waiting_kind, wait_count, run_at, deleted_at IS NOT NULL "
        "FROM run WHERE status <= 3 ORDER BY id LIMIT 4",
        -1, &stmt, NULL);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        hf_id id;
        const unsigned char *kind = sqlite3_column_text(stmt, 2);
        memcpy(id.bytes, sqlite3_column_blob(stmt, 0), sizeof id.bytes);
        list = world_printf(world, "%s%s is %s for %s (%d), run_at %+lld us%s; ", list,
                            known_of(world, id)->name,
                            hf_status_name((hf_status)sqlite3_column_int(stmt, 1)),
                            kind ? (const char *)kind : "nothing", sqlite3_column_int(stmt, 3),
                            (long long)(sqlite3_column_int64(stmt, 4) - world->now),
                            sqlite3_column_int(stmt, 5) ? ", deleted" : "");
    }
    sqlite3_finalize(stmt);
    return list;
}

/* Without faults and new work, everything must come to an end. */
static void come_to_rest(struct world *world)
{
    struct node *operator= & world->nodes[world->node_count - 1];
    world->calm = true;
    for (int i = 0; i < SIM_WORKFLOWS; i++)
        workflow_pause(world, i, false);
    for (int round = 0; round < ROUNDS_MOST && !world->broken; round++) {
        bool busy = false;
        world->step++;
        for (int i = world->worker_count; i < world->node_count; i++)
            while (world->nodes[i].first && !world->broken)
                node_flush(world, &world->nodes[i]);
        for (int i = 0; i < world->worker_count && !world->broken; i++)
            busy |= worker_exhaust(world, &world->nodes[i]);
        if (busy)
            continue;
        if (ask_number(world, "SELECT count(*) FROM run WHERE status <= 3") == 0)
            return;
        if (!skip_to_next(world) && !client_drive(world, operator))
            break;
    }
    if (!world->broken)
        breach(world, "runs do not end: %s", unfinished(world));
}

void world_play(struct world *world, int steps)
{
    for (world->step = 0; world->step < steps && !world->broken; world->step++)
        wild_step(world);
    if (!world->broken)
        check_everything(world);
    if (!world->broken)
        come_to_rest(world);
    if (!world->broken)
        check_everything(world);
    if (!world->broken)
        check_ended(world);
}
