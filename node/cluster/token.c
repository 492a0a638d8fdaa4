/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cluster/token.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL "EXPORTER-tomonode-pilot"

void token_print(const char *id, uint64_t number, char ret_identity[TOKEN_IDENTITY_SIZE])
{
	snprintf(ret_identity, TOKEN_IDENTITY_SIZE, "%s.%" PRIu64, id, number);
}

bool token_parse(const char *identity, char ret_id[PILOT_ID_SIZE], uint64_t *ret_number)
{
	const char *dot = strrchr(identity, '.');
	size_t n = dot ? (size_t)(dot - identity) : 0;

	if (n == 0 || n >= PILOT_ID_SIZE || strspn(dot + 1, "0123456789") != strlen(dot + 1) || dot[1] == '\0' || dot[1] == '0')
		return false;
	memcpy(ret_id, identity, n);
	ret_id[n] = '\0';
	errno = 0;
	*ret_number = strtoull(dot + 1, NULL, 10);
	return errno == 0 && *ret_number <= PILOT_TOKEN_MAX && pilot_id_is_valid(ret_id);
}

bool token_key(const char *secret, const char *identity, unsigned char ret_key[TOKEN_KEY_SIZE])
{
	unsigned char bytes[TOKEN_KEY_SIZE];
	unsigned n = TOKEN_KEY_SIZE, byte;
	bool done;

	for (size_t i = 0; i < sizeof(bytes) && sscanf(secret + 2 * i, "%2x", &byte) == 1; i++)
		bytes[i] = (unsigned char)byte;
	done = HMAC(EVP_sha256(), bytes, sizeof(bytes), (const unsigned char *)identity, strlen(identity), ret_key, &n);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return done;
}

bool token_proof(struct ssl_st *ssl, const char *secret, const char *identity, char ret_proof[TOKEN_PROOF_SIZE])
{
	unsigned char key[TOKEN_KEY_SIZE], exported[TOKEN_KEY_SIZE], mac[TOKEN_KEY_SIZE];
	unsigned n = sizeof(mac);
	bool done = token_key(secret, identity, key) &&
		    SSL_export_keying_material(ssl, exported, sizeof(exported), LABEL, strlen(LABEL),
					       (const unsigned char *)identity, strlen(identity), 1) == 1 &&
		    HMAC(EVP_sha256(), key, sizeof(key), exported, sizeof(exported), mac, &n);

	for (size_t i = 0; done && i < sizeof(mac); i++)
		snprintf(ret_proof + 2 * i, 3, "%02x", mac[i]);
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(exported, sizeof(exported));
	return done;
}
