/* The sealed journal: blocks of events are hashed and chained, so that a change afterwards is found. Seals cover the whole
 * store, all its tenants. docs/audit.md says exactly what is hashed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_AUDIT_H
#define HOLDFAST_AUDIT_H

#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_HASH_TEXT 65 /* SHA-256 in hexadecimal, with the NUL */

typedef struct hf_audit_head {
    int64_t block; /* 0: nothing is sealed yet */
    char hash[HF_HASH_TEXT];
    int64_t sealed_at; /* us */
} hf_audit_head;

/* The end of the chain. Noted elsewhere, it proves later that the chain was not cut off before it. */
HF_PUBLIC hf_code hf_audit_head_get(hf_client *client, hf_audit_head *out,
                                    hf_error *err) HF_MUST_CHECK;

/* symbol, name for machines, what it means */
#define HF_AUDIT_PROBLEMS(X)                                                                       \
    X(HF_EVENT_CHANGED, "event_changed", "an event is not what it was when it was sealed")         \
    X(HF_EVENT_REMOVED, "event_removed", "a sealed event is gone, and its run is not")             \
    X(HF_EVENT_INSERTED, "event_inserted", "an event was added to a sealed block")                 \
    X(HF_EVENT_ORPHANED, "event_orphaned", "an event is left of a run that is gone")               \
    X(HF_SEAL_CHANGED, "seal_changed", "a seal is not what it was when it was made")               \
    X(HF_SEAL_REMOVED, "seal_removed", "a seal is gone")                                           \
    X(HF_CHAIN_BROKEN, "chain_broken", "a seal does not continue the one before it")               \
    X(HF_HEAD_MISSING, "head_missing",                                                             \
      "no seal has the hash that was noted: the chain was cut or made anew")

typedef enum hf_audit_problem_kind {
#define HF_AUDIT_ENUM(symbol, name, meaning) symbol,
    HF_AUDIT_PROBLEMS(HF_AUDIT_ENUM)
#undef HF_AUDIT_ENUM
} hf_audit_problem_kind;

typedef struct hf_audit_problem {
    const char *problem; /* its name */
    const char *meaning;
    int64_t block; /* 0: none in particular */
    hf_id run;     /* of an event */
    int64_t seq;   /* 0: one of the run's events in this block */
} hf_audit_problem;

typedef struct hf_audit_report {
    int64_t blocks;        /* that there are */
    int64_t checked;       /* blocks so far */
    int64_t events;        /* compared so far */
    int64_t purged_events; /* sealed, and removed with their run */
    int64_t unsealed;      /* events that no seal covers yet */
    int64_t problems;      /* found so far */
    hf_audit_head head;    /* the last seal that was checked */
} hf_audit_report;

typedef struct hf_audit_options {
    int version;      /* HF_AUDIT_VERSION */
    const char *head; /* a hash that must be in the chain; NULL: none */
    /* Called for each problem; its texts are borrowed for the call. */
    void (*found)(const hf_audit_problem *problem, void *arg);
    /* Called after each block; return false to stop (HF_CLOSED). */
    bool (*progress)(const hf_audit_report *so_far, void *arg);
    void *arg;
} hf_audit_options;

#define HF_AUDIT_VERSION 1
#define HF_AUDIT_INIT                                                                              \
    {                                                                                              \
        HF_AUDIT_VERSION, NULL, NULL, NULL, NULL                                                   \
    }

/* Compares the journal with its seals, block by block. HF_OK when that could be done: out->problems tells the rest.
 * `options` may be NULL. */
HF_PUBLIC hf_code hf_audit_verify(hf_client *client, hf_audit_report *out,
                                  const hf_audit_options *options, hf_error *err) HF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
