# tools/embed_sql.py: what it writes, and which mistakes it finds.

setup()
{
    cd "$BATS_TEST_TMPDIR"
    mkdir -p sql/postgres/migrate sql/sqlite/migrate out
    statement find_run 'one (tenant int, id uuid)' '(version bigint, done bool)' 'SELECT version, done FROM run WHERE id = $2;' >sql/postgres/run.sql
    statement find_run 'one (tenant int, id uuid)' '(version bigint, done bool)' 'SELECT version, done FROM run WHERE id = ?2;' >sql/sqlite/run.sql
    echo 'CREATE TABLE run (id uuid);' >sql/postgres/migrate/001_start.sql
    echo 'CREATE TABLE run (id blob);' >sql/sqlite/migrate/001_start.sql
}

statement()
{
    printf -- '-- name: %s\n-- A sentence.\n-- takes: %s\n-- gives: %s\n%s\n' "$@"
}

embed()
{
    run "$HOLDFAST_SOURCE/tools/embed_sql.py" sql out
}

refuses()
{
    embed
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"$1"* ]]
    [ ! -e out/statements.h ]
}

# Compiles both tables with a main that does what the argument says, and runs it.
print_tables()
{
    {
        printf '#include <stdio.h>\n#include "store/statements.h"\n'
        printf 'int main(void) { %s return 0; }\n' "$1"
    } >main.c
    mkdir -p include/store
    cp out/statements.h "$HOLDFAST_SOURCE/src/store/statement.h" include/store
    cc -std=c17 -Wall -Wextra -Werror -I include -I "$HOLDFAST_SOURCE/src" -I "$HOLDFAST_SOURCE/include" \
        -o main main.c out/*.c
    run ./main
}

@test "a statement becomes a row with its types and column names" {
    embed
    [ "$status" -eq 0 ]
    print_tables 'const struct hf__statement *s = &hf__sqlite_statements[HF__STMT_FIND_RUN];
        printf("%s %d %d%d %d %s %s", s->name, s->takes == HF__TAKES_ONE, s->param_types[0] == HF__INT,
        s->param_types[1] == HF__UUID, s->ncolumns, s->column_names[1], s->sql);'
    [ "$output" = 'find_run 1 11 2 done SELECT version, done FROM run WHERE id = ?2;' ]
}

@test "SQL arrives unchanged, whatever characters it has" {
    sql=$'SELECT \'é ??( "\\ %s\',\n  $1; '
    for dialect in postgres sqlite; do
        statement odd 'one (id uuid)' 'nothing' "${sql}" >"sql/$dialect/run.sql"
    done
    embed
    [ "$status" -eq 0 ]
    print_tables 'fputs(hf__postgres_statements[HF__STMT_ODD].sql, stdout);'
    [ "$output" = "${sql% }" ]
}

@test "a list may wrap over several lines" {
    for dialect in postgres sqlite; do
        statement wrapped $'rows (tenant int,\n--   id uuid, payload text)' 'nothing' 'SELECT 1;' >"sql/$dialect/run.sql"
    done
    embed
    [ "$status" -eq 0 ]
    print_tables 'printf("%d", hf__postgres_statements[0].nparams);'
    [ "$output" = 3 ]
}

@test "several statements in a file are kept apart" {
    for dialect in postgres sqlite; do
        statement another nothing nothing $'SELECT 1;\n\n-- A remark between statements.\n' >>"sql/$dialect/run.sql"
        statement third nothing nothing 'SELECT 3;' >>"sql/$dialect/run.sql"
    done
    embed
    [ "$status" -eq 0 ]
    print_tables 'printf("%d %s", HF__STMT_COUNT, hf__sqlite_statements[HF__STMT_ANOTHER].sql);'
    [ "$output" = '3 SELECT 1;' ]
}

@test "what only one dialect has is NULL in the other" {
    statement listen $'nothing\n-- only: postgres' nothing 'LISTEN work;' >sql/postgres/listen.sql
    embed
    [ "$status" -eq 0 ]
    print_tables 'printf("%d %s", hf__sqlite_statements[HF__STMT_LISTEN].sql == NULL, hf__postgres_statements[HF__STMT_LISTEN].sql);'
    [ "$output" = '1 LISTEN work;' ]
}

@test "migrations are embedded in their order" {
    echo 'ALTER TABLE run ADD key text;' >sql/postgres/migrate/002_key.sql
    embed
    [ "$status" -eq 0 ]
    print_tables 'printf("%d %d %s %s", HF__POSTGRES_MIGRATION_COUNT, HF__SQLITE_MIGRATION_COUNT,
        hf__postgres_migrations[1].name, hf__postgres_migrations[1].sql);'
    [ "$output" = '2 1 key ALTER TABLE run ADD key text;' ]
}

@test "a name that one dialect lacks is refused with its place" {
    statement extra nothing nothing 'SELECT 1;' >>sql/postgres/run.sql
    refuses "sql/postgres/run.sql:6: 'extra' is missing in sqlite"
}

@test "different takes are refused" {
    sed -i 's/tenant int/tenant bigint/' sql/sqlite/run.sql
    refuses "sql/sqlite/run.sql:1: 'find_run' takes one (tenant bigint, id uuid), but one (tenant int, id uuid) at sql/postgres/run.sql:1"
}

@test "different gives are refused" {
    sed -i 's/, done bool//' sql/sqlite/run.sql
    refuses "sql/sqlite/run.sql:1: 'find_run' gives (version bigint)"
}

@test "a repeated name is refused, also across files" {
    cp sql/postgres/run.sql sql/postgres/second.sql
    refuses "sql/postgres/second.sql:1: the name 'find_run' was used before at sql/postgres/run.sql:1"
}

@test "a missing takes or gives is refused" {
    sed -i '/takes/d' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:1: 'find_run' has no takes: line"
}

@test "a missing gives is refused" {
    sed -i '/gives/d' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:1: 'find_run' has no gives: line"
}

@test "an unknown type is refused" {
    sed -i 's/uuid/guid/' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:3: unknown type 'guid'"
}

@test "a list that never closes is refused" {
    sed -i 's/id uuid)/id uuid/' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:3: expected a list"
}

@test "an unknown kind of input is refused" {
    sed -i 's/one (/many (/' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:3: takes: must be"
}

@test "a parameter that takes does not name is refused" {
    sed -i 's/\$2/$3/' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:1: 'find_run' uses parameter 3, but takes: names 2"
}

@test "a statement without SQL is refused" {
    sed -i '/SELECT/d' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:1: 'find_run' has no SQL"
}

@test "a statement without its semicolon is refused" {
    sed -i 's/;$//' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:1: the SQL of 'find_run' does not end with a semicolon"
}

@test "SQL without a name is refused" {
    sed -i '1i SELECT 1;' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:1: SQL before the first"
}

@test "only: in the wrong folder is refused" {
    sed -i '1a -- only: sqlite' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:2: 'find_run' is only for sqlite"
}

@test "only: for what both dialects have is refused" {
    sed -i '1a -- only: postgres' sql/postgres/run.sql
    refuses "sql/postgres/run.sql:1: 'find_run' is marked only: postgres, but both dialects have it"
}

@test "a gap in the migrations is refused" {
    echo 'SELECT 1;' >sql/sqlite/migrate/003_late.sql
    refuses "sql/sqlite/migrate/003_late.sql: expected migration 002"
}

# ---- Pieces ----

piece()
{
    printf -- '-- piece: %s\n-- A sentence.\n%s\n\n' "$@"
}

@test "a piece takes the place of what includes it, indented like it, also in another file" {
    for dialect in postgres sqlite; do
        { piece both $'a = 1\n  AND b = 2'; } >"sql/$dialect/above.sql"
        statement one nothing nothing $'SELECT 1\n WHERE\n   -- include: both\n;' >>"sql/$dialect/run.sql"
        statement two nothing nothing $'-- include: both\n;' >>"sql/$dialect/run.sql"
    done
    embed
    [ "$status" -eq 0 ]
    print_tables 'printf("%s|%s", hf__sqlite_statements[HF__STMT_ONE].sql, hf__postgres_statements[HF__STMT_TWO].sql);'
    [ "$output" = $'SELECT 1\n WHERE\n   a = 1\n     AND b = 2\n;|a = 1\n  AND b = 2\n;' ]
}

@test "a piece may include another, twice" {
    for dialect in postgres sqlite; do
        { piece outer $'x\n -- include: inner\n-- include: inner'; piece inner 'y'; } >"sql/$dialect/zz.sql"
        statement one nothing nothing $'-- include: outer\n;' >>"sql/$dialect/run.sql"
    done
    embed
    [ "$status" -eq 0 ]
    print_tables 'fputs(hf__sqlite_statements[HF__STMT_ONE].sql, stdout);'
    [ "$output" = $'x\n y\ny\n;' ]
}

@test "an unknown piece is refused" {
    statement one nothing nothing $'-- include: nowhere\n;' >>sql/postgres/run.sql
    refuses "sql/postgres/run.sql:6: there is no piece 'nowhere' to include"
}

@test "a piece of the other dialect is unknown" {
    piece other 'SELECT 1' >>sql/sqlite/run.sql
    statement one nothing nothing $'-- include: other\n;' >>sql/postgres/run.sql
    refuses "sql/postgres/run.sql:6: there is no piece 'other' to include"
}

@test "a piece that nothing includes is refused" {
    piece alone 'SELECT 1' >>sql/sqlite/run.sql
    refuses "sql/sqlite/run.sql:6: no statement includes the piece 'alone'"
}

@test "a piece that includes itself by another is refused" {
    { piece first '-- include: second'; piece second '-- include: first'; } >>sql/postgres/run.sql
    statement one nothing nothing $'-- include: first\n;' >>sql/postgres/run.sql
    refuses "sql/postgres/run.sql:10: the piece 'first' includes itself"
}

@test "a repeated piece is refused" {
    { piece same 'x'; piece same 'x'; } >>sql/postgres/run.sql
    refuses "sql/postgres/run.sql:10: the name 'same' was used before at sql/postgres/run.sql:6"
}

@test "a piece without SQL is refused" {
    piece empty '' >>sql/postgres/run.sql
    refuses "sql/postgres/run.sql:6: 'empty' has no SQL"
}

@test "a piece takes and gives nothing of its own" {
    printf -- '-- piece: odd\n-- takes: nothing\nx\n' >>sql/postgres/run.sql
    refuses "sql/postgres/run.sql:7: a piece has no such line: 'takes: nothing'"
}

@test "a parameter of a piece counts for what includes it" {
    for dialect in postgres sqlite; do
        piece deep 'SELECT $2 ?2' >>"sql/$dialect/run.sql"
        statement one 'one (id uuid)' nothing $'-- include: deep\n;' >>"sql/$dialect/run.sql"
    done
    refuses "sql/postgres/run.sql:10: 'one' uses parameter 2, but takes: names 1"
}
