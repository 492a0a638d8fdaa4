/* SPDX-License-Identifier: Apache-2.0 */
/* Where each fact of a PET acquisition is from: from the data, from a file of --like, or from a person. One line of text for each
 * fact, "NAME: ORIGIN" (docs/sinogram-object.md). Values and names of files, which may contain the patient's, are not in it. */
#ifndef TOMONODE_NODE_FACT_ORIGINS_H
#define TOMONODE_NODE_FACT_ORIGINS_H

#include "dicom/object/item_writer.h"
#include "node/sinogram/sinogram.h"

#define FACT_ORIGINS_BEGIN "Origin of facts:\n" /* begins the text within another one */
#define FACT_ORIGINS_SIZE 1000			/* bytes; all lines fit, and with the beginning a text of 1024 characters */
#define FACT_ORIGIN_SIZE 120

/* Write what an import took from where into the header of an object, which has all its standard attributes. */
struct sinogram_source;
void fact_origins_put(const struct sinogram_source *s, struct item_writer *root);
/* Write the origin of the facts of an acquisition: those that its import wrote, else the attributes of its objects. configured:
 * the calibration factor is that of the scanner in the configuration. */
void fact_origins_read(const struct sinogram *s, bool configured, char ret_text[FACT_ORIGINS_SIZE]);
/* Cut the first line off a text. Returns the rest; NULL: there is no line whose name has only small letters, - and blanks. */
const char *fact_origins_next(const char *text, char ret_name[FACT_ORIGIN_SIZE], char ret_origin[FACT_ORIGIN_SIZE]);

#endif
