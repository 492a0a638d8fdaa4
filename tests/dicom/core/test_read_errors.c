/* SPDX-License-Identifier: Apache-2.0 */
/* A file that cannot be read from some byte on: opening it is an error that names the reason. It does not end the
 * data set early, and it returns. This program has its own pread(), which the linker uses for the code under test, too. */
#include <sys/syscall.h>

#include "tests/dicom/core/fixture.h"
#include "tests/test.h"

#define N_SHORT 600 /* elements: three of the pieces of 16 KiB in which a header is read */
#define SHORT_AT(i) (0x00110010u + (uint32_t)(i))

static off_t bad = -1; /* the first byte that cannot be read */

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
	if (bad >= 0 && at + (off_t)n > bad) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, bytes, n, at);
}

ssize_t pread64(int fd, void *bytes, size_t n, off_t at) __attribute__((alias("pread")));

static const char *write_sample(size_t *ret_size)
{
	static const char text[81] = "a value of eighty bytes, so that the header is much longer than what is read of ";
	static struct bytes b;

	add_meta(&b, EXPLICIT);
	add_text(&b, 0x00080016, "UI", MG_PROCESSING);
	for (int i = 0; i < N_SHORT; i++)
		add_text(&b, SHORT_AT(i), "LO", text);
	*ret_size = b.n;
	return save(&b, b.n);
}

TEST(test_read_error_is_no_end_of_the_data, .setup = folder_make, .teardown = folder_remove)
{
	size_t size;
	const char *path = write_sample(&size);

	assert_true(size > 3 * 16384);
	alarm(60); /* an endless loop */
	for (size_t at = 1; at < size; at += 997) {
		struct dicom_file *file = NULL;
		struct err err = {0};

		bad = (off_t)at;
		assert_error(dicom_open(path, &file, &err), &err, EIO, strerror(EIO));
		assert_null(file);
	}
	bad = -1;
	alarm(0);
}
