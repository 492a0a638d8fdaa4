/* SPDX-License-Identifier: Apache-2.0 */
/* Test peers and listeners, and the warnings about risky ones. */
#include "tests/node/config/config_fixture.h"
#include "tests/test.h"

static void count(void *ctx, const char *warning)
{
	(void)warning;
	++*(int *)ctx;
}

static int warnings(const char *text)
{
	struct config *c = good(text);
	int n = 0;

	config_warn(c, count, &n);
	return n;
}

TEST(test_allow_list)
{
	struct config *c;

	c = good("node = { bind = \"::1\"; };");
	assert_false(c->node.require_known_peer);
	c = good("node = { bind = \"127.8.9.1\"; require_known_peer = true; };");
	assert_true(c->node.require_known_peer);
	c = good("node = { bind = \"::\"; };");
	assert_true(c->node.require_known_peer);
	assert_int_equal(warnings(""), 0);
	assert_int_equal(warnings("node = { bind = \"0.0.0.0\"; require_known_peer = false; };"), 1);
	assert_int_equal(warnings("node = { bind = \"0.0.0.0\"; };"), 1); /* nobody may send */
	assert_int_equal(warnings("node = { bind = \"0.0.0.0\"; }; peers = ( { name = \"a\"; aet = \"A\"; } );"), 0);
	assert_int_equal(warnings("node = { bind = \"0.0.0.0\"; }; peers = ( { name = \"a\"; } );"),
			 1); /* the peer has no criteria: anybody may send */
	assert_int_equal(warnings("routes = ();"), 1);
	assert_int_equal(warnings("protocols = ( { name = \"dbt-fbp\"; stored_offset = 0; } );"),
			 1); /* negative values cannot be stored */
}

TEST(test_listeners)
{
	struct listener_conf list[LISTENERS_MAX];
	struct config *c =
		good("node = { bind = \"::1\"; tls_certificate = \"/c\"; tls_key = \"/k\"; tls_authorities = \"/a\"; "
		     "tls_crl = \"/r\"; };\n"
		     "listeners = ( { name = \"t\"; }, { name = \"o\"; bind = \"10.0.0.1\"; port = 104; certificate = \"/d\"; "
		     "client_certificate = \"none\"; }, { name = \"p\"; port = 105; authorities = \"/b\"; } );");

	assert_int_equal(config_listeners(c, list), 4);
	assert_string_equal(list[0].name, "node");
	assert_false(list[0].tls);
	assert_int_equal(list[0].port, 11112);
	assert_string_equal(list[1].bind, "::1");
	assert_int_equal(list[1].port, 2762);
	assert_true(list[1].tls && list[1].client_certificate);
	assert_string_equal(list[1].certificate, "/c");
	assert_string_equal(list[1].key, "/k");
	assert_string_equal(list[2].certificate, "/d");
	assert_string_equal(list[2].key, ""); /* the node's key is not used with another certificate */
	assert_string_equal(list[2].authorities, "/a");
	assert_string_equal(list[2].crl, "/r");
	assert_string_equal(list[3].authorities, "/b");
	assert_string_equal(list[3].crl, ""); /* the node's list is not used with other authorities */
	assert_false(list[2].client_certificate);
	assert_true(c->node.require_known_peer); /* not only loopback addresses */
	assert_int_equal(c->node.peer_refusals, 20);
	assert_int_equal(c->node.peer_associations, 16); /* half of 32: one peer cannot hold all */
	c = good("node = { bind = \"0.0.0.0\"; max_associations = 1; };");
	assert_int_equal(c->node.peer_associations, 1);
	c = good("node = { plain = false; peer_associations = 0; peer_refusals = 3; tls_certificate = \"/c\"; tls_authorities = "
		 "\"/a\"; }; listeners = ( { name = \"t\"; } );");
	assert_int_equal(config_listeners(c, list), 1);
	assert_string_equal(list[0].name, "t");
	assert_int_equal(c->node.peer_refusals, 3);
	assert_int_equal(c->node.peer_associations, 0); /* as given */
	c = good("");
	assert_int_equal(c->node.peer_refusals, 0);
	assert_int_equal(c->node.peer_associations, 0);
}

TESTS_SETUP(set_spool, NULL);
