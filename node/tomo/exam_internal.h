/* What the files that make up node/tomo/exam.h share; nobody else includes it. */
#ifndef TOMONODE_NODE_EXAM_INTERNAL_H
#define TOMONODE_NODE_EXAM_INTERNAL_H

#include <math.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/tomo/exam.h"

/* exam_facts.c: does an object hold projections that we read (*ret_source says of which kind)? Else reason says why not, "": it
 * is nothing that has to do with mammography; refused: see struct exam_facts. */
bool exam_class(const struct dicom_item *root, enum exam_source *ret_source, bool *ret_refused, char *reason, size_t size);

/* exam_view_code.c: laterality and view. */
/* 'L' or 'R'; 0: none; 'B' and others as they are. */
char header_laterality(const struct header *h);
/* "CC", "MLO", or another view's name ("ML", "LM", ...) or code; "" when there is none. */
void header_view(const struct header *h, char *ret_view, size_t size);
/* Is the breast lifted off the support (magnification)? */
bool header_magnified(const struct header *h);

/* exam_orientation.c: the scan's axes in the patient, and how the stored image lies in them. */
int exam_orient(struct exam *exam, struct err *err);
/* "A\R" against the axes: which way columns and rows run. */
int orientation_parse(const char *text, const double axis[3][3], bool *ret_columns_toward_chest, bool *ret_rows_toward_minus_y,
		      struct err *err);
/* Turn a stored image so that u runs along +x and v along +y, or back: the same operation. */
void orientation_turn(uint16_t *values, size_t columns, size_t rows, bool mirror_columns, bool mirror_rows);

/* exam_consistency.c: do all files belong to one exposure series? */
int exam_check_consistency(const struct exam *exam, struct err *err);
/* Do all frames of a multi-frame object say the same? After exam_list_views(). */
int exam_check_frames(const struct exam *exam, struct err *err);

#define EXAM_VIEWS_MAX 1024

/* exam_views.c: projections with their angles, sorted; exam->views and exam->n_views. */
int exam_list_views(struct exam *exam, bool as_is, struct err *err);

/* exam_geometry.c: detector pitch, distances, thickness against the profile; makes exam->scan. */
int exam_make_scan(struct exam *exam, struct err *err);

/* exam_intensity.c: how stored values become intensities; exam->prep, exam->flatfield, exposures of the views. */
int exam_intensity(struct exam *exam, struct err *err);
/* I0 of one view; raw: its stored values, turned. */
int exam_view_i0(const struct exam *exam, int view, const uint16_t *raw, double *ret_i0, struct err *err);

#endif
