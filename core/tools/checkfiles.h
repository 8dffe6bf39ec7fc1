/* The rules for what else lies in a tool's directory (R8, R107). */
#ifndef PEGFS_TOOLS_CHECKFILES_H
#define PEGFS_TOOLS_CHECKFILES_H

#include "core/tools/faults.h"

/* Looks at the names in dir_fd (open for reading). Each fault has its file: dir/NAME. */
void checkfiles_run(int dir_fd, const char *dir, struct faults *faults);

#endif
