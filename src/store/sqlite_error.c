/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What each of SQLite's primary codes means to a caller. `advice` follows SQLite's own words. */
static const struct meaning {
    int rc;
    hf_code code;
    const char *sqlstate;
    const char *advice;
} meanings[] = {
    { SQLITE_FULL, HF_STORE_FULL, "53100", "free some room on the disk and try again" },
    { SQLITE_READONLY, HF_READ_ONLY, "25006",
      "the file and its folder must be writable for this user" },
    { SQLITE_BUSY, HF_UNAVAILABLE, "55P03",
      "another program holds the database; let it finish and try again" },
    { SQLITE_LOCKED, HF_UNAVAILABLE, "55P03",
      "another program holds the database; let it finish and try again" },
    { SQLITE_PROTOCOL, HF_UNAVAILABLE, "55P03", "too many programs at once; try again" },
    { SQLITE_IOERR, HF_UNAVAILABLE, "58030",
      "check the disk, and that the file is on a local file system" },
    { SQLITE_CANTOPEN, HF_UNAVAILABLE, "58030",
      "check the path, and that this user may read and write the file and its folder" },
    { SQLITE_PERM, HF_UNAVAILABLE, "42501",
      "check that this user may read and write the file and its folder" },
    { SQLITE_AUTH, HF_UNAVAILABLE, "42501",
      "check that this user may read and write the file and its folder" },
    { SQLITE_NOTADB, HF_STORE, "58000",
      "the file is not a SQLite database; give the path of another one" },
    { SQLITE_CORRUPT, HF_STORE, "XX001",
      "the database is corrupt; restore it from a backup or try sqlite3's .recover" },
    { SQLITE_CONSTRAINT, HF_STORE, "23000", NULL },
    { SQLITE_MISMATCH, HF_STORE, "22000", NULL },
    { SQLITE_TOOBIG, HF_STORE, "54000", "the value is too large for SQLite" },
    { SQLITE_RANGE, HF_INTERNAL, "", "please report this bug" },
    { SQLITE_MISUSE, HF_INTERNAL, "", "please report this bug" },
};

static const struct meaning *find_meaning(int rc)
{
    static const struct meaning other = { SQLITE_ERROR, HF_STORE, "42000", NULL };

    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].rc == (rc & 0xff))
            return &meanings[i];
    return &other;
}

static bool no_room(sqlite3 *handle, int rc)
{
    int error_number = handle ? sqlite3_system_errno(handle) : 0;
    return ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN) &&
           (error_number == ENOSPC || error_number == EDQUOT);
}

static hf_code fill(sqlite3 *handle, const struct meaning *meaning, const char *doing,
                    hf_error *err)
{
    hf_code code = hf__fail(err, meaning->code, "%s: %s%s%s", doing, sqlite3_errmsg(handle),
                            meaning->advice ? "; " : "", meaning->advice ? meaning->advice : "");
    if (err)
        snprintf(err->sqlstate, sizeof err->sqlstate, "%s", meaning->sqlstate);
    return code;
}

hf_code hf__sqlite_fail(sqlite3 *handle, int rc, const char *doing, hf_error *err)
{
    if ((rc & 0xff) == SQLITE_NOMEM)
        return hf__nomem(err);
    if (no_room(handle, rc))
        return fill(handle, find_meaning(SQLITE_FULL), doing, err);

    hf_code code = fill(handle, find_meaning(rc), doing, err);
    /* The state that other databases give, so that callers can tell "not migrated yet" from the
     * rest. */
    if (err && (rc & 0xff) == SQLITE_ERROR && handle &&
        strncmp(sqlite3_errmsg(handle), "no such table", 13) == 0)
        snprintf(err->sqlstate, sizeof err->sqlstate, "42P01");
    return code;
}

hf_code hf__sqlite_statement_failed(sqlite3 *handle, int rc, const struct hf__statement *statement,
                                    hf_error *err)
{
    char doing[128];
    snprintf(doing, sizeof doing, "statement %s", statement->name);
    hf_code code = hf__sqlite_fail(handle, rc, doing, err);
    /* What SQLite accepted when it was prepared and refuses when it runs is the fault of a
     * value: bad JSON, overflow. */
    if (err && (rc & 0xff) == SQLITE_ERROR)
        snprintf(err->sqlstate, sizeof err->sqlstate, "22000");
    return code;
}
