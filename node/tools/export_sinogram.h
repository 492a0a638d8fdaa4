/* Sinogram objects back into the Interfile they were made of: the data byte for byte, the header's text as it was but for the
 * name of the data file. */
#ifndef TOMONODE_NODE_EXPORT_SINOGRAM_H
#define TOMONODE_NODE_EXPORT_SINOGRAM_H

#include "node/sinogram/sinogram.h"

struct export_file {
	char path[4096]; /* of the header; the data lie beside it */
	enum sinogram_role role;
	uint64_t bytes; /* of the data */
};

/* EMISSION goes to `path` (.hs) and a .s beside it; further roles to NAME-multiplicative.hs and so on. All or none. */
int export_sinogram(const struct sinogram *s, const char *path, struct export_file ret_file[SINOGRAM_ROLES], size_t *ret_n,
		    struct err *err);

/* The header's text with another name of the data file; malloc'ed. EBADMSG: it names none. */
int export_rename_data(const char *text, const char *data_file, char **ret_text, struct err *err);

#endif
