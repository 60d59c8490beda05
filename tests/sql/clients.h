/* Two tenants, acme and beta, with a run, a token and a role of the database each; for tests of what such roles can do.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_CLIENTS_H
#define HF_TESTS_CLIENTS_H

#include "sql/scratch.h"

#include <holdfast/transition.h>

#define DENIED "42501"    /* insufficient_privilege */
#define NOT_FOUND "HF003" /* there is no such run or tenant */
#define NO_WORKER "HF006" /* no live worker serves the workflow */
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The tables that client roles read. */
extern const char *const readable[];
extern const size_t readable_count;

extern struct scratch scratch;
extern hf_client *root;
extern hf_client *beta_client;
extern PGconn *acme; /* a session of acme_role */
extern char acme_role[40], beta_role[40];
extern char other_role[40];                       /* of no tenant */
extern char ours[HF_ID_TEXT], theirs[HF_ID_TEXT]; /* a run of acme, a run of beta */

int clients_set_up(void **state);
int clients_tear_down(void **state);
#define CLIENTS_TEST(test) cmocka_unit_test_setup_teardown(test, clients_set_up, clients_tear_down)

PGconn *connect_as(const char *role);
/* Nothing of beta's can be seen in this session, whatever was done to it before. */
void expect_only_acme(PGconn *pg);

#endif
