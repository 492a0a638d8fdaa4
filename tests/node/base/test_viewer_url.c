/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the site's viewer: which patterns are allowed, and what hostile values become. */
#include "node/base/viewer_url.h"
#include "tests/test.h"

TEST(test_patterns)
{
	static const char *const good[] = {"https://v/?s={study}", "http://v.example:8042/a/{study}/b/{series}#x",
					   "https://[::1]:1/{accession}"};
	static const char *const bad[] = {"",
					  "v.example/{study}",
					  "javascript:alert({study})",
					  "data:text/html,/{study}",
					  "https:///{study}",
					  "https://{accession}/",
					  "https://v.{accession}/",
					  "https://user@v/{study}",
					  "https://v/",
					  "https://v/{patient}{study}",
					  "https://v/{study",
					  "https://v/ {study}",
					  "https://v/\"{study}",
					  "https://v/<{study}",
					  "https://v/\xc3\xa4{study}",
					  "https://v/\n{study}",
					  "https://v\\{study}"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!viewer_pattern_valid(good[i]))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (viewer_pattern_valid(bad[i]))
			fail_msg("accepted: %s", bad[i]);
}

TEST(test_addresses)
{
	char url[VIEWER_URL_SIZE];

	assert_true(viewer_url_fill("https://v/{study}/{series}?a={accession}", "1.2", "1.3", "A 1", url, sizeof(url)));
	assert_string_equal(url, "https://v/1.2/1.3?a=A%201");
	/* a value is a value: it adds no host, path, parameter or placeholder */
	assert_true(viewer_url_fill("https://v/?a={accession}", "1.2", "1.3", "../&b=\"'<{study}#\xc3\xa4", url, sizeof(url)));
	assert_string_equal(url, "https://v/?a=..%2F%26b%3D%22%27%3C%7Bstudy%7D%23%C3%A4");
	assert_true(viewer_url_fill("https://v/?a={accession}", "", "", "", url, sizeof(url)));
	assert_string_equal(url, "https://v/?a=");
	/* it is whole, or it is not */
	assert_true(viewer_url_fill("https://v/{study}", "1.2", "", "", url, 20));
	assert_false(viewer_url_fill("https://v/{study}", "1.2", "", "", url, 12));
	assert_false(viewer_url_fill("https://v/{study}/and/more", "1.2", "", "", url, 20));
}
