/* A progress bar on a terminal (stderr) for commands that a person waits for; silent where stderr is no terminal.
 *
 * One line, redrawn at most ten times a second: "reconstruct  [######------]  52 %  0:03". Ctrl-C (SIGINT, SIGTERM) sets a flag
 * that the monitor's cancelled() answers; a second one ends the process as usual.
 */
#ifndef TOMONODE_NODE_PROGRESS_H
#define TOMONODE_NODE_PROGRESS_H

#include <stdbool.h>

#include "recon/core/monitor.h"

struct progress {
	bool terminal; /* stderr is one, and drawing was asked for */
	bool drawn;    /* a line stands there that must be cleared */
	int width;     /* columns */
	double begun;  /* s, of the stage */
	double last;   /* s, of the last drawing */
	char stage[32];
	struct monitor monitor; /* hand &p->monitor to the computation */
};

/* draw false: no bar (--json, --quiet); cancel still works. Installs the signal handlers. */
void progress_start(struct progress *p, bool draw);
/* Draw a stage (fraction 0..1); what monitor.progress calls. */
void progress_show(struct progress *p, const char *stage, double fraction);
bool progress_cancelled(void);
/* Clear the line and give the signals back. */
void progress_stop(struct progress *p);

#endif
