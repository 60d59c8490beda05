/* What the store says of itself for the metrics, asked no more often than is good for it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_SURVEY_H
#define HF_SERVER_SURVEY_H

#include "client/measure.h"

struct hf__survey;

hf_code hf__survey_new(struct hf__survey **out, hf_client *client, hf_error *err);
void hf__survey_free(struct hf__survey *survey);
/* The last answer, or a new one when that is old: after a second, or ten times as long as asking took. NULL: the store has
 * never answered. *up: it did the last time. Give it back by hf__survey_done; others wait meanwhile. */
const struct hf__measure *hf__survey_look(struct hf__survey *survey, bool *up);
void hf__survey_done(struct hf__survey *survey);

#endif
