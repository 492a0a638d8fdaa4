/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/time_text.h"

#include <stdio.h>
#include <time.h>

const char *time_text(double when, const char *never, char ret_text[TIME_TEXT_SIZE])
{
	time_t t = (time_t)when;
	struct tm at;

	if (when <= 0 || !localtime_r(&t, &at))
		snprintf(ret_text, TIME_TEXT_SIZE, "%s", never);
	else
		strftime(ret_text, TIME_TEXT_SIZE, "%Y-%m-%d %H:%M:%S", &at);
	return ret_text;
}

const char *time_text_span(double s, char ret_text[TIME_TEXT_SIZE])
{
	if (s < 10)
		snprintf(ret_text, TIME_TEXT_SIZE, "%.1f s", s > 0 ? s : 0);
	else if (s < 120)
		snprintf(ret_text, TIME_TEXT_SIZE, "%.0f s", s);
	else if (s < 7200)
		snprintf(ret_text, TIME_TEXT_SIZE, "%.0f min", s / 60);
	else if (s < 172800)
		snprintf(ret_text, TIME_TEXT_SIZE, "%.1f h", s / 3600);
	else
		snprintf(ret_text, TIME_TEXT_SIZE, "%.0f days", s / 86400);
	return ret_text;
}
