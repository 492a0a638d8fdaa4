/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_mmr_files.c - find the files of an mMR acquisition that Siemens' own extraction writes: a text header for the list mode
 * (NAME.l.hdr) and one for the normalisation (NAME.n.hdr), each beside its data (NAME.l, NAME.n). Headers name their data as they
 * were called where they were extracted, often with another folder, or a name that is no longer right. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "node/base/folder.h"
#include "node/base/text_file.h"
#include "node/format/interfile.h"
#include "node/sinogram/sinogram_mmr_internal.h"

#define ENDING ".hdr"
#define NORM_ENDING ".n.hdr"
static const char *const data_endings[] = {".l.hdr", ".s.hdr"};
#define LIST_KEY "listmode word counts"
#define NORM_KEY "number of normalization components"

static bool is_regular(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool ends_in_hdr(const char *path)
{
	size_t n = strlen(path), end = strlen(ENDING);

	return n > end && !strcasecmp(path + n - end, ENDING);
}

/* Has a header this key? */
static bool has_key(const char *path, const char *key)
{
	char *text = NULL;
	size_t size;
	bool has = ends_in_hdr(path) && is_regular(path) &&
		   text_file_read(path, MMR_TEXT_MAX, "header", &text, &size, NULL) == 0 && strcasestr(text, key);

	free(text);
	return has;
}

bool sinogram_mmr_is_list_header(const char *path)
{
	return has_key(path, LIST_KEY);
}

bool sinogram_mmr_is_norm_header(const char *path)
{
	return has_key(path, NORM_KEY);
}

/* Return the path of a file beside another one; NULL: no memory. */
static char *path_beside(const char *path, const char *name, size_t n)
{
	char *ret;

	return asprintf(&ret, "%.*s%.*s", (int)(file_name(path) - path), path, (int)n, name) < 0 ? NULL : ret;
}

/* Return the header of a normalisation with the name of the data, NAME.n.hdr beside NAME.l.hdr; NULL: there is none. */
static char *find_namesake(const char *data)
{
	size_t n = strlen(data), end = strlen(NORM_ENDING);
	char *path = NULL;

	for (size_t i = 0; i < sizeof(data_endings) / sizeof(data_endings[0]); i++)
		if (n > end && !strcasecmp(data + n - end, data_endings[i]) &&
		    asprintf(&path, "%.*s" NORM_ENDING, (int)(n - end), data) < 0)
			return NULL;
	if (path && has_key(path, NORM_KEY))
		return path;
	free(path);
	return NULL;
}

/* Count the headers of normalisations beside a list, up to 2; the caller frees *ret, the first. */
static int count_norms(const char *list, char **ret)
{
	char *folder = path_beside(list, ".", 1);
	DIR *d = folder ? opendir(folder) : NULL;
	struct dirent *entry;
	int n = 0;

	free(folder);
	while (d && n < 2 && (entry = readdir(d))) {
		char *path = path_beside(list, entry->d_name, strlen(entry->d_name));

		if (path && has_key(path, NORM_KEY) && n++ == 0)
			*ret = path;
		else
			free(path);
	}
	if (d)
		closedir(d);
	return n;
}

int sinogram_mmr_find_norm(const char *list, const char *given, char **ret, struct err *err)
{
	char *found = NULL;
	int n;

	if (given) {
		if (!has_key(given, NORM_KEY))
			return err_set(err, EBADMSG, "--normalisation %s: it is not the header (NAME.n.hdr) of a normalisation",
				       given);
		*ret = strdup(given);
		return *ret ? 0 : err_set(err, ENOMEM, "no memory for a path");
	}
	*ret = find_namesake(list);
	n = *ret ? 1 : count_norms(list, &found);
	if (n == 1) {
		*ret = *ret ? *ret : found;
		return 0;
	}
	free(found);
	return n == 0 ? err_set(err, ENOENT, "no normalisation (NAME.n.hdr) is beside it: name one with --normalisation")
		      : err_set(err, ENOTUNIQ,
				"several normalisations (NAME.n.hdr) are beside it, none with its name: name one with "
				"--normalisation");
}

int sinogram_mmr_find_data(const char *header, const char *named, char **ret, struct err *err)
{
	const char *slash = strrchr(named, '/'), *back = strrchr(named, '\\'), *name = named;
	char *own = strndup(header, strlen(header) - strlen(ENDING)), *other = path_beside(header, named, strlen(named));
	bool has_own, has_other;
	int rc = 0;

	if (!other || !interfile_stays_in_folder(named) || !is_regular(other)) { /* a path of another computer */
		free(other);
		if (slash)
			name = slash + 1;
		if (back && back >= name)
			name = back + 1;
		other = path_beside(header, name, strlen(name));
	}
	has_own = own && is_regular(own);
	has_other = own && other && strcmp(own, other) != 0 && is_regular(other);
	if (!own || !other)
		rc = err_set(err, ENOMEM, "no memory for a path");
	else if (has_own && has_other)
		rc = err_set(err, ENOTUNIQ, "beside it are %s, which it names, and %s, which has its name: remove one", name,
			     file_name(own));
	else if (!has_own && !has_other)
		rc = err_set(err, EBADMSG, "its data are not beside it: neither %s nor %s", name[0] ? name : "(it names none)",
			     file_name(own));
	if (rc == 0)
		*ret = has_own ? own : other;
	if (rc < 0 || !has_own)
		free(own);
	if (rc < 0 || has_own)
		free(other);
	return rc;
}

/* Find the data beside a header as the header names them; NULL: none. */
static char *find_named_data(const char *header)
{
	struct mmr_header h = {.words = 0};
	char *text = NULL, *ret = NULL;
	size_t size;

	if (text_file_read(header, MMR_TEXT_MAX, "header", &text, &size, NULL) == 0 &&
	    mmr_header_read_name(text, size, &h, NULL) == 0)
		sinogram_mmr_find_data(header, h.data_file, &ret, NULL);
	free(text);
	return ret;
}

int sinogram_mmr_parts(const char *list, char *ret[PET_SOURCE_PARTS])
{
	char *norm = NULL;
	char *all[PET_SOURCE_PARTS] = {find_named_data(list)};
	int n = 0;

	if (sinogram_mmr_find_norm(list, NULL, &norm, NULL) == 0) {
		all[1] = norm;
		all[2] = find_named_data(norm);
	}
	for (int i = 0; i < PET_SOURCE_PARTS; i++)
		if (all[i])
			ret[n++] = all[i];
	return n;
}
