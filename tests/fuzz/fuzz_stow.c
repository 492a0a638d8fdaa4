/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz the answer of a DICOMweb server: arbitrary bytes give an outcome with a sentence, and the instance counts as stored only
 * if the answer is JSON that contains its UID, with status 200 or 202, or 0111 (a duplicate) as the reason of a failure.
 *
 * The input: two bytes for the HTTP status, then the body. Run: fuzz_stow -max_len=8192 WORK_FOLDER tests/fuzz/corpus/stow */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "node/deliver/stow_answer.h"
#include "tests/fuzz/fuzz.h"

#define UID "1.2.3.4"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_result result;
	struct stow_answer answer = {.content_type = "application/dicom+json"};
	char *body;

	if (size < 2)
		return 0;
	body = calloc(1, size - 1);
	if (!body)
		return 0;
	memcpy(body, data + 2, size - 2);
	answer.http = 100 + (data[0] << 8 | data[1]) % 900;
	answer.body = body;
	answer.size = size - 2;
	stow_classify(&answer, UID, &result);
	must(result.reason[0] != '\0' && memchr(result.reason, '\0', sizeof(result.reason)), "no sentence");
	must(strlen(result.status) == 0 || strlen(result.status) == 4, "a status that is none");
	must(result.outcome >= DELIVER_STORED && result.outcome <= DELIVER_PERMANENT, "no outcome");
	if (result.outcome == DELIVER_STORED) {
		must(result.status[0] != '\0' && !result.failure.down && !result.failure.rejected, "stored, and a failure");
		must(answer.http == 200 || answer.http == 202 || strcmp(result.status, "0111") == 0, "stored by another status");
		must(strchr(body, '{') != NULL, "stored without a data set");
	}
	free(body);
	return 0;
}
