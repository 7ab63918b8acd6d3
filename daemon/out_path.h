// out_path: where a finished file goes that is written under another name first. A symbolic link is
// followed (to replace /dev/stdout by a file would be the end of it for everybody), what is no regular
// file is not replaced, and neither is the recording that is being read. All plain.
#ifndef ACTD_OUT_PATH_H
#define ACTD_OUT_PATH_H

#include <sys/types.h>

#include "daemon/logbook.h"

// 0 and where `path` leads to (the caller's to free); -EINVAL: there is something that is no regular
// file; -ENOMEM.
int out_path_real(const char *path, char **real);
// A new empty file beside `real`, its name the caller's to free. mode: as of open(2). Descriptor or
// -errno.
int out_path_temporary(const char *real, mode_t mode, char **name);
// 0, or -EEXIST with err: `path` is one of the files of the book. NULL is fine.
int out_path_spares(const char *path, const struct logbook *book, struct mcap_error *err);

#endif
