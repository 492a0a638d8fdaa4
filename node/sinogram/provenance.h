/* SPDX-License-Identifier: Apache-2.0 */
/* Write the attributes that all objects created by this program have: patient and study, copied from the source; equipment;
 * times; UIDs, computed from those of the sources. */
#ifndef TOMONODE_NODE_PROVENANCE_H
#define TOMONODE_NODE_PROVENANCE_H

#include "dicom/object/item_writer.h"
#include "dicom/object/result_place.h"

/* Compute a UID from `text` and the SOP Instance UIDs of the files. The order of the files does not matter.
 * Without memory it is empty, and no object may be written: another UID would make a second result of the same case. */
void provenance_uid(const char *text, struct dicom_file *const *files, size_t n_files, char ret_uid[DICOM_UID_SIZE]);

/* A time as DA, TM and DT values, in the time zone of the source (0008,0201), or of this computer if the source has none. */
struct provenance_time {
	char date[9], time[14], date_time[27];
};
/* Format `now` (s since the epoch) in the time zone of `source`. Use the local time zone if source is NULL or has none. */
void provenance_format_time(const struct dicom_item *source, double now, struct provenance_time *ret_time);

/* Copy the attributes of patient, study, order, institution and clinical trial byte for byte, with the character set. If the
 * source has no Patient's Age, compute it. */
void provenance_fill_patient(const struct dicom_item *source, struct item_writer *root);
/* Write a sentence, with a space before it, about the file whose patient and study a person chose for the result; NULL: "". */
void provenance_patient_text(struct dicom_file *patient, char *ret_text, size_t size);
/* Write what the UIDs of a result that was made again depend on in addition, and the sentences with a space before each that its
 * derivation description has, those about steps among them; "": there is nothing to say. */
void provenance_place_seed(const struct result_place *place, char *ret_text, size_t size);
void provenance_place_text(const struct result_place *place, char *ret_text, size_t size);
/* Write who computed a volume outside of this program, with a space behind it: the beginning of its derivation description; "": it
 * was computed here. */
#define PROVENANCE_OUTSIDE_SIZE 480
#define PROVENANCE_OUTSIDE_BEGIN "Volume computed outside tomonode by "
void provenance_outside_text(const struct result_place *place, char ret_text[PROVENANCE_OUTSIDE_SIZE]);
#define PROVENANCE_TITLE_SIZE 128
/* Append to a Series Description, a text of PROVENANCE_TITLE_SIZE bytes, the settings by which the result differs from its
 * protocol: ", iterations=4, matrix=96". It becomes at most 64 characters long (LO): what is before the settings is cut off, but
 * not to less than 40 characters; settings that have no room are left out as a whole, with ", +3 more #5d1c" instead: their
 * number, and four digits of a digest of all settings, which tell two results apart that differ only in these. The description of a
 * volume from outside names its program instead. */
void provenance_place_title(const struct result_place *place, char *title);
/* Write Related Series Sequence with the series that the result was made again after, if there is one (PS3.3 C.7.3.1). */
void provenance_fill_place(const struct result_place *place, const struct dicom_item *source, struct item_writer *root);
/* Write Manufacturer and the rest of General Equipment, and Instance Creator UID, for this program. */
void provenance_fill_equipment(struct item_writer *root);
/* Write the Frame of Reference UID: that of the source, or one computed from its series. It does not depend on the protocol, so
 * that viewers can overlay all results of the same data. */
void provenance_fill_frame(const struct dicom_item *source, struct item_writer *root);
/* Write Source Instance Sequence and Common Instance Reference with the UIDs of all sources. For raw data, not for images. */
void provenance_fill_references(struct dicom_file *const *files, size_t n_files, struct item_writer *root);

/* How the values of an object were computed. */
struct provenance_recipe {
	const char *values;			   /* facts of the object: "units=HU" */
	const char *device;			   /* that reconstructed */
	const char *protocol_name, *protocol;	   /* protocol: "key=value ..." */
	const char *geometry_kind, *geometry_name; /* "scanner"; NULL: the geometry has no name */
	const char *geometry;			   /* "key=value ..." */
	const char *further;			   /* included only in the digest; NULL: nothing */
	const struct result_place *place; /* a volume from outside has an item of its own, and no parameters of the protocol */
	const char *origins;		  /* of the facts of the source (node/sinogram/fact_origins.h); NULL: none */
};
/* Write Contributing Equipment: the modality as given in the source, and this program with the recipe in its Contribution
 * Description (0018,A003), as one text of at most 1024 characters: sha256=HEX VALUES device="..." protocol="NAME: key=value ..."
 * KIND="NAME: key=value ...". The digest is that of program version, device, protocol, geometry and `further` in full, joined by
 * newlines. A longer text is cut at the end; its digest still distinguishes recipes. The origins are the Contribution Description
 * of the modality. */
void provenance_fill_contributing_equipment(const struct dicom_item *source, const struct provenance_time *time,
					    const struct provenance_recipe *recipe, struct item_writer *root);

/* Return the length of the first sentences of a text that have together at most `room` characters. */
int provenance_fitting(const char *text, int room);

#endif
