/* Frames on their way into the files: filled by one thread, encoded by others, written in order by one more. */
#ifndef TOMONODE_NODE_RESULT_FRAMES_H
#define TOMONODE_NODE_RESULT_FRAMES_H

#include <stdbool.h>

#include "dicom/pixels/pixels.h"

struct frames;

/* For frames of columns x rows. encode: JPEG-LS, `encoders` frames at a time (each costs memory of two frames); else plain. */
int frames_open(long columns, long rows, bool encode, int encoders, struct frames **ret_frames, struct err *err);
/* Ends its threads; what is not written yet is dropped. Takes NULL, returns NULL. */
struct frames *frames_close(struct frames *f);

/* Room for one frame; waits while all is taken. NULL: a frame given before could not be written, frames_finish()
 * has the reason. */
uint16_t *frames_acquire(struct frames *f);
/* The frame just taken is filled: it becomes the next one of `writer` (plain or JPEG-LS, as the frames are). Frames are written
 * in the order in which they were given, over all writers; no other thread may use a writer until frames_finish(). */
void frames_submit(struct frames *f, struct dicom_writer *writer);
/* Wait until all are written. The first error, if there was one. */
int frames_finish(struct frames *f, struct err *err);

#endif
