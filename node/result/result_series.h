/* Attributes that PET and CT series made from sinograms have in common. */
#ifndef TOMONODE_NODE_RESULT_SERIES_H
#define TOMONODE_NODE_RESULT_SERIES_H

#include "dicom/object/item_writer.h"
#include "node/config/config.h"
#include "node/sinogram/provenance.h"

struct result_series {
	const struct dicom_item *source;
	const struct protocol_conf *protocol;
	const char *modality, *name; /* "PT", "PET" */
	const char *uid;
};

/* Write series and frame of reference. Body Part Examined must already be copied if the source has it. */
void result_series_fill(const struct result_series *s, struct item_writer *w);
/* Write Image Type and creation times, which all images of the series share. */
void result_series_fill_image(const char *image_type, const struct provenance_time *now, struct item_writer *w);
/* Write one display window for the whole series. It may be narrower than 1, the smallest width of LINEAR; the function is
 * LINEAR_EXACT. No window if lo == hi.
 */
void result_series_fill_window(double lo, double hi, struct item_writer *w);

#endif
