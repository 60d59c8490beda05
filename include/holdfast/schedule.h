/* Schedules: runs that start by the clock. A schedule belongs to its tenant and fires as long as any worker of the
 * tenant lives, whatever that worker serves; each due time starts one run, whose key is "schedule:NAME:TIME".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_SCHEDULE_H
#define HOLDFAST_SCHEDULE_H

#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What happens at a due time while the run that the schedule started last has not finished. */
typedef enum hf_overlap {
    HF_OVERLAP_SKIP,  /* this due time starts nothing */
    HF_OVERLAP_ALLOW, /* both run */
    HF_OVERLAP_QUEUE, /* it starts when the other has ended; at most 100 wait, more are skipped */
    HF_OVERLAP_CANCEL /* the other is cancelled */
} hf_overlap;

/* What happens to due times that passed while no worker lived or the schedule was paused. */
typedef enum hf_catch_up {
    HF_CATCH_UP_ONE,  /* the latest of them fires */
    HF_CATCH_UP_NONE, /* none does; what is less than a minute late is not missed */
    HF_CATCH_UP_ALL   /* each fires, in order */
} hf_catch_up;

HF_PUBLIC const char *hf_overlap_name(hf_overlap overlap);
HF_PUBLIC bool hf_overlap_parse(const char *name, hf_overlap *out) HF_MUST_CHECK;
HF_PUBLIC const char *hf_catch_up_name(hf_catch_up catch_up);
HF_PUBLIC bool hf_catch_up_parse(const char *name, hf_catch_up *out) HF_MUST_CHECK;

typedef struct hf_schedule_spec {
    int version;      /* HF_SCHEDULE_VERSION */
    const char *name; /* unique in the tenant */
    /* "M H DAY MONTH WEEKDAY", the same with seconds first, "@daily", or "every 15m". */
    const char *cron;
    const char *timezone; /* IANA name; NULL: UTC */
    const char *workflow; /* what is started; must exist */
    const char *input;    /* JSON; NULL means null */
    hf_overlap overlap;
    hf_catch_up catch_up;
    int priority; /* of the started runs */
    const char *const *tags;
    size_t tag_count;
} hf_schedule_spec;

#define HF_SCHEDULE_VERSION 1
#define HF_SCHEDULE_INIT                                                                           \
    {                                                                                              \
        HF_SCHEDULE_VERSION, NULL, NULL, NULL, NULL, NULL, HF_OVERLAP_SKIP, HF_CATCH_UP_ONE, 0,    \
            NULL, 0                                                                                \
    }

typedef struct hf_schedule {
    const char *name;
    const char *cron;
    const char *timezone;
    const char *workflow;
    const char *input; /* JSON */
    const char *overlap;
    const char *catch_up;
    int priority;
    const char *tags; /* JSON array of strings; NULL: none */
    bool paused;
    hf_status status; /* of its own run; a finished one no longer fires */
    hf_id run;        /* its own run, of the workflow "holdfast.schedule" */
    int64_t next_at;  /* 0: none, or paused */
    int64_t last_at;  /* the due time that fired last */
    hf_id last_run;   /* and what it started */
    int64_t fired;    /* runs started so far */
    int64_t skipped;  /* due times that started nothing because of the overlap policy */
    int queued;       /* due times that wait for the last run to end */
    const char *last_error;
    int64_t created_at;
    int64_t updated_at;
} hf_schedule;

typedef struct hf_schedules {
    hf_schedule *items;
    size_t count;
} hf_schedules;

/* Creates the schedule, or changes the one of that name: then what it has fired so far stays, and due times from now on
 * are the new ones. Durable when it returns. */
HF_PUBLIC hf_code hf_schedule_set(hf_client *client, const hf_schedule_spec *spec,
                                  hf_error *err) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_schedule_get(hf_client *client, hf_schedule **out, const char *name,
                                  hf_error *err) HF_MUST_CHECK;
/* All of the tenant, by name. */
HF_PUBLIC hf_code hf_schedule_list(hf_client *client, hf_schedules **out,
                                   hf_error *err) HF_MUST_CHECK;
/* The next `count` due times after now; *found of them exist. */
HF_PUBLIC hf_code hf_schedule_next(hf_client *client, const char *name, int64_t *times,
                                   size_t count, size_t *found, hf_error *err) HF_MUST_CHECK;
/* Both do nothing when it is so already. What became due meanwhile is handled by the catch-up policy. */
HF_PUBLIC hf_code hf_schedule_pause(hf_client *client, const char *name,
                                    hf_error *err) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_schedule_resume(hf_client *client, const char *name,
                                     hf_error *err) HF_MUST_CHECK;
/* It fires no more and its name is free; runs that it started go on. */
HF_PUBLIC hf_code hf_schedule_delete(hf_client *client, const char *name,
                                     hf_error *err) HF_MUST_CHECK;

HF_PUBLIC void hf_schedule_free(hf_schedule *schedule);
HF_PUBLIC void hf_schedules_free(hf_schedules *schedules);

#ifdef __cplusplus
}
#endif
#endif
