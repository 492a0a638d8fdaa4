#include "node/jobs/operator_warnings.h"

#include <stdio.h>

#include "node/store/orphans.h"

bool operator_warning_orphans(const char *spool, uint64_t images, char ret[OPERATOR_WARNING_SIZE])
{
	ret[0] = '\0';
	if (images == 0)
		return false;
	snprintf(ret, OPERATOR_WARNING_SIZE,
		 "%llu %s in %s/%s that the journal does not name: a crash left %s, or this is an older journal. "
		 "Send %s to this node again (storescu; what it has already is not taken twice), then remove %s.",
		 (unsigned long long)images, images == 1 ? "image lies" : "images lie", spool, ORPHANS_FOLDER,
		 images == 1 ? "it" : "them", images == 1 ? "it" : "them", images == 1 ? "it" : "them");
	return true;
}

bool operator_warning_journal(const char *problem, char ret[OPERATOR_WARNING_SIZE])
{
	ret[0] = '\0';
	if (!problem || !problem[0])
		return false;
	snprintf(ret, OPERATOR_WARNING_SIZE,
		 "The journal was found damaged when the node was started: %s. Cases may stand still; new images are taken in "
		 "and kept. Let the node deliver what it can, then put a backup back, or move the spool away and send its "
		 "images again (manual: Backup).",
		 problem);
	return true;
}
