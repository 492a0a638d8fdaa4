/* A document of JSON as a file, for people and programs. */
#ifndef TOMONODE_NODE_JSON_FILE_H
#define TOMONODE_NODE_JSON_FILE_H

#include <jansson.h>

#include "kernels/err.h"

/* FOLDER/NAME. The reference is given up; NULL (no memory) is an error, too. */
int json_file_write(json_t *root, const char *folder, const char *name, struct err *err);

#endif
