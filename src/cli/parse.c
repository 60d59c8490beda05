/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/parse.h"

#include "util/duration.h"
#include "util/suggest.h"
#include "util/text.h"

#include <string.h>

/* The arguments that are left. */
struct cursor {
    char **next;
    char **end;
};

/* What other programs call it. */
struct translation {
    const char *theirs;
    const char *ours;
};

static const char *translate(const struct translation *words, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, words[i].theirs) == 0)
            return words[i].ours;
    return NULL;
}

static const char *translate_command(const char *name)
{
    static const struct translation words[] = {
        { "describe", "get" }, { "history", "events" }, { "log", "events" },
        { "logs", "events" },  { "ls", "list" },        { "ps", "workers" },
        { "rm", "delete" },    { "run", "trigger" },    { "schedules", "schedule list" },
        { "show", "get" },     { "start", "trigger" },  { "status", "get" },
    };
    return translate(words, sizeof words / sizeof *words, name);
}

static const char *translate_option(const char *name)
{
    static const struct translation words[] = {
        { "cron-tz", "timezone" }, { "db", "store" },        { "delay", "in" },
        { "id", "key" },           { "interval", "every" },  { "payload", "input" },
        { "tz", "timezone" },      { "workflow-id", "key" },
    };
    return translate(words, sizeof words / sizeof *words, name);
}

static int unknown_command(struct cli_session *session, const char *name)
{
    struct hf__suggestion suggestion;
    hf__suggest_start(&suggestion, name);
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk)))
        hf__suggest_offer(&suggestion, command->name);
    const char *known = translate_command(name);
    const char *best = known ? known : suggestion.best;
    if (best)
        return cli_usage(session, "there is no command \"%.60s\"; did you mean %s?", name, best);
    return cli_usage(session, "there is no command \"%.60s\"", name);
}

static void offer_options(struct hf__suggestion *suggestion, const struct cli_option *table)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    while ((option = cli_option_next(&walk, table)))
        hf__suggest_offer(suggestion, option->name);
}

static const struct cli_option *own_options(const struct cli_session *session)
{
    return session->command ? session->command->options : NULL;
}

static bool has_option(const struct cli_session *session, const char *name)
{
    size_t length = strlen(name);
    return cli_option_find(own_options(session), name, length) ||
           cli_option_find(cli_global_options, name, length);
}

static int unknown_option(struct cli_session *session, const char *argument)
{
    struct hf__suggestion suggestion;
    char name[41] = "";
    size_t length = strcspn(argument, "=");
    if (length < sizeof name)
        memcpy(name, argument, length);
    const char *word = name + strspn(name, "-");
    const char *known = translate_option(word);
    if (known && !has_option(session, known))
        known = NULL;
    hf__suggest_start(&suggestion, word);
    offer_options(&suggestion, own_options(session));
    offer_options(&suggestion, cli_global_options);
    const char *best = known ? known : suggestion.best;
    if (best)
        return cli_usage(session, "unknown option %.*s; did you mean --%s?", (int)length, argument,
                         best);
    return cli_usage(
        session, "unknown option %.60s (put -- before operands that begin with a dash)", argument);
}

static const struct cli_option *find_option(const struct cli_session *session, const char *argument)
{
    const struct cli_option *option;
    if (argument[1] != '-') {
        if (argument[2] != '\0')
            return NULL;
        option = cli_option_find_letter(own_options(session), argument[1]);
        return option ? option : cli_option_find_letter(cli_global_options, argument[1]);
    }
    size_t length = strcspn(argument + 2, "=");
    option = cli_option_find(own_options(session), argument + 2, length);
    return option ? option : cli_option_find(cli_global_options, argument + 2, length);
}

/* --wait 5s would wait for ever and take 5s for something else. */
static bool has_strayed(const struct cli_option *option, const struct cursor *cursor)
{
    int64_t value;
    return option->kind == CLI_MAYBE_DURATION && cursor->next < cursor->end &&
           hf__duration_parse(*cursor->next, &value, NULL) == HF_OK;
}

static bool take_option(struct cli_session *session, const char *argument, struct cursor *cursor,
                        int *status)
{
    const struct cli_option *option = find_option(session, argument);
    if (!option) {
        *status = unknown_option(session, argument);
        return false;
    }
    const char *equals = argument[1] == '-' ? strchr(argument, '=') : NULL;
    const char *value = equals ? equals + 1 : NULL;
    if (!value && cli_option_takes_value(option) && cursor->next < cursor->end)
        value = *cursor->next++;
    if (!value && has_strayed(option, cursor)) {
        *status = cli_usage(session, "%s takes its limit as %s=%s; anything else goes before it",
                            argument, argument, *cursor->next);
        return false;
    }
    hf_error err = { 0 };
    if (cli_option_set(option, value, &err) == HF_OK)
        return true;
    *status = cli_usage(session, "%s", err.message);
    return false;
}

static bool take_command_word(struct cli_session *session, struct cli_parse *parse,
                              const char *word, int *status)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s%s", parse->family ? parse->family : "",
             parse->family ? " " : "", word);
    session->command = cli_command_find(name);
    if (session->command)
        return true;
    if (!parse->family && cli_command_is_family(word)) {
        parse->family = word;
        return true;
    }
    *status = unknown_command(session, name);
    return false;
}

static bool take_word(struct cli_session *session, struct cli_parse *parse, char *word, int *status)
{
    if (!hf__utf8_valid(word, strlen(word))) {
        *status = cli_usage(session, "an argument is not valid UTF-8; re-encode it");
        return false;
    }
    if (!session->command)
        return take_command_word(session, parse, word, status);
    parse->operands[parse->count++] = word;
    return true;
}

/* "-" is stdin and "-5" a number. */
static bool is_option(const char *argument)
{
    return argument[0] == '-' && argument[1] != '\0' && !(argument[1] >= '0' && argument[1] <= '9');
}

/* Mistakes before --json on the command line are to be told as objects too. */
static bool wants_json(char **next, char **end)
{
    for (; next < end && strcmp(*next, "--") != 0; next++)
        if (strcmp(*next, "--json") == 0)
            return true;
    return false;
}

bool cli_parse(struct cli_session *session, struct cli_parse *parse, int argc, char **argv,
               int *status)
{
    struct cursor cursor = { argv + 1, argv + argc };
    bool only_operands = false;
    session->json = wants_json(cursor.next, cursor.end);
    while (cursor.next < cursor.end) {
        char *argument = *cursor.next++;
        bool taken = true;
        if (!only_operands && strcmp(argument, "--") == 0)
            only_operands = true;
        else if (!only_operands && is_option(argument))
            taken = take_option(session, argument, &cursor, status);
        else
            taken = take_word(session, parse, argument, status);
        if (!taken)
            return false;
    }
    return true;
}
