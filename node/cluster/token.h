/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: the identity "ID.N" of a pilot, and what proves that it knows the secret of ID. Pure functions. */
#ifndef TOMONODE_NODE_TOKEN_H
#define TOMONODE_NODE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "node/store/pilot_secret.h"

#define TOKEN_IDENTITY_SIZE (PILOT_ID_SIZE + 24)
#define TOKEN_KEY_SIZE 32
#define TOKEN_PROOF_SIZE (2 * TOKEN_KEY_SIZE + 1)

struct ssl_st;

void token_print(const char *id, uint64_t number, char ret_identity[TOKEN_IDENTITY_SIZE]);
/* Split an identity; false: it has another form, or a number above PILOT_TOKEN_MAX. */
bool token_parse(const char *identity, char ret_id[PILOT_ID_SIZE], uint64_t *ret_number);
/* Key of an identity: HMAC-SHA-256(secret, identity). */
bool token_key(const char *secret, const char *identity, unsigned char ret_key[TOKEN_KEY_SIZE]);
/* Proof of an identity for this connection, hexadecimal: HMAC-SHA-256(key, exporter), with the exporter of RFC 8446 7.5 for the
 * label "EXPORTER-tomonode-pilot" and the identity as context. It is of no use for any other connection. */
bool token_proof(struct ssl_st *ssl, const char *secret, const char *identity, char ret_proof[TOKEN_PROOF_SIZE]);

#endif
