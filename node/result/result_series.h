/* What the headers of PET and CT series, made of sinograms, say in the same words. */
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

/* Series and frame of reference. Body Part Examined is there already where the source has it. */
void result_series_fill(const struct result_series *s, struct item_writer *w);
/* What all images of it are, and when they were made. */
void result_series_fill_image(const char *image_type, const struct provenance_time *now, struct item_writer *w);
/* One window for the whole series, which may be narrower than the width of 1 that LINEAR wants; none where lo == hi. */
void result_series_fill_window(double lo, double hi, struct item_writer *w);

#endif
