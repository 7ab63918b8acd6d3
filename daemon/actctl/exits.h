// exits: the exit statuses of actctl, after sysexits.h where that has a word for it.
#ifndef ACTD_ACTCTL_EXITS_H
#define ACTD_ACTCTL_EXITS_H

enum ctl_exit {
    CTL_OK = 0,
    CTL_REFUSED = 1,    // or not supported, or failed; doctor: something hurts
    CTL_USAGE = 64,     // the command line
    CTL_CANDIDATE = 65, // swap: refused, the policy before stays loaded
    CTL_NO_DAEMON = 69, // nobody is there, or answers in time
    CTL_UNSAID = 74,   // standard output could not be written; what was asked for is done
    CTL_BUSY = 75,     // a swap is in progress, no session is free, asked too often
    CTL_PROTOCOL = 76, // not an answer, or not understood: another version
    CTL_DENIED = 77,   // not for this user
};

#endif
