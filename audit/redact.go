package audit

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// secretWords are what keys of secrets are called, without case and separators.
var secretWords = []string{
	"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "signingkey",
	"keymaterial", "authorization", "cookie", "bearer", "credential", "signature",
}

// publicEnds are ends of such keys that name the secret without being it.
var publicEnds = []string{"id", "ids", "name", "count", "version", "kind", "expiresat", "createdat", "perminute"}

// secretKey reports whether the value under a key must not be kept. A fencing token is a number that
// orders attempts, not a secret.
func secretKey(key string) bool {
	k := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, key)
	if k == "fencingtoken" {
		return false
	}
	for _, w := range secretWords {
		at := strings.LastIndex(k, w)
		if at < 0 {
			continue
		}
		if rest := k[at+len(w):]; rest != "" && slices.Contains(publicEnds, rest) {
			continue
		}
		return true
	}
	return false
}

// secretText finds secrets by their look, wherever they stand: keys in PEM, password hashes, JSON web
// tokens, bearer tokens, and the prefixes that providers and we ourselves give to keys.
var secretText = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|$)` +
	`|\$argon2[a-z]*\$[^\s"]+` +
	`|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?` +
	`|\b[Bb](?:earer|EARER)\s+[A-Za-z0-9._~+/=-]{8,}` +
	`|\b(sk|pk|rk|whsec|flt|ghp|xoxb)_[A-Za-z0-9_+/=-]{16,}|\bsk-[A-Za-z0-9_-]{20,}` +
	`|\bAKIA[A-Z0-9]{16}\b` +
	`|://[^\s/:@]+:[^\s/@]+@`)

// marks are what every match of secretText holds: most texts hold none, and need no closer look.
var marks = []string{"PRIVATE KEY", "$argon2", "eyJ", "earer", "EARER", "sk_", "pk_", "rk_", "whsec_", "flt_", "ghp_", "xoxb_", "sk-", "AKIA", "://"}

// maxText bounds one value in bytes; a longer one is kept as its digest.
const maxText = 64 << 10

// hush replaces whatever looks like a secret inside a text.
func hush(s string) string {
	if len(s) > maxText {
		return fmt.Sprintf("[%d bytes, sha256 %x]", len(s), sha256.Sum256([]byte(s)))
	}
	for _, m := range marks {
		if strings.Contains(s, m) {
			return secretText.ReplaceAllString(s, redacted)
		}
	}
	return s
}

// redact walks what JSON can say and replaces secrets, by key and by look.
func redact(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			if secretKey(k) {
				if e != nil {
					e = redacted
				}
			} else {
				e = redact(e)
			}
			out[hush(k)] = e
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = redact(e)
		}
		return out
	case string:
		return hush(x)
	}
	return v
}
