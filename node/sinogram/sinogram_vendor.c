/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_vendor.c - recognise raw data of manufacturers that are not read, by the first or last bytes of a file. PTD, the list
 * mode files of Siemens, end in a DICOM header with a mark; whether all versions have it is not known, so their extension counts
 * as well. Headers in text are recognised by their keys.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/sinogram/sinogram_internal.h"

#define TAIL 4096
#define HEAD 4096
#define PREAMBLE 128 /* bytes before the mark of a DICOM file */

static const char petsird[] = "yardl", hdf5[] = "\x89HDF\r\n\x1a\n", dicom[] = "DICM", ptd[] = "LARGE_PET_LM_RAWDATA";

/* Return true if the text has a line "KEY: VALUE" or "KEY := VALUE" that begins so; value "": any. */
static bool has_line(const char *text, const char *key, const char *value)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += strspn(line, " \t\r\n!%");
		if (strncasecmp(line, key, strlen(key)) != 0)
			continue;
		const char *at = line + strlen(key) + strspn(line + strlen(key), " \t");
		if (*at == ':' && !strncasecmp(at + strspn(at, ":= \t"), value, strlen(value)))
			return true;
	}
	return false;
}

/* Return the sentence about the file with this beginning and end; NULL: none. */
static const char *vendor_sentence(const char *path, const char *head, size_t n_head, const char *tail, size_t n_tail)
{
	const char *ending = strrchr(path, '.');

	if (n_head >= strlen(petsird) && !memcmp(head, petsird, strlen(petsird)))
		return "a PETSIRD file: import it with --petsird FILE";
	if (n_head >= strlen(hdf5) && !memcmp(head, hdf5, strlen(hdf5)))
		return "an HDF5 file, as GE writes raw data (RDF9): not read; write the sinograms as Interfile with STIR, which "
		       "reads RDF9";
	if (memmem(tail, n_tail, ptd, strlen(ptd)) || (ending && !strcasecmp(ending, ".ptd")))
		return "list mode data of Siemens (PTD): not read; histogram them with the e7tools and import their sinograms "
		       "with --e7";
	if (has_line(head, "originating system", "HRRT") && !strcasestr(head, "scanner parameters"))
		return "a header of the HRRT's own programs: neither its list mode nor its sinograms are read; histogram with "
		       "lmhistogram, and give the sinograms a header of STIR Interfile";
	if (has_line(head, "data format", "CoincidenceList") && has_line(head, "originating system", "2008"))
		return "the header of the list mode of a Biograph mMR: `tomonode recon` reads it under the name NAME.l.hdr, beside its "
		       "data NAME.l and the normalisation NAME.n.hdr";
	if (has_line(head, "data format", "CoincidenceList") || has_line(head, "LM event and tag words format (bits)", ""))
		return "the header of list mode data of Siemens (PETLINK): not imported. `tomonode recon` "
		       "reconstructs those of a Biograph mMR with their normalisation; of others histogram them and give the header of "
		       "the sinogram (.s.hdr), or send the DICOM object that holds them";
	if (has_line(head, "number of normalization components", ""))
		return "the header of a normalisation of Siemens: of a Biograph mMR name the header of the list mode (.l.hdr), or "
		       "`recon --normalisation` beside it; of other scanners let the e7tools write it as sinograms (norm3d_00.a)";
	if (has_line(head, "Data filename", "") && has_line(head, "Data mode", ""))
		return "a header of CASToR: not read; write the sinograms as Interfile, or list mode as PETSIRD";
	if (ending && !strcasecmp(ending, ".mhdr"))
		return "a main header of Siemens, which names others: give the header of the sinogram (.s.hdr)";
	if (n_head >= PREAMBLE + strlen(dicom) && !memcmp(head + PREAMBLE, dicom, strlen(dicom)))
		return "a DICOM file: reconstruct it with `tomonode recon`, or send it to the node";
	return NULL;
}

int sinogram_vendor_check(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* no effect on a regular file; a pipe does not block */
	char head[HEAD + 1], tail[TAIL];
	ssize_t n_head, n_tail = 0;
	struct stat st;
	const char *text;

	if (fd < 0)
		return 0; /* whoever reads the file reports it */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return 0; /* likewise */
	}
	n_head = pread(fd, head, HEAD, 0);
	head[n_head > 0 ? n_head : 0] = '\0';
	if (st.st_size > 0)
		n_tail = pread(fd, tail, sizeof(tail), st.st_size > TAIL ? st.st_size - TAIL : 0);
	close(fd);
	text = vendor_sentence(path, head, n_head > 0 ? (size_t)n_head : 0, tail, n_tail > 0 ? (size_t)n_tail : 0);
	return text ? err_set(err, ENOTSUP, "%s", text) : 0;
}
