/* What one instance is, from its header alone: the kind of case that it belongs to and which case of it, or why it belongs to
 * none. The pixel data are not touched. */
#ifndef TOMONODE_NODE_CASE_FACTS_H
#define TOMONODE_NODE_CASE_FACTS_H

#include <stdbool.h>

#include "dicom/core/dataset.h"
#include "node/config/kind.h"

struct case_facts {
	const struct kind *kind; /* NULL: no kind of case that is reconstructed; reason says why */
	char reason[256];
	bool refused; /* an encoding that is known and not read (Hologic SCO, CTO, vendors' raw data): set apart, not ignored */
	char sop_class[DICOM_UID_SIZE], sop_instance[DICOM_UID_SIZE];
	char patient[65]; /* Patient ID; "" where there is none. For the audit trail alone */
	char study[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char laterality[4], view[8];
	long expected; /* instances that make the case complete; 0: the header does not say */
	long frames;
	double angle; /* NaN where the header has none */
};
int case_read_facts(const char *path, struct case_facts *ret_facts, struct err *err);

/* The attributes of the kind's key with "|" between them. */
void case_key(const struct case_facts *f, char *ret_key, size_t size);

#endif
