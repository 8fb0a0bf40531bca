// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crypto.c - OpenSSL's hand-written assembly: hashes, AES, GHASH and modular multiplication.
 * OPENSSL_ia32cap selects among its variants for processors. The program is linked with
 * libcrypto.so.3 itself, so no development files are needed.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int MD5_Init(void *c);
int MD5_Update(void *c, const void *data, size_t len);
int MD5_Final(unsigned char *md, void *c);
int SHA1_Init(void *c);
int SHA1_Update(void *c, const void *data, size_t len);
int SHA1_Final(unsigned char *md, void *c);
int SHA256_Init(void *c);
int SHA256_Update(void *c, const void *data, size_t len);
int SHA256_Final(unsigned char *md, void *c);
int SHA512_Init(void *c);
int SHA512_Update(void *c, const void *data, size_t len);
int SHA512_Final(unsigned char *md, void *c);
int AES_set_encrypt_key(const unsigned char *user, int bits, void *key);
int AES_set_decrypt_key(const unsigned char *user, int bits, void *key);
void AES_encrypt(const unsigned char *in, unsigned char *out, const void *key);
void AES_cbc_encrypt(const unsigned char *in, unsigned char *out, size_t len, const void *key,
		     unsigned char *iv, int encrypt);
void *CRYPTO_gcm128_new(void *key, void *block);
void CRYPTO_gcm128_setiv(void *ctx, const unsigned char *iv, size_t len);
int CRYPTO_gcm128_encrypt(void *ctx, const unsigned char *in, unsigned char *out, size_t len);
void CRYPTO_gcm128_tag(void *ctx, unsigned char *tag, size_t len);
void *BN_CTX_new(void);
void *BN_new(void);
void *BN_bin2bn(const unsigned char *s, int len, void *ret);
int BN_set_word(void *a, uint64_t w);
int BN_mod_exp_mont(void *r, const void *a, const void *p, const void *m, void *ctx, void *mont);
int BN_mod_exp_mont_consttime(void *r, const void *a, const void *p, const void *m, void *ctx,
			      void *mont);

static unsigned char text[1500], out[1536];
static unsigned int sum;

#define HASH(name, len)                        \
	do {                                   \
		static uint64_t ctx[64];       \
                                               \
		name##_Init(ctx);              \
		name##_Update(ctx, text, len); \
		name##_Final(out, ctx);        \
		sum += out[0];                 \
	} while (0)

static void ciphers(void)
{
	static uint64_t key[64];
	unsigned char iv[16] = { 0 };
	void *gcm;

	AES_set_encrypt_key(text, 256, key);
	AES_cbc_encrypt(text, out, 160, key, iv, 1);
	gcm = CRYPTO_gcm128_new(key, AES_encrypt);
	CRYPTO_gcm128_setiv(gcm, text, 12);
	CRYPTO_gcm128_encrypt(gcm, text, out, 300);
	CRYPTO_gcm128_tag(gcm, out, 16);
	AES_set_decrypt_key(text, 128, key);
	AES_cbc_encrypt(text, out, 160, key, iv, 0);
	sum += out[3];
}

static void powers(int bytes)
{
	void *ctx = BN_CTX_new(), *r = BN_new(), *p = BN_new();
	void *a = BN_bin2bn(text, bytes, NULL);
	void *m = BN_bin2bn(text + 7, bytes, NULL);

	BN_set_word(p, 0x13);
	BN_mod_exp_mont(r, a, p, m, ctx, NULL);
	BN_mod_exp_mont_consttime(r, a, p, m, ctx, NULL);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i * 7 + 129;
	text[7 + 63] |= 1; /* the modulus must be odd */
	HASH(MD5, 130);
	HASH(SHA1, 300);
	HASH(SHA256, 300);
	HASH(SHA512, 300);
	ciphers();
	powers(64);
	printf("%u\n", sum);
	return 0;
}
