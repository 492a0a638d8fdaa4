/* A case's projections as the reconstruction wants them: geometry, orientation, intensity scale; pixels stay on disk.
 *
 * node/tomo/tomo_open.c and the files exam_*.c, the one place where tags become geometry, implement it. Whatever cannot be
 * known for sure is refused with a sentence (EBADMSG: the data contradict themselves or miss a value; ENOTSUP: an encoding we do
 * not read; ENOKEY: no geometry profile for this system), never guessed.
 */
#ifndef TOMONODE_NODE_EXAM_H
#define TOMONODE_NODE_EXAM_H

#include "dicom/core/dataset.h"
#include "dicom/object/attribute.h"
#include "dicom/pixels/pixels.h"
#include "node/config/config.h"
#include "recon/core/scan.h"
#include "recon/dbt/prep.h"

enum exam_source { EXAM_MG_SERIES = 1, EXAM_BREAST_PROJECTION };

struct exam_view {
	int file;	 /* index into files */
	long frame;	 /* 0.. */
	double angle;	 /* degrees, after the profile's sign and offset: positive toward +y */
	double exposure; /* relative to the mean over the views; 1 when not scaled */
	long largest;	 /* stored value that its header gives as the largest, (0028,0107); 0: none, or not needed */
	char sop_instance[DICOM_UID_SIZE];
};

struct exam {
	enum exam_source source;
	const struct profile_conf *profile; /* borrowed from the configuration */
	struct scan *scan;		    /* the detector's own bins, views sorted by angle */
	int n_views;
	long announced; /* projections that the headers say there are; 0: they do not, or it is one object */
	struct exam_view *views;
	size_t n_files;
	char **paths;
	struct dicom_file **files; /* headers, open */
	double thickness;	   /* of the compressed breast, mm */
	double support;		   /* mm above the detector */
	char laterality;	   /* 'L' or 'R' */
	char view[8];		   /* "CC", "MLO" */
	/* How a stored image lies in the (x, y) plane: stored column runs along +x or -x, stored row along +y or -y. */
	bool columns_toward_chest, rows_toward_minus_y;
	/* Direction cosines of +x, +y, +z in the patient (LPS); used for plane orientation and position. */
	double axis[3][3];
	double gantry;	      /* degrees the gantry is turned out of the vertical; 0 for CC */
	bool gantry_recorded; /* false: an MLO whose header does not say; 45 degrees, the view's nominal angle, was taken */
	struct dicom_pixel_info pixels; /* the same for all files */
	struct prep prep;		/* the same for all views but i0 */
	float *flatfield;		/* what prep.flatfield points to, or NULL */
	double flatfield_level;		/* its mean intensity, stored values above the offset */
};

/* as_is: a person said that what is here is to be taken, though the headers announce another number. */
int exam_open(const char *const *paths, size_t n, bool as_is, const struct config *config, struct exam **ret_exam,
	      struct err *err);
struct exam *exam_close(struct exam *exam); /* takes NULL, returns NULL */

/* The stored values of a view, turned so that u runs away from the chest wall and v along +y, and the prep for it (i0 filled in).
 * Several threads may read views of one exam at the same time. */
int exam_read_view(const struct exam *exam, int view, uint16_t *ret_raw, struct prep *ret_prep, struct err *err);

/* What one object says of its exam; the header alone. */
struct exam_facts {
	char reason[256]; /* why it holds no projections that we read; "": it does, or it has nothing to do with mammography */
	bool refused;	  /* an encoding that we know and do not read (Hologic SCO, CTO) */
	char laterality[4], view[8];
	long expected; /* objects that make the exposure series complete; 0: the header does not say */
	long frames;
	double angle; /* NaN where the header has none */
};
/* Projections that we read? Else only reason and refused are set. */
bool exam_facts_of(const struct dicom_file *file, struct exam_facts *ret_facts);

/* Where the attributes of a view stand: its file, and its frame in a multi-frame object. */
struct header exam_header(const struct exam *exam, int view);
/* Direction cosines for a laterality ('L', 'R'), a view ("CC", "MLO") and a gantry angle in degrees. */
void orientation_axes(char laterality, const char *view, double gantry, double ret_axis[3][3]);

#endif
