/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the sources of events of node/sinogram/sinogram_list.h. Private to this folder. */
#ifndef TOMONODE_NODE_SINOGRAM_LIST_INTERNAL_H
#define TOMONODE_NODE_SINOGRAM_LIST_INTERNAL_H

#include "node/sinogram/sinogram_list.h"
#include "recon/pet/michelogram_pairs.h"

#define LIST_TEXT 300

/* Events of a file, in the order of their times. */
struct list_source {
	void *ctx;
	int (*rewind)(void *ctx, struct err *err);
	/* Read at most `most` prompts that are used, and the time of each, ms since the start; *ret_n: 0 only at the end. */
	int (*read)(void *ctx, struct event *ret, uint32_t *ret_ms, size_t most, size_t *ret_n, struct err *err);
	/* From the next rewind() on, read() delivers the delayed coincidences instead of the prompts, or prompts again. NULL:
	 * those that there are, are the role DELAYEDS. */
	void (*choose)(void *ctx, bool delayed);
	void (*free)(void *ctx);
};

struct sinogram_list {
	struct pet_list data; /* n_events and events: sinogram_list.c; the rest: the source, which owns it */
	struct sinogram_list_report report;
	struct list_source source;
	const struct pet_images *frames; /* borrowed */
	size_t *count;			 /* [frame]: events; one element without frames */
	int frame;			 /* chosen one */
	struct pet_images_near near;
	struct event *kept; /* of all frames; NULL: read them again */
	size_t n_kept, room, at;
	uint32_t *ms;	/* of a piece */
	uint64_t *dead; /* prompts that the source did not deliver since rewind() */
	/* sinogram_list_bins.c; n_angles = 0: no bins. place: [detector] ring, crystal, borrowed from the source; NULL: detectors
	 * are numbered by rings */
	struct michelogram bins;
	struct michelogram_index index;
	const uint16_t (*place)[2];
	char geometry[LIST_TEXT];
	char note[600]; /* sentences of the source */
};

/* Create a list whose source is set by the caller; list_free() calls the source's free(). frames: borrowed. */
struct sinogram_list *list_new(const struct pet_images *frames, struct err *err);
struct sinogram_list *list_free(struct sinogram_list *l); /* accepts NULL; returns NULL */
/* Read, check and count all events; keep them if they fit into `most` bytes. */
int list_load(struct sinogram_list *l, size_t most, struct err *err);
size_t list_memory(void); /* bytes that the events of a list may have */
void list_choose_frame(struct sinogram_list *l, int frame);
/* Make the michelogram and the TOF bins of l->data the bins of its events. EINVAL: as michelogram_index_init(). */
int list_set_bins(struct sinogram_list *l, const uint16_t (*place)[2], struct err *err);
/* Name the corrections that were not made: "randoms, scatter and dead time"; "": none. made: of struct sinogram. */
void list_missing(int made, char *ret, size_t size);

/* sinogram_list_bins.c: convert counts in place, once all are counted: a float cannot count beyond 16777216. */
void list_to_floats(uint32_t *counts, size_t n);

#endif
