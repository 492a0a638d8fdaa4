/* SPDX-License-Identifier: Apache-2.0 */
/* What the answer of a DICOMweb server means for the instance that was sent. */
#include "node/deliver/stow_answer.h"
#include "tests/test.h"

#define UID "1.2.3"
#define ITEM(uid, more) "{\"00081155\":{\"vr\":\"UI\",\"Value\":[\"" uid "\"]}" more "}"
#define CODE(tag, code) ",\"" tag "\":{\"vr\":\"US\",\"Value\":[" #code "]}"
#define SEQUENCE(tag, items) "\"" tag "\":{\"vr\":\"SQ\",\"Value\":[" items "]}"
#define STORED "{" SEQUENCE("00081199", ITEM(UID, "")) "}"
#define FAILED(code) "{" SEQUENCE("00081198", ITEM(UID, CODE("00081197", code))) "}"

TEST(test_answers)
{
	static const struct {
		int http;
		const char *body;
		enum deliver_outcome outcome;
		bool down, rejected;
		const char *status, *reason; /* reason: its beginning */
	} rows[] = {
		/* stored: only with 200 and 202, and by its own UID */
		{200, STORED, DELIVER_STORED, false, false, "0000", "stored"},
		{202, STORED, DELIVER_STORED, false, false, "0000", "stored"},
		{200, "[" STORED "]", DELIVER_STORED, false, false, "0000", "stored"},
		{200, "{" SEQUENCE("00081199", ITEM("9.9", "") "," ITEM(UID, "")) "}", DELIVER_STORED, false, false, "0000",
		 "stored"},
		{200, "{" SEQUENCE("00081199", ITEM(UID, CODE("00081196", 45056))) "}", DELIVER_STORED, false, false, "B000",
		 "stored, with elements coerced"},
		{200, "{" SEQUENCE("00081199", ITEM(UID, CODE("00081196", 43264))) "}", DELIVER_STORED, false, false, "A900",
		 "stored, with a warning"},
		{409, FAILED(273), DELIVER_STORED, false, false, "0111", "the peer has this instance already"},
		/* not stored, although something looks so */
		{409, STORED, DELIVER_TRANSIENT, false, true, "", "HTTP 409 that names the instance as stored"},
		{400, STORED, DELIVER_TRANSIENT, false, false, "", "HTTP 400 that names the instance as stored"},
		{200, "", DELIVER_TRANSIENT, false, true, "", "HTTP 200 without a body: the server does not say"},
		{204, "", DELIVER_TRANSIENT, false, true, "", "HTTP 204 without a body: the server does not say"},
		{200, "{}", DELIVER_TRANSIENT, false, true, "", "HTTP 200 that does not name the instance: "},
		{200, "[]", DELIVER_TRANSIENT, false, true, "", "HTTP 200 that does not name the instance: "},
		{200, "\"1.2.3\"", DELIVER_TRANSIENT, false, true, "", "HTTP 200 "},
		{200, "{" SEQUENCE("00081199", ITEM("1.2.3.4", "")) "}", DELIVER_TRANSIENT, false, true, "",
		 "HTTP 200 that names other instances, but not this one: "},
		{200, "<NativeDicomModel/>", DELIVER_TRANSIENT, false, true, "",
		 "HTTP 200 with a body of type \"text/x\" that is not JSON: "},
		{200, STORED "x", DELIVER_TRANSIENT, false, true, "",
		 "HTTP 200 with a body of type \"text/x\" that is not JSON: "},
		{200, "{" SEQUENCE("00081199", ITEM(UID, "")) "," SEQUENCE("00081198", ITEM(UID, "")) "}", DELIVER_TRANSIENT,
		 false, false, "", "HTTP 200 that names the instance both as stored and as failed"},
		{200, "{" SEQUENCE("00081199", ITEM(UID, CODE("00081197", 42752))) "}", DELIVER_TRANSIENT, false, false, "",
		 "HTTP 200 that names the instance both as stored and as failed"},
		{200, "[" FAILED(42752) "," STORED "]", DELIVER_TRANSIENT, false, false, "",
		 "HTTP 200 that names the instance both as stored and as failed"},
		{200, "{" SEQUENCE("00081199", ITEM(UID, CODE("00081197", 0))) "}", DELIVER_STORED, false, false, "0000",
		 "stored"},
		{409, "{" SEQUENCE("0008119A", "{\"x\":0" CODE("00081197", 273) "}") "}", DELIVER_TRANSIENT, false, false, "0111",
		 "failed, with a reason that is not one of a failure"},
		{200, FAILED(0), DELIVER_TRANSIENT, false, false, "0000", "failed, with a reason that is not one of a failure"},
		{200, FAILED(45056), DELIVER_TRANSIENT, false, false, "B000",
		 "failed, with a reason that is not one of a failure"},
		/* failed, by the classes of C-STORE */
		{409, FAILED(42752), DELIVER_TRANSIENT, false, false, "A700", "the peer is out of resources"},
		{202, FAILED(43264), DELIVER_PERMANENT, false, false, "A900", "the data set does not match its class"},
		{409, FAILED(49442), DELIVER_PERMANENT, false, false, "C122", "the peer cannot understand the object"},
		{409, FAILED(272), DELIVER_TRANSIENT, false, false, "0110", "the peer failed in processing"},
		{409, FAILED(290), DELIVER_PERMANENT, false, false, "0122", "the peer does not support this class"},
		{409, FAILED(70000), DELIVER_TRANSIENT, false, false, "",
		 "HTTP 409 that names the instance as failed, without a reason"},
		{409, FAILED("A900"), DELIVER_TRANSIENT, false, false, "",
		 "HTTP 409 that names the instance as failed, without a reason"},
		{409, "{" SEQUENCE("0008119A", "{\"x\":0" CODE("00081197", 49152) "}") "}", DELIVER_PERMANENT, false, false,
		 "C000", "the peer cannot understand the object"},
		/* by the status of HTTP */
		{401, "", DELIVER_TRANSIENT, true, true, "", "HTTP 401 without a body: the server requires other credentials"},
		{403, "{}", DELIVER_TRANSIENT, true, true, "", "HTTP 403 that does not name the instance: the server forbids"},
		{404, "", DELIVER_TRANSIENT, true, true, "", "HTTP 404 without a body: the server has no STOW-RS service"},
		{405, "", DELIVER_TRANSIENT, true, true, "", "HTTP 405 "},
		{302, "", DELIVER_TRANSIENT, true, true, "", "HTTP 302 without a body: the server redirects"},
		{418, "", DELIVER_TRANSIENT, true, true, "", "HTTP 418 without a body: the server rejects the request"},
		{400, "", DELIVER_PERMANENT, false, false, "", "HTTP 400 without a body: the server cannot understand"},
		{406, "", DELIVER_PERMANENT, false, false, "", "HTTP 406 "},
		{413, "", DELIVER_PERMANENT, false, false, "", "HTTP 413 without a body: the object is larger"},
		{415, "", DELIVER_PERMANENT, false, false, "", "HTTP 415 "},
		{409, "", DELIVER_TRANSIENT, false, true, "", "HTTP 409 without a body: the server does not say why"},
		{408, "", DELIVER_TRANSIENT, false, false, "", "HTTP 408 "},
		{429, "", DELIVER_TRANSIENT, true, false, "", "HTTP 429 without a body: the server receives too many requests"},
		{503, "", DELIVER_TRANSIENT, true, false, "", "HTTP 503 without a body: the server is not available"},
		{500, "", DELIVER_TRANSIENT, false, false, "", "HTTP 500 without a body: the server failed in processing"},
		{507, "", DELIVER_TRANSIENT, false, false, "", "HTTP 507 without a body: the server is out of space"},
		{501, "", DELIVER_TRANSIENT, true, true, "", "HTTP 501 "},
		{999, "", DELIVER_TRANSIENT, false, false, "", "HTTP 999 without a body: a status that STOW-RS does not have"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct stow_answer answer = {rows[i].http, "text/x", rows[i].body, strlen(rows[i].body)};
		struct store_result got;

		stow_classify(&answer, UID, &got);
		if (got.outcome != rows[i].outcome || got.failure.down != rows[i].down ||
		    got.failure.rejected != rows[i].rejected || strcmp(got.status, rows[i].status) != 0 ||
		    strncmp(got.reason, rows[i].reason, strlen(rows[i].reason)) != 0)
			fail_msg("row %zu, HTTP %d %s: outcome %d down %d rejected %d status \"%s\" reason \"%s\"", i,
				 rows[i].http, rows[i].body, got.outcome, got.failure.down, got.failure.rejected, got.status,
				 got.reason);
	}
}

/* A page of a web server, as nginx sends it for a missing client certificate, is no judgement about the object. */
TEST(test_page)
{
	static const char body[] = "<html>400 No required SSL certificate was sent</html>";
	struct stow_answer answer = {400, "text/html; charset=utf-8", body, sizeof(body) - 1};
	struct store_result got;

	stow_classify(&answer, UID, &got);
	assert_int_equal(got.outcome, DELIVER_TRANSIENT);
	assert_true(got.failure.rejected && !got.failure.down);
	assert_non_null(strstr(got.reason, "a web server rejects the request"));
	answer.content_type = "application/json";
	stow_classify(&answer, UID, &got);
	assert_int_equal(got.outcome, DELIVER_PERMANENT);
}
