/* What the manager alone knows, left in the spool for those who show it: SPOOL/node.json. No truth: what is lost, or left by an
 * earlier node, is written again. */
#ifndef TOMONODE_NODE_NODE_REPORT_H
#define TOMONODE_NODE_NODE_REPORT_H

#include <jansson.h>

#include "node/serve/schedule.h"

struct node_report {
	double started;	   /* s since the epoch: of the node */
	char journal[200]; /* what the journal's check at the start found first; "": nothing */
	char *text;	   /* as it was written last; NULL: not yet */
};

/* {"started", "journal", "receiver": bool, "stopping": bool, "devices": [{"name", "device", "state", "disabled", "spare",
 * "reason", "again"}]}; again: s since the epoch when a device that is out is tried. New reference. */
json_t *node_report_make(const struct node_report *r, const struct schedule *s, double now);
/* Written where it differs from the last time. */
void node_report_write(struct node_report *r, const struct schedule *s, double now);
void node_report_clear(struct node_report *r);

#endif
