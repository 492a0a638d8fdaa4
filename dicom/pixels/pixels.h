/* Pixel data, frame by frame: reading any lossless encoding DCMTK decodes, writing objects, plain or JPEG-LS, as a stream.
 *
 * A frame is rows x columns 16-bit stored values, columns fastest, as stored (no rescale, no polarity, no flip).
 * Memory stays at a few frames, whatever the number of frames.
 */
#ifndef TOMONODE_DICOM_PIXELS_H
#define TOMONODE_DICOM_PIXELS_H

#include "dicom/core/dataset.h"
#include "dicom/core/pixel_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the description against itself and against the pixel data's length: EBADMSG names what does not fit;
 * ENOTSUP: lossy or unknown transfer syntax, colour, other than 8 or 16 bits allocated; EFBIG: above 65535 x 65535, 4096 frames,
 * or 512 MiB in one encapsulated frame. */
int dicom_pixels_info(struct dicom_file *file, struct dicom_pixel_info *ret_info, struct err *err);

/* Frame 0..frames-1 into ret_values (rows * columns); 8-bit values are widened, bits above BitsStored are masked off. Once
 * dicom_pixels_info() has succeeded on the file, several threads may read frames of it at the same time. */
int dicom_read_frame(struct dicom_file *file, long frame, uint16_t *ret_values, struct err *err);

/* Write `header` (a data set without pixel data; Rows, Columns, BitsAllocated 16 are set, and NumberOfFrames
 * where it is not one) and then the frames
 * into PATH as Explicit VR Little Endian. PATH.part is written, synced and renamed at close; abort and an error leave nothing
 * behind (only when the folder cannot be synced after the rename is PATH there although close failed). At open: EFBIG above 4 GiB
 * - 2 of pixel data, ENOSPC when the disk cannot hold them, EINVAL for a header that is not fit. `header` may be closed after
 *   open. */
struct dicom_writer;
int dicom_writer_open(const char *path, struct dicom_file *header, struct dicom_writer **ret_writer, struct err *err);
int dicom_writer_frame(struct dicom_writer *w, const uint16_t *values, struct err *err);
/* The same as an encapsulated object in JPEG-LS lossless, a fragment a frame and a basic offset table: `code` is the frame's code
 * stream (dicom/pixels/jpegls.h), so that several threads can encode. At open the space is not known and not asked for; EFBIG
 * when the code streams outgrow 4 GiB. */
int dicom_writer_open_jpegls(const char *path, struct dicom_file *header, struct dicom_writer **ret_writer, struct err *err);
int dicom_writer_fragment(struct dicom_writer *w, const void *code, size_t n, struct err *err);
uint64_t dicom_writer_bytes(const struct dicom_writer *w);	 /* written so far */
int dicom_writer_close(struct dicom_writer *w, struct err *err); /* frees w in every case */
void dicom_writer_abort(struct dicom_writer *w);		 /* takes NULL */
/* In place of close, for many files of one folder: first the bytes of each are brought to the disk, several writers in several
 * threads; then all get their names, or none keeps one, with one sync of the folder. Abort frees a writer in every case, and
 * after it was published leaves the file alone. */
int dicom_writer_sync(struct dicom_writer *w, struct err *err);
int dicom_writers_publish(struct dicom_writer *const *writers, size_t n, struct err *err);

/* A whole data set without frames, written the same way (.part, fsync, rename, fsync of the folder). */
int dicom_write(const char *path, struct dicom_file *file, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
