/* Programs as handlers. A6, B8, F13.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/world.h"

#include "util/clock.h"

/* What the scripts find in their environment besides what all find; NULL: nothing. */
static const char *variable;

/* Serves the one workflow of these tests by a shell script. */
static void serve(const char *script, int64_t time_limit, size_t max_output)
{
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    hf_exec_options options = HF_EXEC_OPTIONS_INIT;
    options.argv = argv;
    options.time_limit = time_limit;
    options.max_output = max_output;
    options.env = &variable;
    options.env_count = variable ? 1 : 0;
    world_hire(NULL);
    assert_ok(hf_worker_exec(world.worker, "sh.run.v1", &options, NULL));
    world_define("sh.run.v1", 1, 0, 0);
    world_start();
}

static hf_run *run_script(const char *script, const char *input)
{
    serve(script, 0, 0);
    return world_wait(world_trigger("sh.run.v1", input));
}

static void expect_result(const char *script, const char *input, const char *result)
{
    hf_run *run = run_script(script, input);
    if (run->status != HF_SUCCEEDED)
        fail_msg("%s: %s", hf_status_name(run->status), run->last_error);
    assert_string_equal(run->result, result);
    hf_run_free(run);
}

static void expect_failure(const char *script, const char *code, const char *part)
{
    hf_run *run = run_script(script, NULL);
    assert_int_equal(run->status, HF_FAILED);
    if (code)
        assert_string_equal(run->error_code, code);
    if (!strstr(run->last_error, part))
        fail_msg("\"%s\" does not say \"%s\"", run->last_error, part);
    hf_run_free(run);
}

static void json_on_stdout_is_the_result(void **state)
{
    (void)state;
    expect_result("cat", "{\"a\":[1,2]}", "{\"a\":[1,2]}");
}

static void text_on_stdout_becomes_a_string(void **state)
{
    (void)state;
    expect_result("echo 'it is \"done\"'", NULL, "\"it is \\\"done\\\"\"");
}

static void nothing_on_stdout_is_null(void **state)
{
    (void)state;
    expect_result("cat >/dev/null", NULL, "null");
}

static void a_program_may_ignore_its_input(void **state)
{
    static char big[300000];
    (void)state;
    memset(big, 'x', sizeof big - 1);
    big[0] = big[sizeof big - 2] = '"';
    big[sizeof big - 1] = '\0';
    expect_result("exec 0<&-; echo 7", big, "7");
}

static void large_input_and_output_pass_at_once(void **state)
{
    static char big[900000];
    (void)state;
    memset(big, 'x', sizeof big - 1);
    big[0] = big[sizeof big - 2] = '"';
    big[sizeof big - 1] = '\0';
    expect_result("cat", big, big);
}

static void the_environment_names_the_run(void **state)
{
    (void)state;
    setenv("TRACEPARENT", "inherited", 1);
    serve("echo \"$HOLDFAST_WORKFLOW $HOLDFAST_KEY $HOLDFAST_ATTEMPT ${TRACEPARENT-unset} "
          "$HOLDFAST_RUN_ID\"",
          0, 0);
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = "sh.run.v1";
    spec.key = "k 1";
    hf_id id = world_trigger_spec(&spec);
    hf_run *run = world_wait(id);
    char text[HF_ID_TEXT], expected[200];
    hf_id_format(id, text);
    snprintf(expected, sizeof expected, "\"sh.run.v1 k 1 1 unset %s\"", text);
    assert_string_equal(run->result, expected);
    hf_run_free(run);
    unsetenv("TRACEPARENT");
}

static void a_program_does_not_get_the_secrets_of_its_worker(void **state)
{
    (void)state;
    setenv("HOLDFAST_STORE", "postgres://worker:secret@db/orders", 1);
    setenv("PAYMENT_KEY", "secret", 1);
    setenv("HOLDFAST_STEP_KEY", "of another program", 1);
    setenv("LC_TIME", "C", 1);
    expect_result(
        "env | grep -c -e secret -e STEP_KEY; [ -n \"$PATH\" ] && [ $LC_TIME = C ] || echo bad",
        NULL, "0");
    unsetenv("HOLDFAST_STORE");
    unsetenv("PAYMENT_KEY");
    unsetenv("HOLDFAST_STEP_KEY");
    unsetenv("LC_TIME");
}

static void a_program_gets_the_variables_that_were_added(void **state)
{
    const char *argv[] = { "/bin/sh", "-c", "echo \"$ONE $TWO ${THREE-unset} $LANG\"", NULL };
    const char *added[] = { "ONE", "TWO=zwei=2", "THREE", "LANG=tlh" };
    hf_exec_options options = HF_EXEC_OPTIONS_INIT;
    (void)state;
    options.argv = argv;
    options.env = added;
    options.env_count = 4;
    setenv("ONE", "eins", 1);
    setenv("LANG", "C", 1);
    unsetenv("THREE");
    world_hire(NULL);
    assert_ok(hf_worker_exec(world.worker, "sh.run.v1", &options, NULL));
    world_define("sh.run.v1", 1, 0, 0);
    world_start();
    world_expect_result(world_trigger("sh.run.v1", NULL), "\"eins zwei=2 unset tlh\"");
    unsetenv("ONE");
    unsetenv("LANG");
}

static void variables_that_say_which_run_it_is_cannot_be_added(void **state)
{
    const char *argv[] = { "/bin/true", NULL };
    const char *added[] = { "HOLDFAST_RUN_ID=mine" };
    hf_exec_options options = HF_EXEC_OPTIONS_INIT;
    hf_error err;
    (void)state;
    options.argv = argv;
    options.env = added;
    options.env_count = 1;
    world_hire(NULL);
    assert_int_equal(hf_worker_exec(world.worker, "sh.run.v1", &options, &err), HF_INVALID);
    assert_non_null(strstr(err.message, "HOLDFAST_RUN_ID says which run it is"));
    added[0] = "=nameless";
    assert_int_equal(hf_worker_exec(world.worker, "sh.run.v1", &options, &err), HF_INVALID);
}

static void a_failing_program_leaves_the_end_of_its_stderr(void **state)
{
    (void)state;
    expect_failure("seq 1 5000 >&2; echo 'card declined' >&2; exit 3", "exit_3", "card declined");
}

static void exit_75_asks_for_another_try(void **state)
{
    (void)state;
    const char *argv[] = { "/bin/sh", "-c", "[ $HOLDFAST_ATTEMPT = 2 ] || exit 75; echo 2", NULL };
    hf_exec_options options = HF_EXEC_OPTIONS_INIT;
    options.argv = argv;
    world_hire(NULL);
    assert_ok(hf_worker_exec(world.worker, "sh.run.v1", &options, NULL));
    world_define("sh.run.v1", 2, HF_MILLISECONDS(10), 0);
    world_start();
    world_expect(world_trigger("sh.run.v1", NULL), HF_SUCCEEDED);
}

static void a_missing_program_is_named(void **state)
{
    (void)state;
    const char *argv[] = { "/no/such/program", NULL };
    hf_exec_options options = HF_EXEC_OPTIONS_INIT;
    options.argv = argv;
    world_hire(NULL);
    assert_ok(hf_worker_exec(world.worker, "sh.run.v1", &options, NULL));
    world_define("sh.run.v1", 1, 0, 0);
    world_start();
    hf_run *run = world_wait(world_trigger("sh.run.v1", NULL));
    assert_int_equal(run->status, HF_FAILED);
    assert_non_null(strstr(run->last_error, "/no/such/program"));
    hf_run_free(run);
}

/* Serves the workflow by a file of this content and mode, and expects these words in its error. */
static void expect_unrunnable(const char *content, mode_t mode, const char *words)
{
    char path[] = "/tmp/holdfast-program-XXXXXX";
    const char *argv[] = { path, NULL };
    hf_exec_options options = HF_EXEC_OPTIONS_INIT;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, content, strlen(content)) > 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    options.argv = argv;
    world_hire(NULL);
    assert_ok(hf_worker_exec(world.worker, "sh.run.v1", &options, NULL));
    world_define("sh.run.v1", 1, 0, 0);
    world_start();
    hf_run *run = world_wait(world_trigger("sh.run.v1", NULL));
    unlink(path);
    assert_int_equal(run->status, HF_FAILED);
    if (!strstr(run->last_error, words) || !strstr(run->last_error, path))
        fail_msg("\"%s\" does not say \"%s\"", run->last_error, words);
    hf_run_free(run);
}

static void a_file_without_its_execute_bit_is_named(void **state)
{
    (void)state;
    expect_unrunnable("#!/bin/sh\n", 0644, "it is not executable (chmod +x /tmp/");
}

static void a_missing_interpreter_is_named(void **state)
{
    (void)state;
    expect_unrunnable("#! /usr/bin/no-such-shell -e\n", 0755,
                      "its interpreter /usr/bin/no-such-shell does not exist");
}

static void line_ends_of_windows_are_named(void **state)
{
    (void)state;
    expect_unrunnable("#!/bin/sh\r\necho 1\r\n", 0755, "end as on Windows");
}

static void exit_127_tells_of_a_missing_program(void **state)
{
    (void)state;
    expect_failure("no-such-command-here", "exit_127", "not found");
}

static void death_by_signal_is_a_failure(void **state)
{
    (void)state;
    expect_failure("kill -9 $$", "signal_9", "killed by signal 9");
}

static void output_that_is_not_text_is_a_failure(void **state)
{
    (void)state;
    expect_failure("printf '\\377\\376'", NULL, "UTF-8");
}

static void too_much_output_is_a_failure(void **state)
{
    (void)state;
    serve("yes", 0, 5000);
    hf_run *run = world_wait(world_trigger("sh.run.v1", NULL));
    assert_int_equal(run->status, HF_FAILED);
    assert_non_null(strstr(run->last_error, "output too large"));
    hf_run_free(run);
}

/* A script that says its process number, then sleeps. */
static const char *const LONG_SCRIPT = "echo $$ >\"$PID_FILE\"; exec sleep 100";
static char pid_file[64];

static void make_pid_file(void)
{
    strcpy(pid_file, "/tmp/holdfast-pid-XXXXXX");
    int fd = mkstemp(pid_file);
    assert_true(fd >= 0);
    close(fd);
    setenv("PID_FILE", pid_file, 1);
    variable = "PID_FILE";
}

static hf_id start_long_script(void)
{
    make_pid_file();
    serve(LONG_SCRIPT, 0, 0);
    return world_trigger("sh.run.v1", NULL);
}

static pid_t script_pid(void)
{
    for (int i = 0; i < 5000; i++) {
        int pid = 0;
        FILE *file = fopen(pid_file, "r");
        int got = file ? fscanf(file, "%d\n", &pid) : 0;
        if (file)
            fclose(file);
        if (got == 1 && pid > 0)
            return pid;
        world_sleep(HF_MILLISECONDS(2));
    }
    fail_msg("the script did not start");
    return 0;
}

static void expect_dead(pid_t pid)
{
    for (int i = 0; i < 5000 && kill(pid, 0) == 0; i++)
        world_sleep(HF_MILLISECONDS(2));
    assert_int_equal(kill(pid, 0), -1);
    unlink(pid_file);
    unsetenv("PID_FILE");
    variable = NULL;
}

static void a_time_limit_kills_the_whole_group(void **state)
{
    (void)state;
    make_pid_file();
    serve("sleep 100 & echo $! >\"$PID_FILE\"; sleep 100", HF_MILLISECONDS(300), 0);
    hf_id id = world_trigger("sh.run.v1", NULL);
    pid_t in_background = script_pid();
    hf_run *run = world_wait(id);
    assert_int_equal(run->status, HF_FAILED);
    assert_non_null(strstr(run->last_error, "time limit"));
    hf_run_free(run);
    expect_dead(in_background);
}

static void what_a_program_left_running_is_killed_when_it_ends(void **state)
{
    (void)state;
    make_pid_file();
    serve("sleep 100 >/dev/null 2>&1 & echo $! >\"$PID_FILE\"", 0, 0);
    hf_id id = world_trigger("sh.run.v1", NULL);
    pid_t in_background = script_pid();
    world_expect(id, HF_SUCCEEDED);
    expect_dead(in_background);
}

static void a_program_that_ignores_sigterm_is_killed(void **state)
{
    (void)state;
    serve("trap '' TERM; while :; do sleep 0.1; done", HF_MILLISECONDS(100), 0);
    hf_run *run = world_wait(world_trigger("sh.run.v1", NULL));
    assert_int_equal(run->status, HF_FAILED);
    assert_non_null(strstr(run->last_error, "time limit"));
    hf_run_free(run);
}

static void a_cancelled_runs_program_is_killed(void **state)
{
    (void)state;
    hf_id id = start_long_script();
    pid_t pid = script_pid();
    assert_ok(hf_change_run(world.client, id, HF_CANCEL, NULL, NULL));
    expect_dead(pid);
    world_expect(id, HF_CANCELLED);
}

static void a_second_stop_kills_programs_and_gives_their_runs_back(void **state)
{
    (void)state;
    hf_id id = start_long_script();
    pid_t pid = script_pid();
    world_ask_stop();
    world_stop();
    expect_dead(pid);
    hf_run *run = world_get(id);
    assert_int_equal(run->status, HF_PENDING);
    assert_int_equal(run->attempt, 0);
    hf_run_free(run);
}

static void a_deadline_kills_the_program(void **state)
{
    (void)state;
    serve("sleep 100", 0, 0);
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = "sh.run.v1";
    spec.timeout = HF_MILLISECONDS(200);
    hf_run *run = world_wait(world_trigger_spec(&spec));
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error_code, "deadline_exceeded");
    hf_run_free(run);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
        TEST(json_on_stdout_is_the_result),
        TEST(text_on_stdout_becomes_a_string),
        TEST(nothing_on_stdout_is_null),
        TEST(a_program_may_ignore_its_input),
        TEST(large_input_and_output_pass_at_once),
        TEST(the_environment_names_the_run),
        TEST(a_program_does_not_get_the_secrets_of_its_worker),
        TEST(a_program_gets_the_variables_that_were_added),
        TEST(variables_that_say_which_run_it_is_cannot_be_added),
        TEST(a_failing_program_leaves_the_end_of_its_stderr),
        TEST(exit_75_asks_for_another_try),
        TEST(a_missing_program_is_named),
        TEST(a_file_without_its_execute_bit_is_named),
        TEST(a_missing_interpreter_is_named),
        TEST(line_ends_of_windows_are_named),
        TEST(exit_127_tells_of_a_missing_program),
        TEST(death_by_signal_is_a_failure),
        TEST(output_that_is_not_text_is_a_failure),
        TEST(too_much_output_is_a_failure),
        TEST(a_time_limit_kills_the_whole_group),
        TEST(what_a_program_left_running_is_killed_when_it_ends),
        TEST(a_program_that_ignores_sigterm_is_killed),
        TEST(a_cancelled_runs_program_is_killed),
        TEST(a_second_stop_kills_programs_and_gives_their_runs_back),
        TEST(a_deadline_kills_the_program),
    };
    return world_run_tests(argc, argv, "worker exec", tests, sizeof tests / sizeof *tests);
}
