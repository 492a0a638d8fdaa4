/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: programs of the site that change the volumes of a case before they are written (docs/steps.md).
 *
 * - Each program gets a folder in/ with case.json and volume.f32 in the format of node/reconstruct/case_arrays.h, and makes
 *   volume.f32 and step.json in out/. It is run by somebody else (struct step_runner): this room starts no process.
 * - What it made is checked after it has ended: regular files, the size, every value finite, step.json. The volumes change only
 *   after a step succeeded for all of them. */
#ifndef TOMONODE_NODE_CASE_STEPS_H
#define TOMONODE_NODE_CASE_STEPS_H

#include <jansson.h>

#include "node/config/config.h"
#include "node/reconstruct/case_arrays.h"
#include "recon/core/monitor.h"

struct step_end {
	double seconds;
	uint64_t memory;       /* largest resident memory, bytes */
	int exit_code, signal; /* of the program; signal 0: it ended itself */
};

struct step_runner {
	void *ctx;
	/* Run the program of a step with FOLDER/in and FOLDER/out, with FOLDER/scratch as its temporary folder; nothing of it runs
	 * afterwards. bytes: of its volume. EBADMSG: the step failed, the sentence says how; ECANCELED; others: it could not be
	 * tried. *ret is set in every case. */
	int (*run)(void *ctx, const struct step_conf *step, const char *folder, uint64_t bytes, const struct monitor *monitor,
		   struct step_end *ret, struct err *err);
	char folder[400]; /* in which folders for the steps are made */
};

/* The volumes of a case: of frames or gates several. They are read and replaced slice by slice. */
struct case_volumes {
	float *values; /* [image][z][y][x]; NULL: there is one volume, elsewhere: */
	/* Copy a slice of it to or from host memory. */
	int (*read)(void *ctx, int slice, float *ret, struct err *err);
	int (*replace)(void *ctx, int slice, const float *values, struct err *err);
	void *ctx;
	int n;
	const struct grid *grid;
	const char *unit;     /* of the values */
	const json_t *about;  /* members of case.json, of every image; borrowed */
	const json_t *images; /* array: further members of each; NULL: none; borrowed */
};

/* What a step did. */
struct case_step_report {
	struct step_end end;	       /* of the image that took longest */
	double before, after, largest; /* mean of all images; largest change, as a fraction of the largest value */
	json_t *told;		       /* step.json of the first image, with the different warnings of all; owned */
};

/* Return the bytes that case_step_run() allocates: two slices. */
size_t case_step_bytes(const struct grid *g);
/* Run one step for all volumes, and replace them. *ret_failed: the step failed, and the volumes are as they were; the error is a
 * sentence about it. false: it could not be tried, or was cancelled. */
int case_step_run(const struct step_runner *runner, const struct step_conf *step, const struct case_volumes *v,
		  const struct monitor *monitor, struct case_step_report *ret, bool *ret_failed, struct err *err);

/* Where the volumes of a case are, and what they were made of. */
struct case_origin {
	const double *centre;		 /* [3]: of the grid's axes in the patient, mm; NULL: 0 */
	const double (*axis)[3];	 /* direction cosines of x, y, z in the patient */
	const char *system;		 /* name of scanner or profile; "": none */
	struct dicom_file *const *files; /* [n_files]: the sources; borrowed */
	size_t n_files;
};

struct reconstruct_work;
struct sinogram;
struct case_origin case_steps_origin(const struct sinogram *s);
/* Describe the volumes of a case for case.json: no name, ID, date or UID. scale: of the values of the result. */
json_t *case_steps_about(const struct reconstruct_work *w, const struct case_origin *from, const struct grid *g,
			 const struct case_scale *scale);
/* Has the protocol steps, and is the volume computed here? Otherwise the next one is not called. */
bool case_steps_wanted(const struct reconstruct_work *w);
/* Return the host memory that they need beside the volumes, bytes. */
size_t case_steps_bytes(const struct reconstruct_work *w, const struct grid *g);
/* Run all steps of the protocol. A step that failed and whose `on_failure` is fallback is no longer in w->protocol afterwards.
 * Adds to w->steps and w->notes what the result says of them. ENOTSUP: one failed, hold the case; ECHILD: the case fails. */
int case_steps_apply(struct reconstruct_work *w, const struct case_volumes *v, struct err *err);

#endif
