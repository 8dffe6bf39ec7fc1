#include "core/base/auto.h"

#include <errno.h>

void auto_close_fd(const int *fd)
{
	if (*fd < 0)
		return;
	int saved = errno;
	close(*fd);
	errno = saved;
}
