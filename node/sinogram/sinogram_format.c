/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_format.c - the list of all formats of sinogram objects: PET, and one for each kind of line integrals;
 * sentences about their headers. */
#include <stdio.h>
#include <string.h>

#include "node/base/sentence.h"
#include "node/sinogram/sinogram.h"

static const struct sinogram_format formats[] = {
	{INTERFILE_PROJECTIONS, &interfile_projections, SINOGRAM_EMISSION, SINOGRAM_SINGLES},
#define X(constant, name) {INTERFILE_##constant, &interfile_##name, SINOGRAM_LINES, SINOGRAM_LINES},
	LINE_KINDS(X)
#undef X
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

const struct sinogram_format *sinogram_format_named(const char *id)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i].type->id, id))
			return &formats[i];
	return NULL;
}

const struct sinogram_format *sinogram_format_of(enum interfile_kind header)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (formats[i].header == header)
			return &formats[i];
	return NULL;
}

enum interfile_kind sinogram_header_kind(const struct sinogram_format *format, enum sinogram_role role)
{
	return role == SINOGRAM_SINGLES ? INTERFILE_SINGLES : format->header;
}

void sinogram_format_list(char *ret, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < FORMATS && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", formats[i].type->id);
}

void sinogram_add_notes(const struct interfile *h, enum sinogram_role role, const struct interfile *first, char *notes,
			size_t size)
{
	if (h->notes[0] && (h == first || strcmp(h->notes, first->notes) != 0)) /* what all headers have is said once */
		sentence_add(notes, size, "%s%s%s", h == first ? "" : sinogram_role_name(role), h == first ? "" : ": ", h->notes);
}

void sinogram_header_notes(const struct sinogram *s, char *ret, size_t size)
{
	const struct interfile *first = NULL;

	ret[0] = '\0';
	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		const struct interfile *h = &s->part[role].header;

		if (!s->part[role].present)
			continue;
		first = first ? first : h;
		sinogram_add_notes(h, (enum sinogram_role)role, first, ret, size);
	}
}
