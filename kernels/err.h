/* The error box that every layer passes upward.
 *
 * A function that can fail takes a `struct err *` last (NULL: the caller does not care), returns 0 or a positive answer on
 * success and the negative of an errno value on failure. A message names the thing, the value found and where; it holds no
 * patient data, because the node logs it. Libraries never log: the node logs each error once.
 */
#ifndef TOMONODE_KERNELS_ERR_H
#define TOMONODE_KERNELS_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

struct err {
	int code;      /* errno value, 0 when nothing is wrong */
	char msg[500]; /* one sentence, no newline */
};

/* Record `code` and the formatted sentence; returns -code (never 0), so that `return err_set(...)` reads well. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "WHERE: " before the sentence that is there; returns -err->code (or -EIO where err is NULL or empty). */
int err_within(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Text from outside (values of files, their names) as one line of UTF-8, in place: control characters and bytes that are no UTF-8
 * become '?'. Every err->msg is so: it goes into logs, the journal and JSON. */
void err_clean(char *text);

#ifdef __cplusplus
}
#endif
#endif
