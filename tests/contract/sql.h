/* The inside of the fixture's SQL.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_CONTRACT_SQL_H
#define HF_TESTS_CONTRACT_SQL_H

#include <libpq-fe.h>

#include "store/driver.h"
#include "support/invariants.h"

void sql_use_sqlite(struct hf__database *db);
void sql_use_postgres(PGconn *conn); /* borrowed */
void sql_forget(void);
bool sql_run(const char *text, invariants_row row, void *arg, char *error, size_t size);

#endif
