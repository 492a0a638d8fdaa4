/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of frames (images) to write to files. The caller fills frames; threads of the queue encode them in parallel, and
 * another thread writes them in order. */
#ifndef TOMONODE_NODE_RESULT_FRAMES_H
#define TOMONODE_NODE_RESULT_FRAMES_H

#include <stdbool.h>

#include "dicom/pixels/pixels.h"

struct frames;

/* Create a queue for frames of columns x rows. bits: compress values of so many bits with JPEG-LS, `encoders` frames at a time
 * (each needs the memory of two frames); 0: uncompressed. */
int frames_open(long columns, long rows, int bits, int encoders, struct frames **ret_frames, struct err *err);
/* End the threads; frames not written yet are dropped. Takes NULL, returns NULL. */
struct frames *frames_close(struct frames *f);

/* Return a buffer for the caller to fill with one frame; wait while all buffers are in use. NULL: an earlier frame could not be
 * written; frames_finish() returns the reason. */
uint16_t *frames_acquire(struct frames *f);
/* Submit the frame acquired last as the next frame of `writer` (uncompressed or JPEG-LS, as given to frames_open()). Frames of
 * all writers are written in the order of submission; no other thread may use a writer until frames_finish(). */
void frames_submit(struct frames *f, struct dicom_writer *writer);
/* Wait until all frames are written. Returns the first error, if any. */
int frames_finish(struct frames *f, struct err *err);

#endif
