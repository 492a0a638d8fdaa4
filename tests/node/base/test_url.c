/* SPDX-License-Identifier: Apache-2.0 */
/* Which URLs are accepted, and what is read from them. */
#include "node/base/url.h"
#include "tests/test.h"

TEST(test_accepted)
{
	static const struct {
		const char *text, *host;
		bool tls, local;
		int port;
	} rows[] = {
		{"https://pacs.example.org/dicom-web", "pacs.example.org", true, false, 443},
		{"http://10.0.0.5:8042/a/b%20c/", "10.0.0.5", false, false, 8042},
		{"HTTPS://[2001:db8::1]:8443", "2001:db8::1", true, false, 8443},
		{"http://localhost:8042/dicom-web", "localhost", false, true, 8042},
		{"http://127.3.2.1", "127.3.2.1", false, true, 80},
		{"http://[::1]/", "::1", false, true, 80},
		{"http://127.0.0.1.example.org", "127.0.0.1.example.org", false, false, 80},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct url url;

		assert_int_equal(url_parse(rows[i].text, &url, NULL), 0);
		assert_string_equal(url.host, rows[i].host);
		assert_int_equal(url.tls, rows[i].tls);
		assert_int_equal(url.port, rows[i].port);
		assert_int_equal(url_is_local(&url), rows[i].local);
	}
}

TEST(test_refused)
{
	static const char *const texts[] = {
		"",
		"pacs.example.org",
		"ftp://host/",
		"file:///etc/passwd",
		"https://",
		"https:///x",
		"https://host:0",
		"https://host:65536",
		"https://host:99999999999999999999",
		"https://host:",
		"https://host:8x",
		"https://a b/",
		"https://host/a?b=c",
		"https://host/a#b",
		"https://host/%zz",
		"https://host/a\nb",
		"https://[::1",
		"https://[host]/",
		"https://host\\@evil/",
		"https://-host/",
		"https://h\xc3\xa4st/",
	};
	char longest[URL_SIZE + 1] = "https://host/";
	struct err err = {0};
	struct url url;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (url_parse(texts[i], &url, NULL) != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
	memset(longest + strlen(longest), 'a', sizeof(longest) - 1 - strlen(longest));
	assert_int_equal(url_parse(longest, &url, NULL), -EINVAL);
	longest[URL_SIZE - 1] = '\0';
	assert_int_equal(url_parse(longest, &url, NULL), 0);
	/* the sentence does not repeat a password */
	assert_int_equal(url_parse("https://user:geheim@host/", &url, &err), -EINVAL);
	assert_null(strstr(err.msg, "geheim"));
	assert_int_equal(url_parse("https://user:ge/heim@host/", &url, &err), -EINVAL);
	assert_null(strstr(err.msg, "heim"));
}
