/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/operator_warnings.h"

#include <stdio.h>

#include "node/store/orphans.h"

bool operator_warning_orphans(const char *spool, uint64_t images, char ret[OPERATOR_WARNING_SIZE])
{
	ret[0] = '\0';
	if (images == 0)
		return false;
	snprintf(ret, OPERATOR_WARNING_SIZE,
		 "%llu %s in %s/%s but not in the journal: a crash left %s, or this is an older journal. "
		 "Send %s to this node again (storescu; images that it has are not stored twice), then remove %s.",
		 (unsigned long long)images, images == 1 ? "image is" : "images are", spool, ORPHANS_FOLDER,
		 images == 1 ? "it" : "them", images == 1 ? "it" : "them", images == 1 ? "it" : "them");
	return true;
}

bool operator_warning_journal(const char *problem, char ret[OPERATOR_WARNING_SIZE])
{
	ret[0] = '\0';
	if (!problem || !problem[0])
		return false;
	snprintf(ret, OPERATOR_WARNING_SIZE,
		 "The journal was found damaged when the node was started: %s. Cases may not continue; new images are accepted "
		 "and kept. Let the node deliver what it can, then restore a backup, or move the spool away and send its "
		 "images again (manual: Backup).",
		 problem);
	return true;
}
