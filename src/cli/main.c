/* The program: finds the command, runs it, tells how it ended.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/parse.h"
#include "util/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A closed stdin, stdout or stderr would be given to the next file that is opened, a database for instance. */
static void keep_standard_files(void)
{
    int file;
    do
        file = open("/dev/null", O_RDWR);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0)
        close(file);
}

/* glibc gives each thread an arena of its own, and large blocks that come and go a place in it: then a worker keeps three
 * times what it uses. Its threads seldom allocate at once. */
static void keep_memory_small(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 256 * 1024); /* and no longer a growing one */
#endif
}

static int show_version(const struct cli_session *session)
{
    if (session->json)
        printf("{\"version\":\"%s\"}\n", hf_library_version());
    else
        printf("holdfast %s\n", hf_library_version());
    return CLI_OK;
}

static int run_version(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    return show_version(session);
}

const struct cli_command cli_command_version = {
    .name = "version",
    .summary = "Show the version",
    .operands = "",
    .run = run_version,
};

static int show_help(const struct cli_session *session, const struct cli_parse *parse)
{
    if (session->command)
        cli_help_command(stdout, session->command);
    else if (parse->family)
        cli_help_family(stdout, parse->family);
    else
        cli_help_overview(stdout);
    return CLI_OK;
}

static int missing_command(struct cli_session *session, const struct cli_parse *parse)
{
    if (parse->family)
        cli_help_family(stderr, parse->family);
    else
        cli_help_start(stderr);
    return session->json ? cli_usage(session, "which command?") : CLI_USAGE;
}

static int run_command(struct cli_session *session, const struct cli_parse *parse)
{
    const struct cli_command *command = session->command;
    if (session->version)
        return show_version(session);
    if (session->help)
        return show_help(session, parse);
    if (!command)
        return missing_command(session, parse);
    if (parse->count < command->min_operands)
        return cli_usage(session, "something is missing: holdfast %s %s", command->name,
                         command->operands);
    if (parse->count > command->max_operands)
        return cli_usage(session, "\"%.60s\" is one too many: holdfast %s%s%s",
                         parse->operands[command->max_operands], command->name,
                         *command->operands ? " " : "", command->operands);
    return command->run(session, parse->count, parse->operands);
}

/* What was not written was not done: a full disk must not look like success. */
static int finish_output(int status)
{
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (!failed)
        return status;
    fprintf(stderr, "holdfast: cannot write the output: %s\n", strerror(errno));
    return status == CLI_OK ? CLI_FAILED : status;
}

int main(int argc, char **argv)
{
    struct cli_session *session = &cli_the_session;
    struct cli_parse parse = { 0 };
    int status = CLI_FAILED;
    keep_standard_files();
    keep_memory_small();
    /* Everything is UTF-8, whatever the environment says; only the widths of characters depend on it. */
    setlocale(LC_CTYPE, "C.UTF-8");
    parse.operands = hf__calloc((size_t)argc + 1, sizeof *parse.operands);
    if (!parse.operands) {
        fputs("holdfast: memory ran out\n", stderr);
        return CLI_FAILED;
    }
    if (cli_parse(session, &parse, argc, argv, &status)) {
        cli_session_defaults(session);
        status = run_command(session, &parse);
    }
    cli_close(session);
    free(parse.operands);
    return finish_output(status);
}
