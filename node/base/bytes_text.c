/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/bytes_text.h"

#include <stdio.h>

void bytes_text(double bytes, char *ret, size_t size)
{
	static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
	size_t u = 0;

	for (; bytes >= 999.5 && u + 1 < sizeof(units) / sizeof(units[0]); u++)
		bytes /= 1000;
	snprintf(ret, size, bytes < 9.95 && u > 0 ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}
