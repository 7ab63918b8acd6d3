// recorder: the thread that turns the tape into files. It empties the tape's spools every few
// milliseconds, encodes what it finds, and keeps three chunks open: JPEGs, raw pictures, all else,
// so that whoever wants no pictures need not read them. A chunk ends at 1 MiB or after 0.4 s, and
// goes out with its index in one writev: a process that is killed loses half a second at most. A
// disk that hangs holds up this thread and nobody else: the spools fill, frames are given up first,
// and what was given up is counted and said. A disk that fails ends the file where it was good; a
// new one is begun as soon as that works again.
//
//   off      nothing, until `actctl record start`
//   always   from the start of the daemon to its end
//   trigger  the last before_s are kept in memory, as finished chunks; a fault (or a mark) writes them,
//            and what comes in the next after_s
//
// A file is NAME.mcap.part until it is whole. Files are segments of a run: a new one begins at
// segment_bytes or segment_ns; each has everything that is needed to read it alone. Segments with a
// fault in them are called …-fault.mcap: they go only when no others are left to make room, and of
// them the newest eight never. What no longer fits then is not recorded, and that is said. A .part
// that a killed run left is made whole at the next start.
//
// All plain but recorder_fault (any thread).
#ifndef ACTD_RECORDER_H
#define ACTD_RECORDER_H

#include <sys/uio.h>

#include "daemon/mcap.h"
#include "daemon/tape.h"

enum recorder_mode { RECORDER_OFF, RECORDER_ALWAYS, RECORDER_TRIGGER };

struct recorder_facts { // that every file says in its metadata "actd"; copied
    const char *version, *instance, *config_file, *config_text, *cpu;
    const char *kernels;    // that compute chunks, as policy_info has it
    const char *blas_core;  // OpenBLAS's own; "" = it computes nothing
    const char *precision;  // of the network
    const char *exe_sha256; // of the program; NULL or "": found out, as the cpu is
    // Of the policy that the run begins with; who drives later is in its seat.
    const char *policy_sha256, *weights_sha256;
    const char *const *joint; // (joints) names
    int joints;
    const char *const *camera; // (cameras)
    int cameras;
    double control_hz;
    int rows; // of a chunk that the loop may be given
    // Of the policy that the loop was configured for: its rate, and what its checkpoint says.
    double policy_hz;
    int action_steps;      // 0 = nothing
    double ensemble_coeff; // NAN = nothing
    const char *sizes; // that frames must have, by camera, one a line: "640x480", "any"
};

// The disk, as far as a test wants to be it. NULL = the real thing.
struct recorder_disk {
    void *arg;
    int (*open)(void *arg, int dir,
                const char *name); // to write, new. Descriptor or -errno
    int (*write)(void *arg, int fd, const struct iovec *v,
                 int n); // all or nothing: 0 or -errno
    int (*sync)(void *arg, int fd);
    int64_t (*free_bytes)(void *arg, int dir); // < 0: not known
};

struct recorder_config { // copied
    enum recorder_mode mode;
    const char *directory; // made if it is missing, 0750
    enum mcap_compression compression;
    bool frames; // record camera messages
    uint64_t segment_bytes;
    ns_t segment_ns;
    uint64_t keep_free_bytes; // oldest files go until so much is free
    uint64_t most_bytes;      // of all this instance's files; 0 = no bound. Segments are
                              // a quarter of it at most: there must be some that can go
    ns_t before_ns,
        after_ns; // trigger mode; in others the segments are kept as a fault's that
                  // begin or end so near to one
    size_t memory_bytes; // of chunks kept, trigger mode
    ns_t keyframe_ns;    // between states; 0 = 1 s
    int cpu_not; // core the loop owns, -1 = none: the thread keeps off it, since a kernel that does
        // not preempt itself lets the loop wait while it copies a megabyte to the disk
    struct recorder_facts facts;
    const struct recorder_disk *disk;
};

struct recorder;

// Starts the thread. The directory is looked after by it: one that can not be used is no error of
// the start. The tape must outlive it, and is turned on before this returns unless mode is OFF. 0 or
// -errno.
int recorder_start(struct recorder **out, struct tape *tape,
                   const struct recorder_config *cfg);
// Writes what is on the tape and ends the file. Waits 3 s at most; a disk that hangs longer keeps
// the thread and its memory (and the tape: false). NULL is fine: true.
bool recorder_stop(struct recorder *r);

// By hand, from `actctl record`. 0, or -errno with a sentence: -EALREADY.
int recorder_begin(struct recorder *r, char text[256]);
int recorder_end(struct recorder *r, char text[256]); // back to what the mode says
// A line in the log that a person wants to find again; in trigger mode it also writes the memory.
// -EALREADY: nothing is recorded; -EAGAIN: no room on the tape.
int recorder_mark(struct recorder *r, const char *what, char text[256]);
// Any thread, no wait: a fault stopped the arm at this time.
void recorder_fault(struct recorder *r, enum ladder_reason reason, ns_t at_ns);
// A policy took the seat (or was in it at the start): said in every file from here on.
void recorder_seat(struct recorder *r, const struct tape_seat *seat, const char *sidecar);

struct recorder_counts {
    enum recorder_mode mode;
    bool recording;                  // a file is being written (trigger: after a fault)
    bool healthy;                    // the last thing that was tried went well
    uint64_t files, messages, bytes; // written since the start
    uint64_t lost[TAPE_CLASSES];     // records given up, for want of room or of a disk
    uint64_t lost_messages;          // in chunks that could not be written
    uint64_t removed;                // files, to make room
    uint64_t held_bytes;             // in memory, trigger mode
    ns_t slowest_write_ns;
    uint64_t cpu_ns;      // of the thread
    char file[1024];      // being written, or the last one; "" = none yet
    char last_error[512]; // what and the remedy; "" = all is well
};
void recorder_counts(struct recorder *r, struct recorder_counts *out);

// ---- between its own files, and for tests -----------------------------------------------------
// Everything but the thread: one round at now_ns. recorder_new as recorder_start.
int recorder_new(struct recorder **out, struct tape *tape,
                 const struct recorder_config *cfg);
void recorder_turn(struct recorder *r, ns_t now_ns);
void recorder_finish(struct recorder *r, ns_t now_ns); // the last round
void recorder_free(struct recorder *r);

#endif
