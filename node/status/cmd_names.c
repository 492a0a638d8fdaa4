/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode names: read name, ID, its issuer and birth date of the patient from the images that the status page requests, then exit. It parses untrusted
 * data, so it is a separate process that may crash; it writes no file, opens only the images, and has no network access.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dicom/core/dataset.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/exit_code.h"
#include "node/process/work_process.h"
#include "node/status/cmd_status.h"
#include "node/status/status_names.h"

#define WATCHDOG_SECONDS 15

/* Convert text to UTF-8: from Latin-1 if `latin1`, otherwise unchanged; the page replaces bytes that are not UTF-8. */
static void to_utf8(const char *text, bool latin1, char *ret_text, size_t size)
{
	size_t n = 0;

	for (const unsigned char *c = (const unsigned char *)text; *c && n + 3 < size; c++) {
		if (latin1 && *c >= 0x80) {
			ret_text[n++] = (char)(0xc0 | *c >> 6);
			ret_text[n++] = (char)(0x80 | (*c & 0x3f));
		} else {
			ret_text[n++] = (char)*c;
		}
	}
	ret_text[n] = '\0';
}

/* Format a person's name for the page. Its stored form (PS3.5 6.2): family^given^middle^prefix^suffix, then '=' and the same in
 * other scripts. */
static void show_name(const char *stored, char *ret_name, size_t size)
{
	size_t n = 0, part = 0;

	for (const char *c = stored; *c && *c != '=' && n + 3 < size; c++) {
		if (*c != '^') {
			ret_name[n++] = *c;
			continue;
		}
		if (part++ == 0)
			ret_name[n++] = ',';
		ret_name[n++] = ' ';
	}
	while (n > 0 && (ret_name[n - 1] == ' ' || ret_name[n - 1] == ','))
		n--;
	ret_name[n] = '\0';
}

static void read_one(const char *path, struct status_name *ret)
{
	static const struct {
		uint32_t tag;
		size_t at, size;
	} more[] = {
		{TAG_PATIENT_ID, offsetof(struct status_name, id), sizeof(ret->id)},
		{DICOM_TAG(0x0010, 0x0021), offsetof(struct status_name, issuer), sizeof(ret->issuer)},
		{DICOM_TAG(0x0010, 0x0030), offsetof(struct status_name, birth), sizeof(ret->birth)},
	};
	char charset[65] = "", stored[400] = "", text[200];
	struct dicom_file *file = NULL;
	const struct dicom_item *root;
	bool latin1;

	if (dicom_open(path, &file, NULL) < 0)
		return;
	root = dicom_root(file);
	dicom_get_text(root, DICOM_TAG(0x0008, 0x0005), charset, sizeof(charset), NULL);
	latin1 = !strcmp(charset, "ISO_IR 100") || !strcmp(charset, "ISO 2022 IR 100");
	dicom_get_text(root, TAG_PATIENT_NAME, stored, sizeof(stored), NULL);
	show_name(stored, text, sizeof(text));
	to_utf8(text, latin1, ret->name, sizeof(ret->name));
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		char value[65] = "";

		dicom_get_text(root, more[i].tag, value, sizeof(value), NULL);
		to_utf8(value, latin1, (char *)ret + more[i].at, more[i].size);
	}
	dicom_close(file);
}

int cmd_names(int argc, char **argv)
{
	struct work_process process = {0};
	struct status_name_request q;
	char path[400];
	int code = CODE_OK;

	if (!work_process_options(&process, "names", "-c FILE --ipc FD", 0, argc, argv, &code))
		return code;
	if (work_process_enter_sandbox(&process, SANDBOX_NAMES, NULL) < 0) {
		work_process_end(&process);
		return CODE_FAILED;
	}
	while (recv(process.ipc_fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
		struct status_name one = {.job = q.job};

		q.file[sizeof(q.file) - 1] = '\0';
		alarm(WATCHDOG_SECONDS);
		if (snprintf(path, sizeof(path), "%s/%s", process.config->node.spool, q.file) < (int)sizeof(path))
			read_one(path, &one);
		if (send(process.ipc_fd, &one, sizeof(one), MSG_NOSIGNAL) < 0)
			break;
	}
	work_process_end(&process);
	return CODE_OK;
}
