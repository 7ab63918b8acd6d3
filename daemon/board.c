#include "daemon/board.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BOARD_CHUNKS 8 // the loop empties the ring every tick; inference is far slower

int board_init(struct board *b, int n_cameras, int rows, int joints)
{
    int rc;

    if (n_cameras < 0 || n_cameras > POLICY_MAX_CAMERAS || rows < 1 || joints < 1 ||
        joints > ACTD_MAX_JOINTS)
        return -EINVAL;
    memset(b, 0, sizeof *b);
    b->n_cameras = n_cameras;
    b->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (b->command_fd < 0)
        return -errno;
    rc = slot_init(&b->joints, sizeof(struct joint_sample));
    if (rc == 0)
        rc = slot_init(&b->history, sizeof(struct joint_history));
    if (rc == 0)
        rc = slot_init(&b->report, sizeof(struct loop_report));
    if (rc == 0)
        rc = ring_init(&b->commands, sizeof(struct command), BOARD_COMMANDS);
    if (rc == 0)
        rc = ring_init(&b->chunks, chunk_bytes(rows, joints), BOARD_CHUNKS);
    if (rc != 0)
        board_free(b);
    return rc;
}

void board_free(struct board *b)
{
    slot_free(&b->joints);
    slot_free(&b->history);
    slot_free(&b->report);
    ring_free(&b->commands);
    ring_free(&b->chunks);
    if (b->command_fd > 0)
        close(b->command_fd);
    b->command_fd = -1;
}
