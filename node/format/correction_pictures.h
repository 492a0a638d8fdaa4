/* SPDX-License-Identifier: Apache-2.0 */
/* What the corrections of a PET result look like, for its report: pictures of mu and of the attenuation factors, profiles of the
 * counts. The reconstruction writes it beside the objects as corrections-UID.json, UID being that of the series; reads it there.
 * It is no part of the result: it is never sent, has nothing of a patient but the geometry of the body, and a result without it
 * is complete.
 *
 * {"tomonode": "corrections", "version": 1, "series": UID, "image": [name, number, of] or null, "mu": [3 maps], "acf": map or
 * null, "acf_plane": from 0, "planes": number of direct planes, "radius_mm": [...], "profiles": [{"plane", "position_mm",
 * "prompts", "randoms", "scatter"}]}; a map is {"pixels": [width, height], "size": [2], "range": [lowest, highest], "across":
 * [3], "down": [3], "values": two hexadecimal digits a pixel}. */
#ifndef TOMONODE_NODE_CORRECTION_PICTURES_H
#define TOMONODE_NODE_CORRECTION_PICTURES_H

#include <jansson.h>

#include "kernels/err.h"

#define CORRECTION_PLANES 3  /* of mu; direct planes with profiles at most */
#define CORRECTION_SIDE 512  /* pixels along a side of a picture at most */
#define CORRECTION_BINS 4096 /* radial bins at most */

/* A picture of width x height pixels, rows from the top; lowest + byte / 255 (highest - lowest). */
struct correction_map {
	int width, height;
	double size[2]; /* of the picture along width and height: mm; of a sinogram mm and degrees */
	double lowest, highest;
	double across[3], down[3]; /* unit vectors in the patient (LPS) along width and height; of a sinogram 0 */
	unsigned char *value;	   /* owned; NULL: there is no picture */
};

struct correction_profile {
	int plane;	 /* of the direct planes, from 0 */
	double position; /* mm from the middle of the axial field, along the scanner's z */
	/* [n_radial] expected or measured counts, summed over angles and TOF bins; NULL: not known; owned */
	double *prompts, *randoms, *scatter;
};

struct correction_pictures {  /* starts as {0} */
	char series[65];      /* Series Instance UID of the result */
	char image[24];	      /* "time frame", "gate", "bed": which of several images, "": the result has one */
	int number, n_images; /* from 1; 0: one */
	struct correction_map mu[CORRECTION_PLANES]; /* 1/cm at 511 keV */
	struct correction_map acf;		     /* attenuation correction factors of a direct plane, [angle][radial] */
	int acf_plane, n_planes;		     /* of n_planes direct planes */
	int n_radial, n_profiles;
	double *radius; /* [n_radial], mm; owned */
	struct correction_profile profile[CORRECTION_PLANES];
};

void correction_pictures_clear(struct correction_pictures *p);

/* NULL: no memory. */
json_t *correction_pictures_encode(const struct correction_pictures *p);
/* EBADMSG: something is missing, out of range, or has another form. On success the caller clears *ret_pictures. */
int correction_pictures_decode(const json_t *from, struct correction_pictures *ret_pictures, struct err *err);

/* Write the path of the file of a series in a folder. ENAMETOOLONG. */
int correction_pictures_path(const char *folder, const char *series, char *ret_path, size_t size, struct err *err);
/* Check what correction_pictures_encode() made, possibly on another machine, and write it into the folder of the objects of this
 * series. EBADMSG: as correction_pictures_decode(), or of another series. */
int correction_pictures_write(const json_t *from, const char *folder, const char *series, struct err *err);
/* Read that of a series. ENOENT: there is none; EBADMSG: it is damaged. */
int correction_pictures_read(const char *folder, const char *series, struct correction_pictures *ret_pictures, struct err *err);

#endif
