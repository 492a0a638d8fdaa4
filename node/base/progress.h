/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on stderr for interactive commands; nothing is drawn if stderr is not a terminal.
 *
 * One line, redrawn at most ten times a second: "reconstruct  [######------]  52 %  0:13, 0:12 left". The first SIGINT (Ctrl-C) or SIGTERM
 * sets a flag that the monitor's cancelled() returns; the second one ends the process.
 */
#ifndef TOMONODE_NODE_PROGRESS_H
#define TOMONODE_NODE_PROGRESS_H

#include <stdbool.h>

#include "recon/core/monitor.h"

struct progress {
	bool terminal;		/* stderr is a terminal and drawing is on */
	bool drawn;		/* the bar is on the screen and must be cleared */
	int width;		/* columns */
	double begun;		/* s, start of the stage */
	double last;		/* s, time of the last drawing */
	char stage[32];		/* name of the current stage */
	struct monitor monitor; /* pass &p->monitor to the computation */
};

/* Return the seconds that a stage still needs if it goes on as in its first `seconds`; negative: too early to say. */
double progress_left(double seconds, double fraction);
/* Initialise *p and install the signal handlers. draw false (for --json, --quiet): draw no bar, but allow cancelling. */
void progress_start(struct progress *p, bool draw);
/* Clear the line and restore the signal handlers. */
void progress_stop(struct progress *p);

#endif
