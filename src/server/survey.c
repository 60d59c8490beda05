/* SPDX-License-Identifier: Apache-2.0 */
#include "server/survey.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#include <pthread.h>
#include <stdlib.h>

#define FRESH_FOR HF_SECONDS(1)
enum { REST = 10 }; /* asking may take this part of the time */

struct hf__survey {
    hf_client *client;     /* borrowed */
    pthread_mutex_t mutex; /* guards what follows */
    struct hf__measure *last;
    bool up;
    int64_t stale_at; /* monotonic us */
};

hf_code hf__survey_new(struct hf__survey **out, hf_client *client, hf_error *err)
{
    *out = hf__calloc(1, sizeof **out);
    if (!*out)
        return hf__nomem(err);
    (*out)->client = client;
    pthread_mutex_init(&(*out)->mutex, NULL);
    return HF_OK;
}

void hf__survey_free(struct hf__survey *survey)
{
    if (!survey)
        return;
    hf__measure_free(survey->last);
    pthread_mutex_destroy(&survey->mutex);
    free(survey);
}

static void refresh(struct hf__survey *survey, int64_t began)
{
    struct hf__measure *fresh = NULL;
    hf_error err = { 0 };
    struct hf__engine *engine = survey->client->engine;
    survey->up = hf__measure(engine, 0, &fresh, &err) == HF_OK;
    if (survey->up && hf__measure_mail(engine, fresh, &err) != HF_OK) {
        hf__measure_free(fresh);
        survey->up = false;
    }
    if (survey->up) {
        hf__measure_free(survey->last);
        survey->last = fresh;
    }
    int64_t now = hf__monotonic_us();
    int64_t rest = (now - began) * REST;
    survey->stale_at = now + (rest > FRESH_FOR ? rest : FRESH_FOR);
}

const struct hf__measure *hf__survey_look(struct hf__survey *survey, bool *up)
{
    pthread_mutex_lock(&survey->mutex);
    int64_t now = hf__monotonic_us();
    if (now >= survey->stale_at)
        refresh(survey, now);
    *up = survey->up;
    return survey->last;
}

void hf__survey_done(struct hf__survey *survey)
{
    pthread_mutex_unlock(&survey->mutex);
}
