// access: who is at the other end of a local socket, and what they may do. The kernel
// says who (SO_PEERCRED, SO_PEERGROUPS: as they were when the peer connected, so that
// nobody can pass for another later); the configuration says what. Names become numbers
// once, at the start: a lookup may ask a directory service on the network, and no peer
// may make us wait for that.
//
// root and the user who runs actd may always act. Whoever may act may also read. Nobody
// else may do anything that is not written down.
#ifndef ACTD_ACCESS_H
#define ACTD_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/config.h"

// What the kernel shows instead of a user or group that our user namespace does not map
// (Documentation/admin-guide/sysctl/fs.rst, overflowuid): everybody else at once, and
// therefore nobody that could be trusted.
#define ACCESS_NOBODY 65534u

enum access_right { ACCESS_NONE, ACCESS_READ, ACCESS_ACT };

struct access_rule {
    bool group;
    unsigned id;
    enum access_right right;
};

struct access {
    uid_t self;
    int n;
    struct access_rule rule[64]; // CONFIG_NAMES of each list
    bool only_presets;           // operators.act and .read say what they say by default
};

struct access_peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

// plain; may ask the name service. A user or group that is not known is refused with
// -EINVAL and a sentence, but in a list that is the default, which is for machines that
// have them.
int access_resolve(struct access *out, const struct config *cfg, uid_t self,
                   struct config_error *err);

// What uid, with these groups, may do. Pure.
enum access_right access_of(const struct access *a, uid_t uid, const gid_t *groups,
                            int n_groups);

// Who is connected to fd, and what they may do. Any class but rt (system calls, and
// malloc for a peer with more than 64 groups). 0 or -errno.
int access_look(const struct access *a, int fd, struct access_peer *peer,
                enum access_right *right);

#endif
