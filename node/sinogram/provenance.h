/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that every created object has, whatever its class: patient and study copied from the source, equipment, times, and
 * UIDs that are computed from the sources. */
#ifndef TOMONODE_NODE_PROVENANCE_H
#define TOMONODE_NODE_PROVENANCE_H

#include "dicom/object/item_writer.h"

/* Compute a UID from `text` and the SOP Instance UIDs of the files. The order of the files does not matter. */
void provenance_uid(const char *text, struct dicom_file *const *files, size_t n_files, char ret_uid[DICOM_UID_SIZE]);

/* A time as DA, TM and DT values, in the time zone of the source (0008,0201), or of this computer if the source has none. */
struct provenance_time {
	char date[9], time[14], date_time[27];
};
/* Format now (s since the epoch) in the time zone of source; NULL or without one: the local time zone. */
void provenance_format_time(const struct dicom_item *source, double now, struct provenance_time *ret_time);

/* Copy patient, study, order, place and clinical trial byte for byte, with the character set. If the source has no Patient's Age,
 * compute it. */
void provenance_fill_patient(const struct dicom_item *source, struct item_writer *root);
/* Write Manufacturer and the rest of General Equipment, and Instance Creator UID, for this program. */
void provenance_fill_equipment(struct item_writer *root);
/* Write the Frame of Reference UID: the source's, or one computed from its series. It does not depend on the protocol, so that
 * all results of the same data overlay. */
void provenance_fill_frame(const struct dicom_item *source, struct item_writer *root);
/* Write Source Instance Sequence and Common Instance Reference, which name every source. For sources that are raw data, not
 * images. */
void provenance_fill_references(struct dicom_file *const *files, size_t n_files, struct item_writer *root);
/* Write Contributing Equipment: the modality as given in the source, and this program with its recipe (at most 1024 characters).
 */
void provenance_fill_contributing_equipment(const struct dicom_item *source, const struct provenance_time *time,
					    const char *recipe, struct item_writer *root);

#endif
