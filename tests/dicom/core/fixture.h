/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of dicom/: a temporary folder, files built byte by byte, DCMTK's tools. */
#ifndef TOMONODE_TESTS_DICOM_FIXTURE_H
#define TOMONODE_TESTS_DICOM_FIXTURE_H

#include <dirent.h>
#include <spawn.h>
#include <sys/wait.h>

#include "dicom/pixels/pixels.h"
#include "dicom/pixels/start.h"
#include "tests/test.h"

#define IMPLICIT "1.2.840.10008.1.2"
#define EXPLICIT "1.2.840.10008.1.2.1"
#define BIG_ENDIAN_EXPLICIT "1.2.840.10008.1.2.2"
#define RLE "1.2.840.10008.1.2.5"
#define MG_PROCESSING "1.2.840.10008.5.1.4.1.1.1.2.1"

extern char **environ;
static char folder[64];

static inline const char *in_folder(const char *name)
{
	return test_path(folder, name);
}

static inline int folder_make(void **state)
{
	struct err err = {0};

	test_folder(folder, sizeof(folder));
	if (dicom_start(&err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return -1;
	}
	return 0;
}

static inline int folder_entries(void)
{
	DIR *d = opendir(folder);
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static inline int folder_remove(void **state)
{
	dicom_stop();
	return 0;
}

/* A file that a test builds byte by byte. */
struct bytes {
	size_t n;
	unsigned char p[65536];
};

static inline void add(struct bytes *b, const void *p, size_t n)
{
	assert_true(b->n + n <= sizeof(b->p));
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

static inline void add16(struct bytes *b, unsigned v)
{
	unsigned char p[2] = {v & 0xff, v >> 8 & 0xff};

	add(b, p, 2);
}

static inline void add32(struct bytes *b, uint32_t v)
{
	add16(b, v & 0xffff);
	add16(b, v >> 16);
}

static inline void add_tag(struct bytes *b, uint32_t tag)
{
	add16(b, tag >> 16);
	add16(b, tag & 0xffff);
}

static inline void add_item(struct bytes *b, uint32_t tag, uint32_t length)
{
	add_tag(b, tag);
	add32(b, length);
}

/* Append the header of an element in explicit VR with this length, which may be wrong for the value that follows. */
static inline void add_header(struct bytes *b, uint32_t tag, const char *vr, uint32_t length)
{
	add_tag(b, tag);
	add(b, vr, 2);
	if (strstr("OB OD OF OL OV OW SQ SV UC UN UR UT UV", vr)) {
		add16(b, 0);
		add32(b, length);
	} else {
		add16(b, length);
	}
}

static inline void add_text(struct bytes *b, uint32_t tag, const char *vr, const char *text)
{
	add_header(b, tag, vr, (uint32_t)strlen(text));
	add(b, text, strlen(text));
}

static inline void add_us(struct bytes *b, uint32_t tag, unsigned v)
{
	add_header(b, tag, "US", 2);
	add16(b, v);
}

static inline void add_meta(struct bytes *b, const char *transfer_syntax)
{
	char uid[66] = "";
	size_t n = strlen(transfer_syntax);

	memcpy(uid, transfer_syntax, n);
	b->n = 0;
	memset(b->p, 0, 128);
	b->n = 128;
	add(b, "DICM", 4);
	add_header(b, 0x00020010, "UI", (uint32_t)(n + (n & 1)));
	add(b, uid, n + (n & 1));
}

static inline const char *save(const struct bytes *b, size_t n)
{
	const char *path = in_folder("bytes.dcm");

	test_put_file(path, b->p, n);
	return path;
}

TEST_GIVES_BACK(dicom_close);

/* A new object. It is closed when the test ends, as what the two below open. */
static inline struct dicom_file *new_object(const char *sop_class, const char *sop_instance)
{
	struct dicom_file *file = NULL;
	struct err err = {0};

	assert_done(dicom_new(sop_class, sop_instance, &file, &err), &err);
	test_later(give_back_dicom_close, file);
	return file;
}

/* Open a file. The test fails if it is refused. */
static inline struct dicom_file *open_file(const char *path)
{
	struct dicom_file *file = NULL;
	struct err err = {0};

	assert_done(dicom_open(path, &file, &err), &err);
	test_later(give_back_dicom_close, file);
	return file;
}

/* Open the bytes as a file. The test fails if they are refused. */
static inline struct dicom_file *open_bytes(const struct bytes *b)
{
	return open_file(save(b, b->n));
}

/* Open the bytes as a file. The test fails unless they are refused with the error `code` and a message that contains `words`. */
static inline void refused(const struct bytes *b, int code, const char *words)
{
	struct dicom_file *file = NULL;
	struct err err = {0};
	int r = dicom_open(save(b, b->n), &file, &err);

	if (r != -code || !strstr(err.msg, words))
		fail_msg("%d (%s) instead of %d with \"%s\"", r, err.msg, -code, words);
	assert_null(file);
}

static inline void ok(int r, const struct err *err)
{
	if (r < 0)
		fail_msg("%d: %s", r, err->msg);
}

/* Run one of DCMTK's programs on two paths. Return 0, or -1: it is not installed. */
static inline int tool(const char *name, const char *option, const char *in, const char *out)
{
	char *argv[5] = {(char *)name};
	int status, k = 1;
	pid_t pid;

	if (option)
		argv[k++] = (char *)option;
	argv[k++] = (char *)in;
	argv[k] = (char *)out;
	if (posix_spawnp(&pid, name, NULL, NULL, argv, environ) != 0)
		return -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -1;
	assert_int_equal(status, 0);
	return 0;
}

#endif
