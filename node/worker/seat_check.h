/* SPDX-License-Identifier: Apache-2.0 */
/* Verify that the objects that a pilot returned belong to its case, before they get their names in the outbox.
 *
 * - Patient (the attributes of dicom/object/patient.h) and Study Instance UID of all objects are those of one image of the case;
 *   if a person decided whose header counts, of that image. Headers that the node's own workers write are copied from one image,
 *   so that nothing else is to be expected.
 * - SOP Class, SOP Instance and Series Instance UID are those in the description of the result. The SOP Instance UIDs differ from
 *   each other, from those of the images, and from those of the results of other studies.
 * - Texts of errors name tags and UIDs, of attributes of a patient the tags alone.
 */
#ifndef TOMONODE_NODE_SEAT_CHECK_H
#define TOMONODE_NODE_SEAT_CHECK_H

#include "node/jobs/case_order.h"

/* detail: of the event `reconstructed`, accepted by pilot_case_objects(). The files are FOLDER/NAME SUFFIX. EBADMSG: an object is
 * not of the case, or is no DICOM file. Other errors are temporary: an image of the case cannot be read. */
int seat_check_result(struct journal *j, const char *spool, const struct case_order *order, const json_t *detail,
		      const char *folder, const char *suffix, struct err *err);

#endif
