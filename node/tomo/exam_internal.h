/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/tomo/exam.h. Private to them. */
#ifndef TOMONODE_NODE_EXAM_INTERNAL_H
#define TOMONODE_NODE_EXAM_INTERNAL_H

#include <math.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/tomo/exam.h"
#include "node/tomo/pose_text.h"

/* exam_facts.c: return true if an object contains projections in a supported encoding, and set *ret_source. Otherwise write the
 * cause to `reason` ("": not a mammogram) and set *ret_refused, see struct exam_facts. */
bool exam_class(const struct dicom_item *root, enum exam_source *ret_source, bool *ret_refused, char *reason, size_t size);

/* tomo_open.c: find the geometry profile of the system; sets exam->profile. ENOKEY: there is none. */
int exam_find_profile(struct exam *exam, const struct config *config, struct err *err);

/* exam_side.c: return 'L' or 'R'; 0: none; 'B' and others unchanged. */
char header_laterality(const struct header *h);
/* EBADMSG: attributes that say the same, of the breast's side or of the view, contradict each other. */
int header_check_side(const struct header *h, struct err *err);
/* exam_view_code.c: the same of the view alone. */
int header_check_view(const struct header *h, struct err *err);
/* Return "CC", "MLO", or another view's name ("ML", "LM", ...) or code; "": none. */
void header_view(const struct header *h, char *ret_view, size_t size);
/* Return true if the breast is raised above the support (magnification). */
bool header_magnified(const struct header *h);

/* exam_orientation.c: compute the axes of the scan in the patient and the orientation of the stored image; sets exam->axis,
 * exam->columns_toward_chest, exam->rows_toward_minus_y. */
int exam_orient(struct exam *exam, struct err *err);
/* Compare a Patient Orientation such as "A\R" with the axes: find the directions of columns and rows. */
int orientation_parse(const char *text, const double axis[3][3], bool *ret_columns_toward_chest, bool *ret_rows_toward_minus_y,
		      struct err *err);
/* Mirror an image between stored orientation and scan axes (u along +x, v along +y); the same call mirrors it back. */
void orientation_turn(uint16_t *values, size_t columns, size_t rows, bool mirror_columns, bool mirror_rows);

/* exam_consistency.c: check that all files belong to one exposure series. */
int exam_check_consistency(const struct exam *exam, struct err *err);
/* Check that all frames of a multi-frame object have the same values. Call after exam_list_views(). */
int exam_check_frames(const struct exam *exam, struct err *err);

/* exam_pose.c: read the projection matrices of the header; sets exam->poses. */
int exam_read_poses(struct exam *exam, struct err *err);
/* Convert them to the bins and axes of the scan, and compare them with profile and angles. pitch: of the detector's bins, mm.
 * The caller frees *ret_matrix, n_views matrices. ret_rest: the source at the angle 0. */
int exam_pose_matrices(const struct exam *exam, double pitch, double (**ret_matrix)[12], double ret_rest[3], struct err *err);

#define EXAM_VIEWS_MAX 1024 /* maximum number of projections */

/* exam_views.c: list the projections with their angles, sorted; sets exam->views and exam->n_views. */
int exam_list_views(struct exam *exam, bool as_is, struct err *err);

/* Write the name of a view, "projection7.dcm" or "frame 7", and return it. */
const char *exam_view_name(const struct exam *exam, const struct exam_view *v, char *buf, size_t size);

/* exam_angles.c: refuse two projections at one angle; warn of angles that no known system has. Needs the sorted views. */
int exam_check_angles(struct exam *exam, struct err *err);

/* exam_exposures.c: refuse projections of more than one sweep, by their headers; warn of signs that prove none. */
int exam_check_exposures(struct exam *exam, struct err *err);
/* Write the attribute that tells their exposures apart, and how many images have which value; "": none does. */
void exam_name_exposures(const struct exam *exam, char *ret_text, size_t size);

/* Read the angle of a projection of a file; frame: -1: of a single-frame object. */
int exam_read_angle(const struct exam *exam, struct dicom_file *file, long frame, struct exam_view *ret_view, struct err *err);

/* exam_geometry.c: add a sentence to exam->warnings. */
void exam_warn(struct exam *exam, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write from the profile where the geometry is from; sets exam->geometry and warns if no machine was measured. */
void exam_geometry_source(struct exam *exam);
/* exam_detector.c: read the size of a bin, mm. Needs exam->thickness. */
int exam_read_pitch(struct exam *exam, const struct header *h, double *ret_pitch, struct err *err);
/* Read which part of the detector the images show; sets exam->window. Needs the orientation. */
int exam_read_window(struct exam *exam, const struct header *h, double pitch, struct err *err);
/* exam_geometry.c: check detector pitch, distances and thickness against the profile; sets exam->scan. */
int exam_make_scan(struct exam *exam, struct err *err);

/* exam_intensity.c: determine how to convert stored values to intensities; sets exam->prep and the exposures of
 * the views. */
int exam_intensity(struct exam *exam, struct err *err);
/* Return the exposure of this attribute in mAs, or of another one if the units of both are certain; 0: none. */
double exam_read_charge(const struct header *h, uint32_t tag);
/* Every so many rows of a view are enough for its levels. */
static inline int exam_row_step(const struct prep *p)
{
	const int enough = 256;

	return p->n_v > enough ? p->n_v / enough : 1;
}

/* exam_edges.c: return true if a view shows air all along its chest wall, and the object at a part of the opposite edge. raw: as
 * for exam_measure_view(). */
bool exam_wall_is_air(const struct prep *p, const uint16_t *raw);
/* Warn if most views do: the breast is where the orientation says that it is not. */
void exam_warn_edges(struct exam *exam, const struct view_air *air);
/* exam_counts.c: measure dark and bright of *ret, whose shadow is known. hist: overwritten. */
void exam_measure_levels(const struct prep *p, const uint16_t *raw, uint32_t hist[PREP_VALUES], struct view_air *ret);
/* exam_rows.c: measure centre and lost rows of *ret, whose shadow and levels are known. */
void exam_measure_rows(const struct prep *p, const uint16_t *raw, struct view_air *ret);
/* Warn of lost rows, and if the shadow of the object does not move as the angles say. */
void exam_warn_rows(struct exam *exam, const struct view_air *air);
/* exam_counts.c: compare the levels of the views, relative to their I0, with those of their neighbours. Use the air of a view
 * itself where it explains the difference, with a warning; else the attenuation is relative. */
void exam_check_counts(struct exam *exam, const struct view_air *air, struct exam_i0 *i0);
/* exam_flatfield.c: open the profile's flat field, and find the frame of each view; sets exam->flatfields, exam->flatfield_level.
 */
int exam_open_flatfield(struct exam *exam, struct err *err);
/* exam_flatness.c: what a flat field shows that is none; 0: nothing. */
struct exam_flatness {
	double dark;  /* part of the field that is darker than a third of its bright part */
	double spot;  /* part of the image that the field covers, if it is a small one */
	double rough; /* root mean square of what a smooth field leaves of the logarithm */
};
struct exam_flatness exam_flatness_of(const struct prep *p, const uint16_t *raw);
/* Return the exposure of the flat field at 0 degrees in mAs, from exam->charge_tag; 0: not all of its frames have one. *ret_lo,
 * *ret_hi: the smallest and the largest of its frames. */
double exam_flatfield_charge(const struct exam *exam, double *ret_lo, double *ret_hi);
/* Return whether the flat field has a frame for each angle. */
bool exam_flatfield_of_angles(const struct exam *exam);
struct exam_flatfield *exam_close_flatfield(struct exam_flatfield *set); /* takes NULL, returns NULL */
/* Convert a stored value to intensity above the detector's offset. */
double exam_value_intensity(const struct prep *prep, double value);
/* Return the I0 of one view according to the profile, for every i0_mode but `percentile`: above 0, or 0: none. *ret_value: the
 * stored value that it is from, or -1. */
double exam_profile_i0(const struct exam *exam, int view, double *ret_value);

#endif
