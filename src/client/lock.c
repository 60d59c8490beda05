/* Host locks: one holder across machines, expiring by themselves, fenced by a token that only rises.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>

#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/text.h"

#define MIN_TTL HF_MILLISECONDS(100)
#define LOOK_AGAIN HF_MILLISECONDS(200) /* for a lock that is released before it expires */

static hf_code check(const char *name, const char *holder, int64_t ttl, hf_error *err)
{
    hf_code code = hf__name_check("lock name", name ? name : "", err);
    if (code == HF_OK)
        code =
            hf__label_check("holder", holder ? holder : "", sizeof((hf_lock *)0)->holder - 1, err);
    if (code == HF_OK && (ttl < MIN_TTL || ttl > HF_DAYS(365)))
        code = hf__fail(err, HF_INVALID, "a lock's ttl must be between 100 ms and a year");
    return code;
}

static hf_code try_once(hf_client *client, hf_lock *lock, int64_t ttl, bool *taken, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_ACQUIRE_LOCK);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(lock->name);
    c[2] = hf__text(lock->holder);
    c[3] = hf__number(ttl);
    hf_code code = hf__ask_send(&ask, err);
    *taken = code == HF_OK && ask.out.nrows > 0;
    if (*taken) {
        lock->token = hf__as_number(hf__table_row(&ask.out, 0)[0]);
        lock->until = hf__as_number(hf__table_row(&ask.out, 0)[1]);
    }
    hf__ask_end(&ask);
    return code;
}

/* Who has it, for the message; and how long it lasts, for the sleep. */
static hf_code look(hf_client *client, const hf_lock *lock, char *holder, size_t size,
                    int64_t *left, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_READ_LOCK);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(lock->name);
    hf_code code = hf__ask_send(&ask, err);
    *left = 0;
    holder[0] = '\0';
    if (code == HF_OK && ask.out.nrows > 0) {
        const struct hf__cell *row = hf__table_row(&ask.out, 0);
        const char *name = hf__as_text(row[0]);
        strncpy(holder, name ? name : "", size - 1);
        holder[size - 1] = '\0';
        *left = hf__as_number(row[2]) - hf__as_number(row[3]);
    }
    hf__ask_end(&ask);
    return code;
}

static void pause_for(int64_t us)
{
    struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    nanosleep(&time, NULL);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

hf_code hf_lock_acquire(hf_client *client, hf_lock *out, const char *name, const char *holder,
                        int64_t ttl, int64_t wait, hf_error *err)
{
    hf_code code = check(name, holder, ttl, err);
    if (code != HF_OK)
        return code;
    *out = (hf_lock){ 0 };
    strcpy(out->name, name);
    strcpy(out->holder, holder);
    int64_t deadline = hf__monotonic_us() + wait;
    bool taken = false;
    for (;;) {
        char other[sizeof out->holder];
        int64_t left;
        code = try_once(client, out, ttl, &taken, err);
        if (code != HF_OK || taken)
            return code;
        code = look(client, out, other, sizeof other, &left, err);
        if (code != HF_OK)
            return code;
        int64_t patience = deadline - hf__monotonic_us();
        if (patience <= 0)
            return hf__fail(err, HF_LOCKED, "\"%s\" holds the lock \"%s\" for another %lld ms",
                            other, name, (long long)(left / 1000));
        if (left > 0)
            pause_for(least(least(left, LOOK_AGAIN), patience));
    }
}

hf_code hf_lock_renew(hf_client *client, hf_lock *lock, int64_t ttl, hf_error *err)
{
    hf_code code = check(lock->name, lock->holder, ttl, err);
    if (code != HF_OK)
        return code;
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_RENEW_LOCK);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(lock->name);
    c[2] = hf__number(lock->token);
    c[3] = hf__number(ttl);
    code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code =
            hf__fail(err, HF_STALE, "the lock \"%s\" was lost: somebody else took it", lock->name);
    if (code == HF_OK)
        lock->until = hf__as_number(hf__table_row(&ask.out, 0)[0]);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_lock_release(hf_client *client, const hf_lock *lock, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_RELEASE_LOCK);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(lock->name);
    c[2] = hf__number(lock->token);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code =
            hf__fail(err, HF_STALE, "the lock \"%s\" was lost: somebody else took it", lock->name);
    hf__ask_end(&ask);
    return code;
}
