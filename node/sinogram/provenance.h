/* What every object made here says about where it comes from, whatever its class: patient and study as the source has them, the
 * machines, times, and UIDs that follow from the sources. */
#ifndef TOMONODE_NODE_PROVENANCE_H
#define TOMONODE_NODE_PROVENANCE_H

#include "dicom/object/item_writer.h"

/* A UID that is a pure function of `text` and of the SOP Instance UIDs of the files, in whatever order these come. */
void provenance_uid(const char *text, struct dicom_file *const *files, size_t n_files, char ret_uid[DICOM_UID_SIZE]);

/* A moment as DA, TM and DT; of the time zone that the source counts in (0008,0201), else of the node's. */
struct provenance_time {
	char date[9], time[14], date_time[27];
};
void provenance_time(const struct dicom_item *source, double now, struct provenance_time *ret_time);

/* Patient, study, order, place and clinical trial: copied byte for byte, with the character set. Patient's Age is computed where
 * the source has none. */
void provenance_fill_patient(const struct dicom_item *source, struct item_writer *root);
/* This program: Manufacturer and the rest of General Equipment, Instance Creator UID. */
void provenance_fill_equipment(struct item_writer *root);
/* Frame of Reference UID: the source's, or one of its series, whatever the protocol: what is made of the same data overlays. */
void provenance_fill_frame(const struct dicom_item *source, struct item_writer *root);
/* Sources that are raw data, no images: Source Instance Sequence and Common Instance Reference name every one of them. */
void provenance_fill_references(struct dicom_file *const *files, size_t n_files, struct item_writer *root);
/* Contributing Equipment: the modality out of the source, and this program with its recipe (at most 1024 characters). */
void provenance_fill_contributing_equipment(const struct dicom_item *source, const struct provenance_time *time,
					    const char *recipe, struct item_writer *root);

#endif
