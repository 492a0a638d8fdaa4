/* SPDX-License-Identifier: Apache-2.0 */
/* Pixel data, frame by frame: read any lossless encoding that DCMTK decodes, write objects as a stream, plain or JPEG-LS.
 *
 * A frame is rows x columns 16-bit stored values, columns fastest, as stored (no rescale, no polarity, no flip). Memory is needed
 * for a few frames only, whatever their number. */
#ifndef TOMONODE_DICOM_PIXELS_H
#define TOMONODE_DICOM_PIXELS_H

#include "dicom/core/dataset.h"
#include "dicom/core/pixel_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Read the pixel description and check its consistency and the length of the pixel data. EBADMSG: they do not fit, and the
 * message says what; ENOTSUP: lossy or unknown transfer syntax, colour, bits allocated other than 8 or 16; EFBIG: above 65535 x
 * 65535, 4096 frames, or 512 MiB in one encapsulated frame. */
int dicom_pixels_info(struct dicom_file *file, struct dicom_pixel_info *ret_info, struct err *err);

/* Read frame 0..frames-1 into ret_values (rows * columns). 8-bit values are widened, bits above BitsStored are masked off. After
 * dicom_pixels_info() has succeeded on the file, several threads may read its frames at the same time. */
int dicom_read_frame(struct dicom_file *file, long frame, uint16_t *ret_values, struct err *err);

/* Write `header` (a data set without pixel data; Rows, Columns, BitsAllocated 16 are set, and NumberOfFrames if it is not one),
 * then the frames, into PATH as Explicit VR Little Endian. PATH.part is written, synced and renamed at close; abort and errors
 * leave no file (except that PATH exists although close failed, if only the folder could not be synced after the rename). Errors
 * at open: EFBIG: more than 4 GiB - 2 of pixel data; ENOSPC: the disk cannot hold them; EINVAL: the header is unsuitable.
 * `header` may be closed after open. */
struct dicom_writer;
int dicom_writer_open(const char *path, struct dicom_file *header, struct dicom_writer **ret_writer, struct err *err);
int dicom_writer_frame(struct dicom_writer *w, const uint16_t *values, struct err *err);
/* The same for an encapsulated object in JPEG-LS lossless, with one fragment per frame and a basic offset table. `code`: the
 * frame's code stream (dicom/pixels/jpegls.h), so that several threads can encode. Open does not check for space, because the
 * size is not yet known. EFBIG: the code streams exceed 4 GiB. */
int dicom_writer_open_jpegls(const char *path, struct dicom_file *header, struct dicom_writer **ret_writer, struct err *err);
int dicom_writer_fragment(struct dicom_writer *w, const void *code, size_t n, struct err *err);
int dicom_writer_close(struct dicom_writer *w, struct err *err); /* frees w in every case */
void dicom_writer_abort(struct dicom_writer *w);		 /* accepts NULL */
/* Replace close() for many files of one folder: sync() makes the bytes of each durable, several writers in several threads; then
 * publish() gives all of them their names, or none, with one sync of the folder. abort() always frees a writer; a published file
 * stays. */
int dicom_writer_sync(struct dicom_writer *w, struct err *err);
int dicom_writers_publish(struct dicom_writer *const *writers, size_t n, struct err *err);

/* Write a whole data set without frames in the same way (.part, fsync, rename, fsync of the folder). */
int dicom_write(const char *path, struct dicom_file *file, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
