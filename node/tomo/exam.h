/* SPDX-License-Identifier: Apache-2.0 */
/* Convert the headers of a tomosynthesis case to the values that the reconstruction uses: geometry, orientation, intensity scale.
 * Pixels are read later, one view at a time.
 *
 * Implemented by node/tomo/tomo_open.c and the files exam_*.c; only these files convert tags to geometry. Missing or uncertain
 * values are never guessed: the case is refused with an error (EBADMSG: the data are contradictory or a value is missing;
 * ENOTSUP: an encoding that is not supported; ENOKEY: no geometry profile for this system).
 */
#ifndef TOMONODE_NODE_EXAM_H
#define TOMONODE_NODE_EXAM_H

#include "dicom/core/dataset.h"
#include "dicom/object/attribute.h"
#include "dicom/object/exposure.h"
#include "dicom/object/patient.h"
#include "dicom/object/result_place.h"
#include "dicom/pixels/pixels.h"
#include "dicom/pixels/sco.h"
#include "node/base/digest.h"
#include "node/config/config.h"
#include "recon/core/scan.h"
#include "recon/dbt/air.h"
#include "recon/dbt/prep.h"

/* A series of single-frame mammograms, one multi-frame Breast Projection object, or one Hologic SCO object. */
enum exam_source { EXAM_MG_SERIES = 1, EXAM_BREAST_PROJECTION, EXAM_SCO };

/* Source of a view's I0, the intensity of the unattenuated beam. */
enum i0_source {
	I0_OF_VIEW = 1, /* air in the view itself */
	I0_OF_OTHERS,	/* air in other views of the exam, scaled by the exposure if the headers contain it */
	I0_OF_PROFILE,	/* value or flat field of the profile */
	I0_UNKNOWN,	/* a value of the object: the attenuation is relative */
};

struct exam_i0 {
	double i0; /* stored values above the offset */
	enum i0_source source;
	bool use_flatfield;
	int over_code; /* stored value that is over range and shows air; -1: none */
	struct prep_shadow shadow;
	struct open_field open;
};

/* What the air shows about the open field. */
struct exam_open_field {
	int n_shown;	       /* views that show air */
	int n_along[2];	       /* views whose air determines its slope along x, y */
	int n_varies;	       /* views whose air varies so much that one I0 is wrong */
	bool follows_distance; /* the levels of the views follow the distance of the source, which the profile does not state */
	double variation;      /* largest variation within a view, in ln I0 */
	double spread;	       /* largest difference between views, in ln I0 per exposure */
};

struct exam_view {
	int file;	 /* index into files */
	long frame;	 /* number of the frame in the file, from 0 */
	double angle;	 /* angle of the source, with the profile's sign and offset, degrees; positive toward +y */
	double stated;	 /* angle of the header, with the profile's sign only, degrees */
	bool by_profile; /* the profile defines sign, origin and definition of the angle; false: PS3.3 does */
	double exposure; /* exposure relative to the mean over the views; 1 if the profile does not scale by it */
	double charge;	 /* exposure in mAs according to the header, the same attribute for all views; 0: unknown */
	long largest;	 /* largest stored value according to the header, (0028,0107); 0: none, or not needed */
	char sop_instance[DICOM_UID_SIZE];
};

struct exam {
	enum exam_source source;
	const struct profile_conf *profile; /* borrowed from the configuration */
	bool frames_in_file;		    /* the views are the frames of one object */
	struct sco *sco;		    /* EXAM_SCO: the container of the views */
	bool sco_lower;			    /* in lower resolution, because the object has no other */
	int merged;		 /* bins of the full resolution that a bin has along each axis: 1, or above 1 with sco_lower */
	double rest[3];		 /* source at the angle 0, mm: of the header's matrices if they are used, or the profile */
	struct pose_text *poses; /* projection matrices of the header; NULL: the profile has the geometry */
	struct scan *scan;	 /* geometry with the detector's own bins, views sorted by angle */
	int n_views;
	long announced; /* number of projections according to the headers; 0: unknown, or a multi-frame object */
	struct exam_view *views;
	uint32_t charge_tag; /* attribute that their exposures are from; 0: none */
	size_t n_files;
	char **paths;
	struct dicom_file **files; /* open files; only headers are in memory */
	struct dicom_file *
		patient; /* one of files: the result has its patient and study because a person said so; NULL: nothing was said */
	struct result_place place; /* of the result, set by its writer's caller */
	double thickness;	   /* of the compressed breast, mm */
	double support;		   /* height of the breast support above the detector, mm */
	double window[2]; /* where the images are in the detector: x of their edge at the chest wall, y of their middle, mm */
	const char *sod_meaning; /* to what (0018,1111) is the distance, "the detector"; NULL: it is missing */
	char laterality;	 /* 'L' or 'R' */
	char view[8];		 /* "CC", "MLO", ... */
	/* Orientation of a stored image in the (x, y) plane: stored columns run along +x or -x, stored rows along +y or -y. */
	bool columns_toward_chest, rows_toward_minus_y;
	long band; /* stored values that are read and turned together, about */
	/* Direction cosines of +x, +y, +z in the patient (LPS); for plane orientation and position. */
	double axis[3][3];
	double gantry;			   /* tilt of the tube from above toward medial, degrees; 0 for CC, negative in an LM */
	bool gantry_recorded;		   /* false: the header does not have it; the nominal angle of the view is used */
	struct dicom_pixel_info pixels;	   /* the same for all files */
	struct prep prep;		   /* conversion of stored values to line integrals; the same for all views except i0 */
	struct exam_i0 *i0;		   /* of each view; NULL before exam_decide_i0() */
	struct exam_open_field open_field; /* set by exam_decide_i0() */
	char relative[256];		   /* why the attenuation is relative, a clause; "": it is quantitative, or not decided */
	char geometry[128];		   /* a sentence: where the geometry is from; "": a simulated system */
	char warnings[2048];		   /* sentences about the geometry for a person; "": none */
	struct exam_flatfield *flatfields; /* the profile's flat field; NULL: none, or not needed */
	char flatfield_digest[DIGEST_SIZE]; /* of the content of its files */
	bool flatfield_scaled;		    /* its frames are divided by their exposures */
	float *flatfield;		    /* data that prep.flatfield points to, owned; or NULL */
	double flatfield_level;		    /* mean intensity of the flat field, stored values above the offset */
};

/* Open the exam. as_is: accept another number of instances than the headers announce, because a person requested it. patient:
 * what a person said about headers that name different patients; NULL: nothing, and they are refused with ENOTUNIQ. */
int exam_open(const char *const *paths, size_t n, bool as_is, const struct patient_statement *patient,
	      const struct config *config, struct exam **ret_exam, struct err *err);
struct exam *exam_close(struct exam *exam); /* takes NULL, returns NULL */

#define DARK_PERCENT 2
#define BRIGHT_PERCENT 98

/* What the pixels of one view show about I0. */
enum exam_loss {
	EXAM_NOT_LOST,
	EXAM_ONE_VALUE, /* from end to end */
	EXAM_HALF,	/* at least half of the line has one value */
	EXAM_REPEATED,	/* the values of the line before */
};
enum { EXAM_ROWS, EXAM_COLUMNS };
struct exam_lost {
	enum exam_loss loss;
	int first, n; /* lines; n 0: none */
	int value;    /* stored value of the first */
};
struct view_air {
	struct air air;
	double percentile;   /* stored value, of values in range; only with i0_mode `percentile` and if I0 is unknown */
	double dark, bright; /* intensity below which DARK_PERCENT and BRIGHT_PERCENT of the image are, stored values above the
				offset; 0: not known */
	double centre;	     /* row of the centre of mass of the line integrals; NAN: there is none */
	struct exam_lost lost[2]; /* EXAM_ROWS, EXAM_COLUMNS: the longest run of lines without data between others */
	bool wall_is_air;	  /* the image shows air along the chest wall, and the object at the opposite edge */
};
/* Decide the I0 of all views from the measurements; sets exam->i0 and exam->relative. Not needed for logarithmic values. */
int exam_decide_i0(struct exam *exam, const struct view_air *air, struct err *err);

/* Read the stored values of a view, oriented so that u increases away from the chest wall and v along +y. Several threads may
 * read views of one exam at the same time. */
int exam_read_view(const struct exam *exam, int view, uint16_t *ret_raw, struct err *err);
/* Measure one view. raw: from exam_read_view(). ret_alone: the decision from this view alone, which exam_decide_i0() may change;
 * its i0 is not above 0 if it shows none. */
int exam_measure_view(const struct exam *exam, int view, const uint16_t *raw, struct view_air *ret_air, struct exam_i0 *ret_alone,
		      struct err *err);
/* Return exam->prep for a view with this I0; NULL: logarithmic values, which include it. */
struct prep exam_view_prep(const struct exam *exam, const struct exam_i0 *i0);

/* Write the sentences that a person must read about a result: relative attenuation, then exam->warnings; "": none. */
void exam_warnings(const struct exam *exam, char *ret_text, size_t size);

/* Write the anti-scatter grid that the header of the first view names, such as "FOCUSED\RECIPROCATING"; "": none. */
void exam_grid(const struct exam *exam, char *ret_text, size_t size);

/* Write why the header of the first view says that this is not a whole breast of one thickness, whose shape could be found: a
 * clause; "": it does not. */
void exam_unshaped(const struct exam *exam, char *ret_text, size_t size);

/* Return the digest of the flat field if a view uses it; else "". Call after exam_decide_i0(). */
const char *exam_used_flatfield(const struct exam *exam);

/* Check that this process can read the headers of all files of a flat field; the path is that of a file or a folder. */
int exam_flatfield_readable(const char *path, struct err *err);
/* Set prep->flatfield of a view if the flat field has a frame for each view. buffer: NULL, or from an earlier call; freed by the
 * caller. Call it if the view's I0 has use_flatfield; several threads may, each with its own buffer. */
int exam_load_flatfield(const struct exam *exam, int view, float **buffer, struct prep *prep, struct err *err);

/* Values of one object's header, read before the other objects of its exam are known. */
struct exam_facts {
	char reason[256]; /* why its projections are not supported; "" if they are, or if the object is not a mammogram */
	bool refused;	  /* a known encoding that is not supported (Hologic SCO, CTO) */
	char laterality[4], view[8];
	long expected; /* number of objects of the complete exposure series; 0: not in the header */
	long frames;
	double angle; /* NaN: not in the header */
	/* The system, if its profile may tell the number of objects; "": not in the header, or a multi-frame object. */
	char manufacturer[65], model[65], serial[65];
	struct exposure_facts exposure; /* what tells its exposure from others of the series; "": as above */
};
/* Read the header of one object. Return true for projections in a supported encoding; otherwise only reason and refused are set.
 */
bool exam_facts_of(const struct dicom_file *file, struct exam_facts *ret_facts);

/* Return where the attributes of a view are stored: its file, and its frame in a multi-frame object. */
struct header exam_header(const struct exam *exam, int view);
/* A view of the breast: its name, codes, and where the tube is. */
struct exam_view_kind {
	const char *name, *srt, *sct, *meaning; /* codes: NULL: none */
	double tilt;	 /* nominal angle of the tube from above toward medial, degrees; negative: toward lateral */
	int least, most; /* its magnitude in a header */
	const char *modifier, *modifier_meaning; /* SCT; NULL: none */
};
/* Find a view by its abbreviation; NULL: its place in the patient is not known. */
const struct exam_view_kind *exam_view_kind(const char *name);
/* Compute the direction cosines of the axes for a laterality ('L', 'R') and a tilt as above. */
void orientation_axes(char laterality, double tilt, double ret_axis[3][3]);

#endif
