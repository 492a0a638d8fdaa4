/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in: networks, the allow-list by AE title, host and certificate, and what one sender may take. */
#include "node/base/log.h"
#include "node/base/network.h"
#include "node/config/certificate_pattern.h"
#include "node/receive/admission.h"
#include "node/receive/limits.h"
#include "tests/test.h"

#define PRINT "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* ---- networks ---- */

static bool holds(const char *network, const char *address)
{
	struct network n, a;

	assert_true(network_parse(network, &n));
	assert_true(network_parse(address, &a));
	return network_contains(&n, &a);
}

TEST(networks)
{
	static const char *const bad[] = {"",
					  "/8",
					  "10.0.0.0/",
					  "10.0.0.0/33",
					  "10.0.0.0/-1",
					  "10.0.0.0/8x",
					  "10.0.0/8",
					  "fe80::/129",
					  "host/24",
					  "10.0.0.0/ 8",
					  "::1/x",
					  "300.0.0.0/8",
					  "10.0.0.1%eth0",
					  "2001:db8::1%eth0",
					  "fe80::1%",
					  "fe80::1%e%f",
					  "fe80::/64%eth0",
					  "fe80::1%sixteencharacter"};
	struct network n;
	char text[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(network_parse(bad[i], &n));
	assert_true(holds("10.1.2.3", "10.1.2.3"));
	assert_false(holds("10.1.2.3", "10.1.2.4"));
	assert_true(holds("10.1.0.0/16", "10.1.255.255"));
	assert_false(holds("10.1.0.0/16", "10.2.0.0"));
	assert_true(holds("10.1.7.9/16", "10.1.0.1")); /* what lies behind the bits does not count */
	assert_true(holds("10.1.2.128/25", "10.1.2.200"));
	assert_false(holds("10.1.2.128/25", "10.1.2.127"));
	assert_true(holds("0.0.0.0/0", "192.168.0.1"));
	assert_false(holds("0.0.0.0/0", "2001:db8::1")); /* all of IPv4 is not all */
	assert_true(holds("::/0", "192.168.0.1"));
	assert_true(holds("2001:db8::/32", "2001:db8:ffff::1"));
	assert_false(holds("2001:db8::/32", "2001:db9::1"));
	assert_true(holds("2001:db8::/33", "2001:db8:7fff::1"));
	assert_false(holds("2001:db8::/33", "2001:db8:8000::1"));
	assert_true(holds("::ffff:10.0.0.0/104", "10.9.9.9"));
	assert_true(holds("fe80::1", "fe80::1%eth0")); /* a rule without a zone: on each link */
	assert_true(holds("fe80::1%eth0", "fe80::1%eth0"));
	assert_false(holds("fe80::1%eth0", "fe80::1%eth1"));
	assert_false(holds("fe80::1%eth0", "fe80::1"));
	assert_false(holds("fe80::1%eth0", "fe80::2%eth0"));
	assert_true(holds("fe80::%eth0/64", "fe80::7:8%eth0"));
	assert_false(holds("fe80::%eth0/64", "fe80::7:8%eth01"));
	assert_true(holds("fe80::/10", "fe80::7:8%eth1"));
	assert_true(network_parse("::ffff:10.0.0.1", &n));
	network_print(&n.address, text, sizeof(text));
	assert_string_equal(text, "10.0.0.1");
	assert_true(network_parse("2001:db8:1:2:3:4:5:6", &n));
	n.address = network_client_prefix(&n.address);
	network_print(&n.address, text, sizeof(text));
	assert_string_equal(text, "2001:db8:1:2::");
}

/* ---- the list ---- */

TEST_GIVES_BACK(config_free);

static struct config *config_of(const char *text)
{
	struct config *c = NULL;
	struct err err = {0};

	assert_done(config_parse(text, "t.conf", NULL, NULL, &c, &err), &err);
	test_later(give_back_config_free, c);
	return c;
}

static const struct tls_peer shown = {.fingerprint = PRINT,
				      .subject = "CN=Mammo One,O=Clinic",
				      .n_names = 3,
				      .names = {"mammo1.clinic.example", "10.0.0.7", "Mammo One"}};

/* Who is admitted: the index of the peer, -1 for a stranger, -2 for nobody; the reason stays in `why`. */
static char why[500];

static int admitted(const struct admission *a, const char *calling, const char *host, const struct tls_peer *certificate)
{
	struct scp_request r = {calling, "TOMONODE", host, certificate};
	int peer = -3;

	why[0] = '\0';
	if (admission_check(a, &r, &peer, why, sizeof(why)) == SCP_ADMIT)
		return peer;
	assert_int_equal(peer, -3);
	return -2;
}

TEST(allow_list)
{
	struct config *c = config_of("node = { require_known_peer = true; };\n"
				     "peers = ( { name = \"one\"; aet = \"MAMMO1\"; host = \"10.0.0.7\"; },\n"
				     "  { name = \"net\"; aet = \"CT\"; host = \"10.2.0.0/16\"; },\n"
				     "  { name = \"six\"; aet = \"CT\"; host = \"2001:db8::/32\"; },\n"
				     "  { name = \"cert\"; aet = \"PET\"; certificate = \"sha256:" PRINT "\"; },\n"
				     "  { name = \"named\"; certificate = \"*.clinic.example\"; },\n"
				     "  { name = \"lab\"; host = \"192.168.5.0/24\"; },\n"
				     "  { name = \"link\"; aet = \"MR\"; host = \"fe80::1%eth0\"; },\n"
				     "  { name = \"lo\"; aet = \"LO\"; host = \"fe80::1%lo\"; },\n"
				     "  { name = \"anylink\"; aet = \"US\"; host = \"fe80::1\"; } );");
	struct tls_peer other = shown;
	char address[32];
	struct admission *a = NULL;
	struct err err = {0};

	log_start(LOG_TO_NOWHERE, LOG_USER, LOG_DEBUG, "test");
	assert_int_equal(admission_create(c, &a, &err), 0);
	assert_int_equal(admitted(a, "MAMMO1", "10.0.0.7", NULL), 0);
	assert_int_equal(admitted(a, "MAMMO1 ", "10.0.0.7", NULL), 0);
	assert_int_equal(admitted(a, "mammo1", "10.0.0.7", NULL), -2);
	assert_int_equal(admitted(a, "MAMMO", "10.0.0.7", NULL), -2); /* the whole title, not its beginning */
	assert_int_equal(admitted(a, "MAMMO12", "10.0.0.7", NULL), -2);
	assert_int_equal(admitted(a, "", "10.0.0.7", NULL), -2);
	assert_int_equal(admitted(a, "MAMMO1", "10.0.0.8", NULL), -2);
	assert_non_null(strstr(why, "10.0.0.8 is not its host"));
	assert_int_equal(admitted(a, "CT", "10.2.200.1", NULL), 1);
	assert_int_equal(admitted(a, "CT", "2001:db8:7::1", NULL), 2);
	assert_int_equal(admitted(a, "CT", "10.3.0.1", NULL), -2);
	assert_int_equal(admitted(a, "CT", "unknown", NULL), -2);
	assert_int_equal(admitted(a, "WHO", "10.2.0.1", NULL), -2);
	assert_non_null(strstr(why, "'WHO' from 10.2.0.1 is not that of a configured peer"));
	assert_int_equal(admitted(a, "ANY", "192.168.5.77", NULL), 5);
	assert_int_equal(admitted(a, "MR", "fe80::1%eth0", NULL), 6);
	assert_int_equal(admitted(a, "MR", "fe80::1%eth1", NULL), -2);
	assert_int_equal(admitted(a, "MR", "fe80::1", NULL), -2);
	snprintf(address, sizeof(address), "fe80::1%%%u", if_nametoindex("lo")); /* as in a sandbox */
	assert_int_equal(admitted(a, "LO", address, NULL), 7);
	assert_int_equal(admitted(a, "LO", "fe80::1%lo", NULL), 7);
	assert_int_equal(admitted(a, "LO", "fe80::1%99", NULL), -2);
	assert_int_equal(admitted(a, "US", "fe80::1%eth1", NULL), 8);
	assert_int_equal(admitted(a, "US", "fe80::1%99", NULL), 8);
	assert_int_equal(admitted(a, "PET", "10.9.9.9", &shown), 3);
	assert_int_equal(admitted(a, "PET", "10.9.9.9", NULL), -2);
	assert_non_null(strstr(why, "sent none"));
	assert_non_null(strstr(why, "'cert'"));
	other.fingerprint[0] = 'f';
	other.n_names = 1;
	strcpy(other.names[0], "elsewhere.example");
	assert_int_equal(admitted(a, "PET", "10.9.9.9", &other), -2);
	assert_non_null(strstr(why, "CN=Mammo One,O=Clinic (sha256:f123"));
	strcpy(other.fingerprint, PRINT); /* every digit counts */
	other.fingerprint[strlen(PRINT) - 1] ^= 1;
	assert_int_equal(admitted(a, "PET", "10.9.9.9", &other), -2);
	assert_int_equal(admitted(a, "OTHER", "10.9.9.9", &shown), 4);
	admission_free(a);

	/* Without the list everybody is admitted, and who is on it is still known as such. */
	c = config_of("node = { require_known_peer = false; }; peers = ( { name = \"one\"; aet = \"A\"; } );");
	assert_int_equal(admission_create(c, &a, &err), 0);
	assert_int_equal(admitted(a, "A", "10.0.0.1", NULL), 0);
	assert_int_equal(admitted(a, "B", "10.0.0.1", NULL), ADMISSION_UNKNOWN_PEER);
	admission_free(a);
}

static enum scp_admission called(const struct admission *a, const char *aet)
{
	struct scp_request r = {"MODALITY", aet, "10.0.0.1", NULL};
	int peer;

	return admission_check(a, &r, &peer, why, sizeof(why));
}

/* The called AE title is compared as a whole, too. */
TEST(called_title)
{
	struct config *c = config_of("node = { aet = \"TOMONODE\"; check_called = true; require_known_peer = false; };");
	struct admission *a = NULL;
	struct err err = {0};

	assert_int_equal(admission_create(c, &a, &err), 0);
	assert_int_equal(called(a, "TOMONODE"), SCP_ADMIT);
	assert_int_equal(called(a, " TOMONODE  "), SCP_ADMIT);
	assert_int_not_equal(called(a, "TOMO"), SCP_ADMIT);
	assert_int_not_equal(called(a, "TOMONODE2"), SCP_ADMIT);
	assert_int_not_equal(called(a, ""), SCP_ADMIT);
	admission_free(a);
}

TEST(certificates)
{
	assert_true(certificate_pattern_ok(""));
	assert_true(certificate_pattern_ok("mammo*.example"));
	assert_true(certificate_pattern_ok("sha256:" PRINT));
	assert_false(certificate_pattern_ok("sha256:"));
	assert_false(certificate_pattern_ok("SHA256:" PRINT "00"));
	assert_false(certificate_pattern_ok("sha256:xyz"));
	assert_true(admission_certificate_matches("", NULL));
	assert_false(admission_certificate_matches("*", NULL));
	assert_true(admission_certificate_matches(
		"sha256:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:"
		"45:67:89:ab:cd:ef",
		&shown));
	assert_true(admission_certificate_matches("MAMMO1.clinic.example", &shown));
	assert_true(admission_certificate_matches("mammo one", &shown));
	assert_true(admission_certificate_matches("10.0.0.?", &shown));
	assert_false(admission_certificate_matches("mammo1", &shown)); /* the whole name */
	assert_false(admission_certificate_matches("CN=Mammo One*", &shown));
}

/* ---- limits ---- */

static struct in6_addr address_of(const char *text)
{
	struct network n;

	assert_true(network_parse(text, &n));
	return n.address;
}

static struct limits_key who(int peer, const char *address)
{
	struct in6_addr a = address_of(address);

	return (struct limits_key){.peer = peer, .sender = limits_sender_address(&a, false)};
}

TEST(bytes)
{
	struct config *c =
		config_of("node = { peer_bytes = 10000000; peer_window = 10; };\n"
			  "peers = ( { name = \"a\"; aet = \"A\"; bytes = 20000000; }, { name = \"b\"; aet = \"B\"; } );");
	struct limits_key a = who(0, "10.0.0.1"), b = who(1, "10.0.0.1"), x = who(-1, "10.0.0.1"), y = who(-1, "10.0.0.2");
	struct limits *l = NULL;
	struct err err = {0};

	assert_int_equal(limits_create(c, &l, &err), 0);
	assert_true(limits_has_byte_limit(l, &x));
	assert_true(limits_count_bytes(l, &b, 10000000, 100) == 0);	       /* all of the window at once */
	assert_float_equal(limits_count_bytes(l, &b, 1000000, 100), 1, 1e-9);  /* 1 MB too much at 1 MB/s */
	assert_float_equal(limits_count_bytes(l, &b, 500000, 101), 0.5, 1e-9); /* who waited goes on at that rate */
	assert_true(limits_count_bytes(l, &b, 0, 102) == 0);
	assert_float_equal(limits_count_bytes(l, &a, 21000000, 100), 0.5, 1e-9); /* its own limit: 2 MB/s */
	assert_true(limits_count_bytes(l, &x, 9000000, 100) == 0);		 /* strangers by their address */
	assert_true(limits_count_bytes(l, &y, 9000000, 100) == 0);
	assert_true(limits_count_bytes(l, &x, 9000000, 100) > 7.9);
	assert_true(limits_count_bytes(l, &x, 1, 1e6) == 0);
	limits_free(l);

	c = config_of("");
	assert_int_equal(limits_create(c, &l, &err), 0);
	assert_false(limits_has_byte_limit(l, &x));
	assert_true(limits_count_bytes(l, &x, UINT64_MAX, 1) == 0);
	assert_int_equal(limits_max_associations(l, &x), 0);
	limits_free(l);
}

TEST(associations)
{
	struct config *c =
		config_of("node = { peer_associations = 2; };\n"
			  "peers = ( { name = \"a\"; aet = \"A\"; associations = 5; }, { name = \"b\"; aet = \"B\"; } );");
	struct limits_key a = who(0, "10.0.0.1"), a2 = who(0, "10.0.0.2"), b = who(1, "10.0.0.1");
	struct limits_key x = who(-1, "2001:db8::1"), y = who(-1, "2001:db8::2"), z = who(-1, "2001:db8:0:1::1");
	struct limits *l = NULL;
	struct err err = {0};

	assert_int_equal(limits_create(c, &l, &err), 0);
	assert_int_equal(limits_max_associations(l, &a), 5);
	assert_int_equal(limits_max_associations(l, &b), 2);
	assert_int_equal(limits_max_associations(l, &x), 2);
	assert_true(limits_is_same_sender(&a, &a2));
	assert_false(limits_is_same_sender(&a, &b));
	assert_true(limits_is_same_sender(&x, &y)); /* one sender has a /64 for itself */
	assert_false(limits_is_same_sender(&x, &z));
	limits_free(l);
}

struct let_in {
	int n;
	unsigned long closed;
	struct in6_addr last;
};

static void note_let_in(void *ctx, const struct in6_addr *from, unsigned long closed)
{
	struct let_in *seen = ctx;

	seen->n++;
	seen->closed = closed;
	seen->last = *from;
}

TEST(refusals)
{
	struct config *c = config_of("node = { peer_refusals = 3; peer_window = 30; peer_block_time = 100; };");
	struct in6_addr x = who(-1, "10.0.0.1").sender, y = who(-1, "10.0.0.2").sender;
	struct limits *l = NULL;
	struct let_in seen = {0};
	struct err err = {0};
	int shut_out = 0;

	assert_int_equal(limits_create(c, &l, &err), 0);
	for (int i = 0; i < 3; i++)
		assert_false(limits_count_refusal(l, &x, 1, 1000));
	assert_false(limits_is_blocked(l, &x, 1000));
	assert_true(limits_count_refusal(l, &x, 1, 1001)); /* said once */
	assert_false(limits_count_refusal(l, &x, 1, 1001));
	assert_false(limits_is_blocked(l, &y, 1002));
	for (int i = 0; i < 7; i++)
		assert_true(limits_is_blocked(l, &x, 1002 + i));
	limits_tick(l, 1100, note_let_in, &seen);
	assert_int_equal(seen.n, 0);
	assert_true(limits_is_blocked(l, &x, 1100.9));
	assert_false(limits_is_blocked(l, &x, 1101));
	limits_tick(l, 1101, note_let_in, &seen);
	limits_tick(l, 1101, note_let_in, &seen);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.closed, 8);
	assert_memory_equal(&seen.last, &x, sizeof(x));
	assert_false(limits_count_refusal(l, &x, 1, 1102)); /* a new beginning */

	for (int i = 0; i < 100; i++) /* one in 10 s is what is allowed for ever */
		assert_false(limits_count_refusal(l, &y, 1, 2000 + 10 * i));
	l = limits_free(l);

	c = config_of("node = { peer_refusals = 20; peer_window = 60; };");
	assert_int_equal(limits_create(c, &l, &err), 0);
	for (int i = 0; i < 10000; i++) /* monitoring: once a second, all day */
		assert_false(limits_count_refusal(l, &x, LIMITS_SILENT, 1000 + i));
	for (int i = 0; i < 1000; i++) /* 100 in a second */
		shut_out += limits_count_refusal(l, &y, LIMITS_SILENT, 2000 + 0.01 * i);
	assert_int_equal(shut_out, 1);
	limits_free(l);
}

/* The i-th of as many senders as there may be: each a /64 of its own. */
static struct in6_addr one_of_many(int i)
{
	struct in6_addr a = who(-1, "2001:db8::").sender;

	a.s6_addr[6] = (unsigned char)(i >> 8);
	a.s6_addr[7] = (unsigned char)i;
	return a;
}

/* More senders than the table holds: none is taken for another, and the one that is shut out stays so, also where it is not seen
 * while the others come. */
TEST(many_senders)
{
	struct config *c = config_of("node = { peer_refusals = 1; peer_block_time = 1000; };");
	struct in6_addr x = who(-1, "10.0.0.1").sender;
	struct limits *l = NULL;
	struct err err = {0};

	assert_int_equal(limits_create(c, &l, &err), 0);
	assert_false(limits_count_refusal(l, &x, 1, 1));
	assert_true(limits_count_refusal(l, &x, 1, 1));
	for (int i = 0; i < 2 * LIMITS_ADDRESSES; i++) {
		struct in6_addr other = one_of_many(i);

		assert_false(limits_count_refusal(l, &other, 1, 2 + 0.001 * i));
		assert_false(limits_is_blocked(l, &other, 2 + 0.001 * i));
	}
	assert_true(limits_is_blocked(l, &x, 1000));
	assert_false(limits_is_blocked(l, &x, 1001));
	limits_free(l);
}

/* Somebody with thousands of networks has himself shut out in each: whoever else there is loses nothing by it. */
TEST(all_places_shut_out)
{
	struct config *c =
		config_of("node = { peer_refusals = 1; peer_window = 10; peer_block_time = 100; peer_bytes = 10000000; };");
	struct limits_key a = who(-1, "10.0.0.1"), b = who(-1, "10.0.0.2");
	struct in6_addr other;
	struct limits *l = NULL;
	struct let_in seen = {0};
	struct err err = {0};

	assert_int_equal(limits_create(c, &l, &err), 0);
	for (int i = 0; i < LIMITS_ADDRESSES; i++) {
		other = one_of_many(i);
		assert_false(limits_count_refusal(l, &other, 1, 1));
		assert_true(limits_count_refusal(l, &other, 1, 1 + 0.001 * i));
	}
	for (int i = 0; i < 100; i++) {
		assert_false(limits_count_refusal(l, &a.sender, 1, 10)); /* no place: not counted, and not shut out */
		assert_false(limits_is_blocked(l, &a.sender, 10));
	}
	for (int i = 0; i < LIMITS_ADDRESSES; i++) {
		other = one_of_many(i);
		assert_true(limits_is_blocked(l, &other, 10)); /* none of them was forgotten */
	}
	assert_true(limits_count_bytes(l, &a, 9000000, 10) == 0); /* bytes are counted together */
	assert_true(limits_count_bytes(l, &b, 9000000, 10) > 0);
	limits_tick(l, 101.0005, note_let_in, &seen); /* the first place is free again */
	assert_int_equal(seen.n, 1);
	assert_false(limits_count_refusal(l, &a.sender, 1, 102));
	assert_true(limits_count_refusal(l, &a.sender, 1, 102));
	assert_true(limits_is_blocked(l, &a.sender, 103));
	limits_tick(l, 110, note_let_in, &seen);
	assert_int_equal(seen.n, LIMITS_ADDRESSES);
	limits_tick(l, 202, note_let_in, &seen);
	assert_int_equal(seen.n, LIMITS_ADDRESSES + 1);
	assert_memory_equal(&seen.last, &a.sender, sizeof(a.sender));
	limits_free(l);
}

/* A neighbour in a peer's network cannot have the peer shut out. */
TEST(a_peer_and_its_neighbour)
{
	struct config *c = config_of("node = { peer_refusals = 1; };\n"
				     "peers = ( { name = \"mr\"; aet = \"MR\"; host = \"2001:db8::5\"; },\n"
				     "  { name = \"net\"; aet = \"CT\"; host = \"2001:db8::/64\"; } );");
	struct in6_addr peer = address_of("2001:db8::5"), neighbour = address_of("2001:db8::6"), sender;
	struct admission *a = NULL;
	struct limits *l = NULL;
	struct err err = {0};

	assert_int_equal(admission_create(c, &a, &err), 0);
	assert_int_equal(limits_create(c, &l, &err), 0);
	assert_true(admission_has_address(a, &peer));
	assert_false(admission_has_address(a, &neighbour));
	sender = limits_sender_address(&neighbour, false);
	assert_false(limits_count_refusal(l, &sender, 1, 1));
	assert_true(limits_count_refusal(l, &sender, 1, 1));
	sender = limits_sender_address(&peer, false);
	assert_true(limits_is_blocked(l, &sender, 1)); /* as one of the network it would be */
	sender = limits_sender_address(&peer, true);
	assert_false(limits_is_blocked(l, &sender, 1));
	limits_free(l);
	admission_free(a);
}

static int set_spool(void **state)
{
	return setenv("TOMONODE_SPOOL", "/spool", 1);
}

TESTS_SETUP(set_spool, NULL);
