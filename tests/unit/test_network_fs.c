/* Where a SQLite store must not lie. The doctor's own file, since no network file system can be had for a test.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../src/cli/doctor_disk.c"

#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void cli_doctor_say(struct cli_doctor *doctor, const char *check, enum cli_level level,
                    const char *advice, const char *fmt, ...)
{
    (void)doctor, (void)check, (void)level, (void)advice, (void)fmt;
}

bool cli_store_file(const struct cli_session *session, char out[CLI_STORE_FILE])
{
    (void)session, (void)out;
    return false;
}

static void network_file_systems_are_known(void **state)
{
    static const unsigned long network[] = { NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,  CIFS_SUPER_MAGIC,
                                             V9FS_MAGIC,      CEPH_SUPER_MAGIC, OCFS2_SUPER_MAGIC,
                                             SMB2_SUPER_MAGIC };
    (void)state;
    for (size_t i = 0; i < sizeof network / sizeof *network; i++)
        assert_true(cli_is_network_fs(network[i]));
}

static void local_file_systems_are_left_alone(void **state)
{
    static const unsigned long local[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                           TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC };
    (void)state;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        assert_false(cli_is_network_fs(local[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_file_systems_are_known),
        cmocka_unit_test(local_file_systems_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
