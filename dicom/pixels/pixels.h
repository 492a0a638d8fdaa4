/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write pixel data frame by frame: read any lossless encoding that DCMTK or OpenJPEG decodes; write uncompressed or
 * JPEG-LS.
 *
 * A frame is an array of rows x columns 16-bit stored values; the column index varies fastest. Values are unchanged: not
 * rescaled, inverted or flipped. Memory is needed for a few frames only. */
#ifndef TOMONODE_DICOM_PIXELS_H
#define TOMONODE_DICOM_PIXELS_H

#include "dicom/core/dataset.h"
#include "dicom/core/pixel_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Read the attributes that describe the pixels, and check them against each other and against the length of the pixel data, which
 * may have some bytes of padding, less than a row and a column. EBADMSG: a contradiction, named in the message; ENOTSUP: lossy or
 * unknown transfer syntax, colour, bits allocated other than 8 or 16; EFBIG: more than 65535 x 65535 pixels, 4096 frames, or 512
 * MiB in one encapsulated frame. */
int dicom_pixels_info(struct dicom_file *file, struct dicom_pixel_info *ret_info, struct err *err);

/* Read frame number `frame` (from 0) into ret_values (rows * columns). 8-bit values are converted to 16 bits; bits above
 * BitsStored are set to 0. After dicom_pixels_info() has succeeded on the file, several threads may read its frames at once. */
int dicom_read_frame(struct dicom_file *file, long frame, uint16_t *ret_values, struct err *err);

/* Read `rows` rows of a frame, from `row` (from 0) on, in the same way. Only if dicom_has_rows(); otherwise a frame is decoded at
 * once. */
bool dicom_has_rows(const struct dicom_file *file);
int dicom_read_rows(struct dicom_file *file, long frame, long row, long rows, uint16_t *ret_values, struct err *err);

/* Write an object of several frames: call open, then frame for each frame in order, then close or abort. The file at `path` is in
 * Explicit VR Little Endian. `header`: data set without pixel data, with Rows, Columns, BitsAllocated 16, and NumberOfFrames if
 * it is not 1; it may be closed after open. PATH.part is written; close syncs it and renames it to PATH. After an error or abort
 * there is no file. Exception: if only the sync of the folder fails, close fails but PATH exists. Errors of open: EFBIG: more
 * than 4 GiB - 2 bytes of pixel data; ENOSPC: too little free disk space, also in frame and fragment; EINVAL: the header is
 * unsuitable. */
struct dicom_writer_options {
	bool jpegls;	    /* call fragment instead of frame */
	uint64_t keep_free; /* bytes of the file system that must stay free: writing fails before it takes them */
	/* Called before the bytes of the file at offset `at` are written, in order, but those of the offset table again at the
	 * end; and after they are written. Both or none. */
	void (*writes)(void *ctx, uint64_t at, const void *bytes, size_t n);
	void (*wrote)(void *ctx);
	void *ctx;
};
struct dicom_writer;
/* options NULL: all members are 0. */
int dicom_writer_open(const char *path, struct dicom_file *header, const struct dicom_writer_options *options,
		      struct dicom_writer **ret_writer, struct err *err);
int dicom_writer_frame(struct dicom_writer *w, const uint16_t *values, struct err *err);
/* With options.jpegls: the object is in JPEG-LS lossless, with one fragment per frame and a basic offset table. `code`: code
 * stream of a frame from jpegls_encode(), which several threads may call. Open does not check the free space for all frames,
 * because their size is not yet known. EFBIG: the code streams exceed 4 GiB. */
int dicom_writer_fragment(struct dicom_writer *w, const void *code, size_t n, struct err *err);
int dicom_writer_close(struct dicom_writer *w, struct err *err); /* frees w in every case */
void dicom_writer_abort(struct dicom_writer *w);		 /* accepts NULL */
/* Use these two instead of close() for many files in one folder. First call sync() for each file, which makes its bytes durable
 * (different writers may be synced in different threads). Then call publish() once: it renames either all files or none, and
 * syncs the folder once. At the end free each writer with abort(), which does not remove a published file. */
int dicom_writer_sync(struct dicom_writer *w, struct err *err);
int dicom_writers_publish(struct dicom_writer *const *writers, size_t n, struct err *err);

/* Write a whole data set without frames in the same way (.part, fsync, rename, fsync of the folder). */
int dicom_write(const char *path, struct dicom_file *file, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
