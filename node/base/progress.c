/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - the progress bar of `recon` and `simulate`; see progress.h.
 * Signals only set a flag. The computation checks it through the monitor and stops cleanly, so that no half-written file is left.
 */
#include "node/base/progress.h"
#include "kernels/clock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_SECONDS 0.1
#define BAR_MAX 40
#define LEFT_SECONDS 3 /* the least from which the rest is told */
#define LEFT_FRACTION 0.01

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = 1;
	signal(number, SIG_DFL); /* a second signal ends the process */
}

double progress_left(double seconds, double fraction)
{
	return seconds < LEFT_SECONDS || !(fraction >= LEFT_FRACTION) ? -1 : seconds * (1 - fraction) / fraction;
}

/* Draw a stage (fraction 0..1). */
static void show_stage(void *ctx, const char *stage, double fraction)
{
	struct progress *p = ctx;
	double now = clock_seconds();
	char rest[40] = "";
	int bar, filled;
	double left;
	long spent;

	if (!p->terminal)
		return;
	if (!(fraction >= 0))
		fraction = 0;
	if (fraction > 1)
		fraction = 1;
	if (strncmp(stage, p->stage, sizeof(p->stage) - 1) != 0) {
		snprintf(p->stage, sizeof(p->stage), "%s", stage);
		p->begun = now;
	} else if (now - p->last < REDRAW_SECONDS && fraction < 1) {
		return;
	}
	p->last = now;
	p->drawn = true;
	spent = (long)(now - p->begun);
	left = progress_left(now - p->begun, fraction);
	if (left >= 0)
		snprintf(rest, sizeof(rest), ", %ld:%02ld left", (long)left / 60, (long)left % 60);
	bar = p->width - 40 - (int)strlen(rest); /* stage 14, percent and time 20, brackets and blanks */
	bar = bar > BAR_MAX ? BAR_MAX : bar < 0 ? 0 : bar;
	filled = (int)(fraction * bar + 0.5);
	fprintf(stderr, "\r%-14.14s [%.*s%*s] %3.0f %%  %ld:%02ld%s\033[K", p->stage, filled,
		"########################################", bar - filled, "", 100 * fraction, spent / 60, spent % 60, rest);
	fflush(stderr);
}

static bool is_cancelled(void *ctx)
{
	(void)ctx;
	return interrupted != 0;
}

void progress_start(struct progress *p, bool draw)
{
	struct winsize size;

	memset(p, 0, sizeof(*p));
	p->terminal = draw && isatty(STDERR_FILENO);
	p->width = 80;
	if (p->terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		p->width = size.ws_col;
	p->monitor = (struct monitor){.ctx = p, .progress = show_stage, .cancelled = is_cancelled};
	interrupted = 0;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
}

void progress_stop(struct progress *p)
{
	if (p->drawn) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	p->drawn = false;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}
