// process: how the daemon stands towards the system: whom its files are for, what it inherits, and
// which signals end it. All functions are plain.
#ifndef ACTD_PROCESS_H
#define ACTD_PROCESS_H

// First of all, before a file is opened or a thread started. What is made from now on is writable
// for its owner alone and for others not even readable; descriptors that were left open by whoever
// started us are closed (but 0, 1, 2). SIGTERM, SIGINT and SIGQUIT are blocked, for every thread to
// come, and read from *signals; those that would end a process without a crash being meant by them
// (SIGHUP, SIGUSR1, SIGALRM, …) are ignored: an arm is brought to rest before its daemon ends, and
// there is nothing to re-read. *signals is the caller's to close. 0 or -errno.
int process_begin(int *signals);

#endif
