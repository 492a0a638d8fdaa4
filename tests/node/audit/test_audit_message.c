/* SPDX-License-Identifier: Apache-2.0 */
/* Audit messages: texts of strangers in XML, lengths, and the frame around each for syslog. What they look like as a whole is
 * tests/system/test_audit.py. */
#include "node/audit/audit.h"
#include "node/base/log.h"
#include "tests/test.h"

static char *message_with(const char *text)
{
	struct audit_party party = {.user = text, .aet = text, .name = text, .host = text, .role = &audit_role_source};
	struct audit_study study = {.study = text, .patient = text, .n_classes = 1};
	struct audit_message m = {.event = &audit_code_alert,
				  .action = 'E',
				  .outcome = AUDIT_MINOR,
				  .reason = text,
				  .time = 86400.25,
				  .site = text,
				  .source = text,
				  .parties = &party,
				  .n_parties = 1,
				  .studies = &study,
				  .n_studies = 1,
				  .alert = text};
	struct err err = {0};
	char *xml = NULL;

	snprintf(study.classes[0].uid, sizeof(study.classes[0].uid), "%s", text);
	assert_int_equal(audit_message_write(&m, &xml, &err), 0);
	return xml;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

TEST(texts_of_strangers)
{
	static const struct {
		const char *text, *written;
	} cases[] = {
		{"plain", "plain"},
		{"<A&\"'>", "&lt;A&amp;&quot;&apos;&gt;"},
		{"a\nb\tc\r\x1b\x7f", "a\\x0ab\\x09c\\x0d\\x1b\\x7f"},
		{"M\xc3\xbcller", "M\xc3\xbcller"},	      /* UTF-8 stays */
		{"M\xfcller", "M\\xfcller"},		      /* Latin-1 */
		{"\xc0\xbc", "\\xc0\\xbc"},		      /* an overlong '<' */
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},	      /* a surrogate */
		{"\xef\xbf\xbe", "\\xef\\xbf\\xbe"},	      /* U+FFFE */
		{"\xc2\x85", "\\xc2\\x85"},		      /* a control character of Latin-1 */
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},     /* beyond 16 bits */
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* beyond Unicode */
		{"\xe2\x82", "\\xe2\\x82"},		      /* cut short */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *xml = message_with(cases[i].text), want[100];

		snprintf(want, sizeof(want), "UserID=\"%s\"", cases[i].written);
		if (!strstr(xml, want))
			fail_msg("case %zu: no %s in %s", i, want, xml);
		assert_int_equal(count(xml, "<ParticipantObjectIdentification "), 3);
		for (const char *c = xml; *c; c++)
			assert_true((unsigned char)*c >= ' ' && *c != '\x7f');
		free(xml);
	}
}

TEST(every_byte_stays_in_its_place)
{
	char *plain = message_with("x");
	size_t elements = count(plain, "<"), quotes = count(plain, "\"");

	free(plain);
	for (int a = 1; a < 256; a++) {
		char text[] = {(char)a, (char)(a * 7 % 255 + 1), (char)a, '\0'}, *xml = message_with(text);

		assert_int_equal(count(xml, "<"), elements);
		assert_int_equal(count(xml, "\""), quotes);
		assert_null(strchr(xml, '\n'));
		free(xml);
	}
}

TEST(a_message_has_an_end)
{
	static char text[100000];
	char *xml;

	memset(text, '&', sizeof(text) - 1);
	xml = message_with(text);
	assert_in_range(strlen(xml), 1000, 64000);
	free(xml);
	xml = message_with("");
	assert_non_null(strstr(xml, "UserID=\"unknown\""));
	assert_non_null(strstr(xml, "ParticipantObjectID=\"unknown\""));
	assert_non_null(strstr(xml, "EventDateTime=\"1970-01-02T00:00:00.250Z\""));
	free(xml);
}

TEST(classes_are_counted)
{
	struct audit_study s = {0};
	char uid[24];

	for (int i = 0; i < 20; i++) {
		snprintf(uid, sizeof(uid), "1.2.%d", i);
		audit_study_count(&s, uid, 2);
	}
	audit_study_count(&s, "1.2.0", 1);
	assert_int_equal(s.n_classes, AUDIT_CLASSES_MAX);
	assert_int_equal(s.classes[0].instances, 3);
	assert_int_equal(s.classes[AUDIT_CLASSES_MAX - 1].instances, 2 * (20 - AUDIT_CLASSES_MAX + 1)); /* none is lost */
}

/* The socket to the log stays open, for all threads. */
static int open_socket(void **state)
{
	return log_audit_send("/nonexistent/log", "x", 1) == -ENOENT ? 0 : -1;
}

TESTS_SETUP(open_socket, NULL);

TEST(frames)
{
	char *frame = log_audit_frame(LOG_LOCAL3, LOG_WARNING, 1e9 + 0.5, "serve", "<x/>"), want[200], host[64] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(want, sizeof(want), "<156>1 2001-09-09T01:46:40.500Z %s tomonode-serve %ld DICOM+RFC3881 - \xef\xbb\xbf<x/>",
		 host, (long)getpid());
	assert_string_equal(frame, want);
	free(frame);
	assert_null(log_audit_frame(LOG_LOCAL3, LOG_WARNING, 1e300, "serve", "<x/>"));
}
