/* SPDX-License-Identifier: Apache-2.0 */
/* The error record that every layer passes up to its caller.
 *
 * A function that can fail takes a `struct err *` as its last argument (NULL: the caller does not need the message). It returns 0
 * or a positive result on success and a negative errno value on failure. A message names the thing, the value found and the
 * place. It holds no patient data, because the node logs it. Libraries never log; the node logs each error once. */
#ifndef TOMONODE_KERNELS_ERR_H
#define TOMONODE_KERNELS_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

struct err {
	int code;      /* errno value; 0: no error */
	char msg[500]; /* one sentence, no newline */
};

/* Store `code` and the formatted sentence. Return -code (never 0), so that a function can end with `return err_set(...)`. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Prepend "WHERE: " to the stored sentence. Return -err->code, or -EIO if err is NULL or empty. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* If rc is -from, return -to and change err accordingly; otherwise return rc. */
int err_remap(int rc, int from, int to, struct err *err);

/* Turn text from outside (values from files, file names) into one line of valid UTF-8, in place: replace control characters and
 * invalid bytes by '?'. Every err->msg is cleaned in this way, because it goes into logs, the journal and JSON. */
void err_clean(char *text);

#ifdef __cplusplus
}
#endif
#endif
